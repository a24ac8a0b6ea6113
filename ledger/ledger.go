package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"countersign/schema"
)

// DefaultBusyTimeout is how long a step waits for another process's write lock before it gives up with ErrBusy.
const DefaultBusyTimeout = 5 * time.Second

// Terms are the conditions that an approval has to meet at the moment it is used.
type Terms struct {
	MaxAge time.Duration // 0: no limit
}

// Options inject what the rules depend on. The zero value is ready for use. Now, Token, Terms and Route may be called from several
// goroutines, and inside a step's write transaction: they must answer at once, from memory, and must not call the ledger. One that waits
// holds up every process on the ledger; a step that it calls deadlocks, since it waits for the transaction that waits for it.
type Options struct {
	Now         func() time.Time            // time.Now
	Token       func() (string, error)      // 256 random bits, hex
	Terms       func(platform string) Terms // no limits
	Route       func() Notice               // where internal notices go: retained, since there is no destination
	Agents      AgentLimits                 // no limits
	Hook        bool                        // keep each follow-up for the agents' hook (HookDue) too
	BusyTimeout time.Duration               // DefaultBusyTimeout
}

// Ledger is an open ledger. It is safe for concurrent use. Every exported step is one transaction.
type Ledger struct {
	path        string
	opened      os.FileInfo // the file, as it was opened
	id          string
	write, read *sql.DB
	compiled    *compiled
	opts        Options
}

// Create makes a new, empty ledger at path; an existing file is never touched.
func Create(ctx context.Context, path string) error {
	id, err := randomToken()
	if err != nil {
		return err
	}
	return schema.Create(ctx, path, id[:32])
}

// Open opens the ledger at path. The file is looked at before anything can write to it; what is missing, empty, damaged, foreign, of
// another version or without its guards is refused with an error of package schema that names the file.
func Open(ctx context.Context, path string, opts Options) (*Ledger, error) {
	real, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	kind, err := schema.Look(real)
	if err != nil {
		return nil, err
	}
	if kind == schema.Foreign {
		return nil, &schema.UpgradeError{Path: real}
	}
	// Locks and spool lie beside the real file, so that every name of it leads to the same ones.
	if real, err = filepath.EvalSymlinks(real); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{path: real, opts: withDefaults(opts)}
	if l.opened, err = os.Stat(real); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := l.connect(ctx); err != nil {
		return nil, errors.Join(l.translate(err), l.Close())
	}
	return l, nil
}

func (l *Ledger) connect(ctx context.Context) (err error) {
	if l.write, err = schema.Connect(l.path, schema.Write, l.opts.BusyTimeout); err != nil {
		return err
	}
	l.compiled = newCompiled(l.write)
	if l.read, err = schema.Connect(l.path, schema.Read, l.opts.BusyTimeout); err != nil {
		return err
	}
	if err := schema.Check(ctx, l.read, l.path); err != nil {
		return err
	}
	return l.read.QueryRowContext(ctx, `SELECT value FROM ledger_meta WHERE key = 'ledger_id'`).Scan(&l.id)
}

// Close closes the ledger. Steps that run end first.
func (l *Ledger) Close() error {
	var errs []error
	for _, db := range []*sql.DB{l.write, l.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// Path is the real path of the ledger's file.
func (l *Ledger) Path() string { return l.path }

// StillThere tells whether the ledger's path still leads to the file that was opened, and to no copy or newer one. A worker asks before
// it sends: on a file that was moved away it can't see what others do on it. Looking opens nothing, so that no lock is dropped.
func (l *Ledger) StillThere() error {
	now, err := os.Stat(l.path)
	if err != nil || !os.SameFile(l.opened, now) {
		return &MovedError{l.path}
	}
	return nil
}

// ID identifies the ledger: random, made at its creation.
func (l *Ledger) ID() string { return l.id }

func withDefaults(o Options) Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Token == nil {
		o.Token = randomToken
	}
	if o.Terms == nil {
		o.Terms = func(string) Terms { return Terms{} }
	}
	if o.Route == nil {
		o.Route = func() Notice { return Notice{Routed: RoutedRetained, Reason: "no internal destination is configured"} }
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	return o
}

func randomToken() (string, error) {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("random token: %w", err)
	}
	return hex.EncodeToString(raw[:]), nil
}
