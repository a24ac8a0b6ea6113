package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/config"
	"countersign/desk"
	"countersign/hook"
	"countersign/interact"
	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
	"countersign/plaintext"
	"countersign/schema"
	"countersign/sweep"
	"countersign/transports"
)

// explained are all errors that the packages below can return, and how the program ends on each.
var explained = map[string]struct {
	err  error
	code int
}{
	"config.EditError":                {&config.EditError{}, exitUsage},
	"config.InvalidError":             {&config.InvalidError{}, exitUsage},
	"config.NotFoundError":            {&config.NotFoundError{}, exitUsage},
	"config.UnknownOperatorError":     {&config.UnknownOperatorError{ID: "x"}, exitUsage},
	"desk.ConfigError":                {&desk.ConfigError{Section: "transports.smtp", Err: errors.New("no such file")}, exitUsage},
	"desk.GateError":                  {&desk.GateError{}, exitRefused},
	"desk.NotConfiguredError":         {&desk.NotConfiguredError{}, exitRefused},
	"hook.NotReadyError":              {&hook.NotReadyError{Err: errors.New("no such file")}, exitUsage},
	"desk.NoSurfaceError":             {&desk.NoSurfaceError{}, exitUsage},
	"interact.FatalError":             {&interact.FatalError{}, exitUsage},
	"ledger.AgentLimitError":          {&ledger.AgentLimitError{}, exitRefused},
	"ledger.UnshownError":             {&ledger.UnshownError{}, exitConflict},
	"notify.LaterError":               {&notify.LaterError{}, exitTryLater},
	"notify.UnverifiedError":          {&notify.UnverifiedError{}, exitTryLater},
	"ledger.ContradictionError":       {&ledger.ContradictionError{}, exitConflict},
	"ledger.DecidedError":             {&ledger.DecidedError{}, exitConflict},
	"ledger.ErrBusy":                  {ledger.ErrBusy, exitTryLater},
	"ledger.ErrNestedTransaction":     {ledger.ErrNestedTransaction, exitFailure},
	"ledger.ErrNoOperator":            {ledger.ErrNoOperator, exitUnauthorised},
	"ledger.ExpiredError":             {&ledger.ExpiredError{}, exitConflict},
	"ledger.FullError":                {&ledger.FullError{}, exitFailure},
	"ledger.GuardError":               {&ledger.GuardError{Err: errors.New("x")}, exitFailure},
	"ledger.HeldError":                {&ledger.HeldError{}, exitHeld},
	"ledger.IdempotencyConflictError": {&ledger.IdempotencyConflictError{}, exitConflict},
	"ledger.InputError":               {&ledger.InputError{}, exitRefused},
	"ledger.LostClaimError":           {&ledger.LostClaimError{}, exitConflict},
	"ledger.MismatchError":            {&ledger.MismatchError{}, exitConflict},
	"ledger.MovedError":               {&ledger.MovedError{}, exitFailure},
	"ledger.NonceError":               {&ledger.NonceError{}, exitConflict},
	"ledger.NotFoundError":            {&ledger.NotFoundError{}, exitUsage},
	"ledger.OwnDraftError":            {&ledger.OwnDraftError{}, exitUnauthorised},
	"ledger.StaleEpochError":          {&ledger.StaleEpochError{}, exitConflict},
	"ledger.StatusError":              {&ledger.StatusError{}, exitConflict},
	"ledger.TooLateError":             {&ledger.TooLateError{}, exitConflict},
	"ledger.VoidedError":              {&ledger.VoidedError{}, exitConflict},
	"ledger.WrongAgentError":          {&ledger.WrongAgentError{}, exitUnauthorised},
	"operator.EntryError":             {&operator.EntryError{}, exitUsage},
	"operator.ErrNotAuthorised":       {operator.ErrNotAuthorised, exitUnauthorised},
	"plaintext.NotUTF8Error":          {&plaintext.NotUTF8Error{}, exitRefused},
	"schema.ConnectionError":          {&schema.ConnectionError{}, exitFailure},
	"schema.GuardError":               {&schema.GuardError{}, exitFailure},
	"schema.MissingError":             {&schema.MissingError{}, exitUsage},
	"schema.NewerError":               {&schema.NewerError{}, exitUsage},
	"schema.NotLedgerError":           {&schema.NotLedgerError{}, exitUsage},
	"schema.UpgradeError":             {&schema.UpgradeError{}, exitUsage},
	"schema.UpgradeStoppedError":      {&schema.UpgradeStoppedError{}, exitFailure},
	"sweep.ErrTakenOver":              {sweep.ErrTakenOver, exitFailure},
	"sweep.NoWorkerError":             {&sweep.NoWorkerError{}, exitUsage},
	"sweep.NotConfiguredError":        {&sweep.NotConfiguredError{}, exitRefused},
	"transports.AmbiguousError":       {&transports.AmbiguousError{}, exitUnknown},
	"transports.PrepareError":         {&transports.PrepareError{}, exitTryLater},
	"transports.RefusedError":         {&transports.RefusedError{}, exitUnknown},
	"transports.ValidationError":      {&transports.ValidationError{}, exitRefused},
}

func TestEveryErrorIsExplained(t *testing.T) {
	for name, want := range explained {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("while: %w", want.err)
			got := explain(wrapped)
			if got.code != want.code || got.err != wrapped {
				t.Errorf("exit %d, want %d", got.code, want.code)
			}
			if got.kind == "" || got.kind == kindFailure && want.err != ledger.ErrNestedTransaction {
				t.Errorf("kind %q says nothing", got.kind)
			}
			// What was refused counts, not what went wrong while the refusal was recorded.
			recorded := errors.Join(want.err, fmt.Errorf("record: %w", ledger.ErrBusy))
			if got := explain(recorded); got.code != want.code {
				t.Errorf("exit %d with a second error, want %d", got.code, want.code)
			}
		})
	}
}

// A new error of the packages below would end with 1 and no hint, until it has a rule and stands above.
func TestNoErrorIsForgotten(t *testing.T) {
	var found []string
	for _, pkg := range []string{"config", "desk", "hook", "interact", "ledger", "notify", "operator", "plaintext", "schema", "sweep", "transports"} {
		found = append(found, exportedErrors(t, pkg)...)
	}
	// Reasons inside of others (a Send that was not made is a RefusedError around one of these), and what only the person who clicked is told.
	inside := []string{"interact.NotRefiledError", "transports.ErrDiffers", "transports.ErrNoClaim", "transports.ErrNotPrepared", "transports.ErrTooLate"}
	for _, name := range found {
		if _, ok := explained[name]; !ok && !slices.Contains(inside, name) {
			t.Errorf("%s has no exit code", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(explained)) {
		if !slices.Contains(found, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

var errorName = regexp.MustCompile(`^Err[A-Z]|^[A-Z].*Error$`)

// exportedErrors are the names of a package's error types and values.
func exportedErrors(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s: %d files, %v", pkg, len(files), err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range topNames(file) {
			if errorName.MatchString(name) {
				names = append(names, pkg+"."+name)
			}
		}
	}
	return names
}

func topNames(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want exitError
	}{
		{"unknown", errors.New("boom"), exitError{code: exitFailure, kind: "failure"}},
		{"usage", usagef("bad").hinted("do %s", "that"), exitError{code: exitUsage, kind: "usage", hint: "do that"}},
		{"wrapped", fmt.Errorf("while: %w", exitf(exitHeld, "held", "busy")), exitError{code: exitHeld, kind: "held"}},
		{"interrupted", fmt.Errorf("read: %w", context.Canceled), exitError{code: exitFailure, kind: "interrupted"}},
		{"the file system", fmt.Errorf("x: %w", fs.ErrNotExist), exitError{code: exitFailure, kind: "failure"}},
		{"a hint with an ID", &ledger.StaleEpochError{ObligationID: 431, Want: 8, Got: 7},
			exitError{code: exitConflict, kind: "stale_epoch", hint: "countersign show 431 has the draft and its epoch as they are now"}},
		{"unknown wins over busy", errors.Join(leftUnknown(2), ledger.ErrBusy), exitError{code: exitUnknown, kind: "unknown",
			hint: "countersign claims lists what is held; find out whether it arrived, then reconcile or settle it"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := explain(test.err)
			if got.code != test.want.code || got.kind != test.want.kind || got.hint != test.want.hint {
				t.Errorf("got %+v", got)
			}
			if got.Error() != test.err.Error() || !errors.Is(got, test.err) {
				t.Errorf("got %q, want %q", got, test.err)
			}
		})
	}
}
