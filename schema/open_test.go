package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/schema"
)

// content is every file beside the ledger, with its bytes.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			out[entry.Name()] = entry.Type().String()
			continue
		}
		bytes, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(bytes)
	}
	return out
}

// unchanged fails the test unless the directory holds the same files with the same bytes.
func unchanged(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := content(t, dir)
	for name, bytes := range before {
		if got, ok := after[name]; !ok || got != bytes {
			t.Errorf("%s was changed (there: %v, %d bytes before, %d after)", name, ok, len(bytes), len(got))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s was left behind", name)
		}
	}
}

func (l life) bytes(t *testing.T) []byte {
	t.Helper()
	bytes, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func (l life) write(t *testing.T, bytes []byte) {
	t.Helper()
	if err := os.WriteFile(l.path, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
}

// garble overwrites the pages from the first one on.
func garble(bytes []byte, first, count int) []byte {
	const page = 4096
	for i := first * page; i < min((first+count)*page, len(bytes)); i++ {
		bytes[i] = 0xA5
	}
	return bytes
}

func TestWhatIsNoLedgerIsRefusedUntouched(t *testing.T) {
	isNoLedger := func(t *testing.T, err error) string { return want[*schema.NotLedgerError](t, err).Path }
	for name, test := range map[string]struct {
		make func(t *testing.T, l life)
		path func(t *testing.T, err error) string // the refusal's type, and the path that it names
	}{
		"missing": {func(t *testing.T, l life) { os.Remove(l.path) },
			func(t *testing.T, err error) string { return want[*schema.MissingError](t, err).Path }},
		"empty":             {func(t *testing.T, l life) { l.write(t, nil) }, isNoLedger},
		"one byte":          {func(t *testing.T, l life) { l.write(t, []byte("S")) }, isNoLedger},
		"short":             {func(t *testing.T, l life) { l.write(t, l.bytes(t)[:99]) }, isNoLedger},
		"header alone":      {func(t *testing.T, l life) { l.write(t, l.bytes(t)[:100]) }, isNoLedger},
		"text":              {func(t *testing.T, l life) { l.write(t, []byte(strings.Repeat("Dear Sir, ", 900))) }, isNoLedger},
		"zeros":             {func(t *testing.T, l life) { l.write(t, make([]byte, 8192)) }, isNoLedger},
		"cut within a page": {func(t *testing.T, l life) { l.write(t, l.bytes(t)[:10_000]) }, isNoLedger},
		"cut between pages": {func(t *testing.T, l life) { l.write(t, l.bytes(t)[:3*4096]) }, isNoLedger},
		"one page lost":     {func(t *testing.T, l life) { b := l.bytes(t); l.write(t, b[:len(b)-4096]) }, isNoLedger},
		"pages garbled":     {func(t *testing.T, l life) { l.write(t, garble(l.bytes(t), 1, 8)) }, isNoLedger},
		"another SQLite file": {func(t *testing.T, l life) {
			l.write(t, sqliteFile(t, `CREATE TABLE obligations (id INTEGER PRIMARY KEY)`))
		}, isNoLedger},
		"a SQLite file without tables": {func(t *testing.T, l life) { l.write(t, sqliteFile(t, `PRAGMA user_version = 1`)) }, isNoLedger},
		"another implementation's": {func(t *testing.T, l life) { l.write(t, sqliteFile(t, foreignTables)) },
			func(t *testing.T, err error) string {
				refusal := want[*schema.UpgradeError](t, err)
				if refusal.Found != 0 || !strings.Contains(refusal.Error(), "db upgrade") {
					t.Errorf("no hint: %v", refusal)
				}
				return refusal.Path
			}},
		"a newer version": {func(t *testing.T, l life) {
			l.plain(t, fmt.Sprintf(`PRAGMA user_version = %d`, schema.Version+1), `PRAGMA wal_checkpoint(TRUNCATE)`, `PRAGMA journal_mode = DELETE`).Close()
		}, func(t *testing.T, err error) string {
			refusal := want[*schema.NewerError](t, err)
			if refusal.Found != schema.Version+1 {
				t.Errorf("found %d", refusal.Found)
			}
			return refusal.Path
		}},
		"a directory": {func(t *testing.T, l life) {
			os.Remove(l.path)
			if err := os.Mkdir(l.path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, isNoLedger},
		"a pipe that nobody writes to": {func(t *testing.T, l life) {
			os.Remove(l.path)
			if err := syscall.Mkfifo(l.path, 0o600); err != nil {
				t.Skip(err)
			}
		}, isNoLedger},
	} {
		t.Run(name, func(t *testing.T) {
			l := lived(t)
			test.make(t, l)
			before := content(t, filepath.Dir(l.path))
			err := l.open(t)
			if got := test.path(t, err); got != l.path || !strings.Contains(err.Error(), l.path) {
				t.Errorf("the refusal names %q: %v", got, err)
			}
			unchanged(t, filepath.Dir(l.path), before)
		})
	}
}

// sqliteFile is a file in rollback mode, made of the statements.
func sqliteFile(t *testing.T, statements string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`PRAGMA synchronous = OFF; BEGIN;` + statements + `; COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestAnUnreadableLedgerIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	l := lived(t)
	if err := os.Chmod(l.path, 0); err != nil {
		t.Fatal(err)
	}
	if err := l.open(t); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v", err)
	}
}

func TestADamagedPageIsNamedByTheStepThatMeetsIt(t *testing.T) {
	l := lived(t)
	bytes := l.bytes(t)
	l.write(t, garble(bytes, 12, len(bytes)/4096)) // the schema is whole, the rows are not
	opened, err := ledger.Open(t.Context(), l.path, ledger.Options{})
	if err == nil {
		defer opened.Close()
		_, err = opened.Show(t.Context(), l.ids["sent"])
	}
	if damaged := want[*schema.NotLedgerError](t, err); damaged.Path != l.path {
		t.Errorf("it names %q", damaged.Path)
	}
}

func TestOnlyCreateMakesALedger(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	_, err := ledger.Open(t.Context(), path, ledger.Options{})
	want[*schema.MissingError](t, err)
	_, err = ledger.Upgrade(t.Context(), path, ledger.Options{})
	want[*schema.MissingError](t, err)
	_, err = schema.Look(path)
	want[*schema.MissingError](t, err)
	for _, access := range []schema.Access{schema.Write, schema.Read} {
		db, err := schema.Connect(path, access, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.PingContext(t.Context()); err == nil {
			t.Error("connected to a file that isn't there")
		}
		db.Close()
	}
	unchanged(t, dir, map[string]string{})
}

func TestCreateMakesOnePrivateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	if err := ledger.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if names := content(t, dir); len(names) != 1 {
		t.Errorf("left behind: %d files", len(names))
	}
}

func TestCreateTouchesNothingThatExists(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"file":          func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"empty file":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"dangling link": func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "elsewhere"), path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ledger.db")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			before := content(t, dir)
			if err := ledger.Create(t.Context(), path); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			unchanged(t, dir, before)
		})
	}
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	for after := range 6 { // cancelled at once, and a little later each time
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after*after)*500*time.Microsecond)
		err := ledger.Create(ctx, filepath.Join(dir, "ledger.db"))
		cancel()
		if err != nil {
			unchanged(t, dir, map[string]string{})
		}
	}
	if err := ledger.Create(t.Context(), filepath.Join(t.TempDir(), "no", "such", "ledger.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAPathIsAPath(t *testing.T) {
	for _, name := range []string{"q?x.db", "p%41.db", "a#b.db", " with blanks .db", "file:x.db", "a&b='c'.db", "ü✓.db", `back\slash.db`, "?mode=ro", "new\nline.db", "-%", "\xff.db"} {
		t.Run(url.PathEscape(name), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := ledger.Create(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			l, err := ledger.Open(t.Context(), path, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if l.Path() != path {
				t.Errorf("path is %q", l.Path())
			}
			file(t, l)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			names := content(t, dir)
			if _, ok := names[name]; !ok || len(names) != 1 {
				t.Errorf("the directory holds %d files", len(names))
			}
			if !strings.Contains(names[name], "the exact text") {
				t.Error("the row is not in that file")
			}
		})
	}
}

func file(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	draft, err := ledger.Clean(ledger.Filing{Counterparty: "acme", Platform: "smtp", Channel: "a@b.example", Text: "the exact text", Agent: "quoter"}, ledger.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.File(t.Context(), draft, ledger.Gates{}); err != nil {
		t.Fatal(err)
	}
}

func TestEveryNameOfALedgerLeadsToItsRealPath(t *testing.T) {
	l := lived(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(l.path, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(l.path))
	for _, name := range []string{l.path, link, "ledger.db", "./ledger.db", filepath.Dir(l.path) + "/../" + filepath.Base(filepath.Dir(l.path)) + "/ledger.db"} {
		opened, err := ledger.Open(t.Context(), name, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if opened.Path() != l.path {
			t.Errorf("%q leads to %q, want %q", name, opened.Path(), l.path)
		}
		opened.Close()
	}
}
