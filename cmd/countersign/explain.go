package main

import (
	"context"
	"errors"
	"fmt"

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

// explain finds the exit code, kind and hint of any error: the one place where errors of the packages below get theirs.
func explain(err error) *exitError {
	if known, ok := errors.AsType[*exitError](err); ok {
		return &exitError{code: known.code, kind: known.kind, hint: known.hint, err: err}
	}
	for _, list := range [][]rule{filingRules(), decisionRules(), authorityRules(), deliveryRules(), ledgerRules(), machineRules()} {
		for _, r := range list {
			if hint, ok := r.matches(err); ok {
				return &exitError{code: r.code, kind: r.kind, hint: hint, err: err}
			}
		}
	}
	return &exitError{code: exitFailure, kind: kindFailure, err: err}
}

// rule is how the program ends on one kind of error. Where an error joins several, the first rule that matches any of
// them counts: a refusal comes before what went wrong while it was recorded.
type rule struct {
	code    int
	kind    string
	matches func(error) (hint string, ok bool)
}

// on is the rule for errors of a type.
func on[E error](code int, kind string, hint func(E) string) rule {
	return rule{code, kind, func(err error) (string, bool) {
		e, ok := errors.AsType[E](err)
		if !ok {
			return "", false
		}
		return hint(e), true
	}}
}

// is is the rule for one error value.
func is(target error, code int, kind, hint string) rule {
	return rule{code, kind, func(err error) (string, bool) { return hint, errors.Is(err, target) }}
}

// say is a hint that needs nothing of its error.
func say[E error](hint string) func(E) string { return func(E) string { return hint } }

const showsWhatWaits = programName + " list shows what waits, " + programName + " show ID one obligation whole"

func filingRules() []rule {
	return []rule{
		on(exitUsage, "not_found", say[*ledger.NotFoundError](showsWhatWaits)),
		on(exitConflict, "idempotency_conflict", func(e *ledger.IdempotencyConflictError) string {
			return fmt.Sprintf("%s show %d is what the key was used for; file something else under another key", programName, e.ObligationID)
		}),
		on(exitRefused, "input", say[*ledger.InputError]("nothing was stored; correct the field and try again")),
		on(exitRefused, "input", say[*plaintext.NotUTF8Error]("nothing was stored; send UTF-8")),
		on(exitRefused, "validation", func(e *transports.ValidationError) string {
			return "the transport can't send this exactly as it stands, and it is never changed to fit; correct the " + e.Field
		}),
		on(exitRefused, "not_configured", func(e *desk.NotConfiguredError) string {
			return fmt.Sprintf("add [transports.%s] to the configuration; %s config check tells what is there", e.Platform, programName)
		}),
		on(exitRefused, "not_configured", say[*sweep.NotConfiguredError](programName+" config check tells what is there")),
		on(exitRefused, "gate", say[*desk.GateError]("")),
		on(exitRefused, "agent_limit", say[*ledger.AgentLimitError]("wait until operators have decided, or have the limit in [agents] raised")),
	}
}

func decisionRules() []rule {
	showsNow := func(id int64) string {
		return fmt.Sprintf("%s show %d has the draft and its epoch as they are now", programName, id)
	}
	return []rule{
		on(exitConflict, "stale_epoch", func(e *ledger.StaleEpochError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "decided", func(e *ledger.DecidedError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "too_late", say[*ledger.TooLateError](programName+" claims lists what is in flight or held")),
		on(exitConflict, "wrong_status", func(e *ledger.StatusError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "unshown", func(e *ledger.UnshownError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "nonce", say[*ledger.NonceError]("")),
		on(exitConflict, "mismatch", func(e *ledger.MismatchError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "voided", func(e *ledger.VoidedError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "expired", func(e *ledger.ExpiredError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "contradiction", func(e *ledger.ContradictionError) string { return showsNow(e.ObligationID) }),
		on(exitConflict, "lost_claim", say[*ledger.LostClaimError](programName+" claims lists what is in flight or held")),
		on(exitHeld, "held", func(e *ledger.HeldError) string {
			return fmt.Sprintf("%s show %d tells where its delivery stands; an unknown one needs an operator: reconcile, or settle. A settled one stays as it is", programName, e.ObligationID)
		}),
	}
}

func authorityRules() []rule {
	return []rule{
		is(operator.ErrNotAuthorised, exitUnauthorised, kindNotAuthorised,
			"the configuration names the operators, with the SHA-256 of each one's token"),
		is(ledger.ErrNoOperator, exitUnauthorised, kindNotAuthorised, tokenHint),
		on(exitUnauthorised, "own_draft", say[*ledger.OwnDraftError]("nobody approves what was filed under their own name")),
		on(exitUnauthorised, "wrong_agent", say[*ledger.WrongAgentError]("an agent takes back only its own drafts; an operator can reject or close it")),
	}
}

// deliveryRules are for errors that a pass keeps in its report. One that gets out of it all the same means what it says.
func deliveryRules() []rule {
	return []rule{
		on(exitUnknown, kindUnknown, say[*transports.AmbiguousError](programName+" claims lists what is held")),
		on(exitUnknown, kindUnknown, say[*transports.RefusedError](programName+" claims lists what is held")),
		is(sweep.ErrTakenOver, exitFailure, "taken_over", "what it had claimed goes to the next pass"),
		on(exitUsage, "no_worker", say[*sweep.NoWorkerError](programName+" claims names the workers")),
		on(exitTryLater, "unverified", say[*notify.UnverifiedError]("list and triage show what waits; mend the channel, or the section [internal]")),
		on(exitTryLater, "slack", say[*notify.LaterError]("list and triage show what waits")),
		on(exitUsage, "slack", say[*interact.FatalError]("operators decide at the terminal meanwhile")),
		on(exitTryLater, kindNotPrepared, say[*transports.PrepareError]("no approval was used up; a later pass tries again")),
	}
}

// ledgerRules: a path that leads to no ledger is a mistake of whoever configured it (2); a ledger that isn't sound is a
// check that failed (1).
func ledgerRules() []rule {
	return []rule{
		on(exitUsage, "no_ledger", say[*schema.MissingError]("the configuration's [ledger] path says where it is looked for")),
		on(exitUsage, "not_a_ledger", say[*schema.NotLedgerError]("nothing was written to it; the configuration's [ledger] path names it")),
		on(exitUsage, "upgrade_needed", say[*schema.UpgradeError](programName+" db upgrade backs it up and upgrades it; stop all passes first")),
		on(exitUsage, "newer_ledger", say[*schema.NewerError]("another "+programName+" on this machine is newer than this one")),
		on(exitFailure, "guards", say[*schema.GuardError]("somebody changed the ledger's tables; stop all passes until that is understood")),
		on(exitFailure, "connection", say[*schema.ConnectionError]("nothing was read or written")),
		on(exitFailure, "upgrade_stopped", say[*schema.UpgradeStoppedError]("mend the rows named with the program that wrote them, then upgrade again")),
		on(exitFailure, "guards", say[*ledger.GuardError](programName+" db check tells what is wrong")),
		on(exitFailure, "moved", say[*ledger.MovedError]("put it back, or correct the configuration's [ledger] path, and see that no other pass runs on it")),
		on(exitFailure, "disk_full", say[*ledger.FullError]("")),
	}
}

// machineRules come last: they tell of the machine and the configuration, not of what was asked for.
func machineRules() []rule {
	return []rule{
		on(exitUsage, kindConfiguration, say[*desk.ConfigError]("correct that section; "+programName+" config check tells more")),
		on(exitUsage, kindConfiguration, say[*desk.NoSurfaceError](programName+" list shows what waits")),
		on(exitUsage, kindConfiguration, say[*config.InvalidError](programName+" config check tells the same, and what is unwise")),
		on(exitUsage, kindConfiguration, say[*config.NotFoundError]("name one with --config FILE")),
		on(exitUsage, kindConfiguration, say[*config.EditError]("nothing was changed")),
		on(exitUsage, "not_found", say[*config.UnknownOperatorError](programName+" operator list shows who there is")),
		on(exitUsage, kindConfiguration, say[*operator.EntryError]("")),
		on(exitUsage, kindConfiguration, say[*hook.NotReadyError]("correct the section [followups]; they wait until then")),
		is(ledger.ErrNestedTransaction, exitFailure, kindFailure, "this is a bug in "+programName),
		is(ledger.ErrBusy, exitTryLater, "busy", "the same command can simply be given again"),
		is(context.Canceled, exitFailure, kindInterrupted, ""),
	}
}
