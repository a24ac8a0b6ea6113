// Package desk answers one question: how do the parts work together?
//
// It is the composed application that the command line and library callers use. It opens what a configuration names, and shows in one
// function the order of the gates of a filing (File), and in another the order of a delivery (Deliver).
package desk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"countersign/config"
	"countersign/ledger"
	"countersign/operator"
	"countersign/sweep"
	"countersign/transports"
)

// Desk is an open configuration: the ledger, the operators, and the transports that are configured.
type Desk struct {
	// Ledger serves reads, and the steps that need no gate before them.
	Ledger *ledger.Ledger

	config     *config.Config
	limits     ledger.Limits
	operators  *operator.Directory
	transports map[string]transports.Transport
	sweeper    *sweep.Sweeper
	surface    surface
	names      names
	now        func() time.Time
	log        *slog.Logger
}

// Options inject what tests set. The zero value is ready for use.
type Options struct {
	Now func() time.Time // time.Now
	Log *slog.Logger     // nothing is logged
}

// ConfigError says which section of the configuration can't be used, for a reason that only its user could find.
type ConfigError struct {
	Section string
	Err     error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("configuration: [%s]: %v", e.Section, e.Err) }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// Open opens what the configuration names. Nothing is created and nothing is dialled.
func Open(ctx context.Context, c *config.Config, opts Options) (*Desk, error) {
	operators, err := operator.NewDirectory(c.Operators)
	if err != nil {
		return nil, &ConfigError{Section: "operators", Err: err}
	}
	d := &Desk{config: c, limits: ledger.Limits(c.Limits), operators: operators, now: opts.Now, log: opts.Log}
	if d.now == nil {
		d.now = time.Now
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.transports, err = openTransports(c.Transports, opts.Now); err != nil {
		return nil, err
	}
	d.Ledger, err = ledger.Open(ctx, c.Ledger.Path, ledger.Options{Now: opts.Now, BusyTimeout: c.Ledger.BusyTimeout, Route: d.route,
		Agents: ledger.AgentLimits{Waiting: c.Agents.MaxWaiting, Hourly: c.Agents.MaxHourly}, Hook: c.Followups.Configured()})
	if err != nil {
		return nil, err
	}
	d.sweeper = sweep.New(d.Ledger, sweep.Fixed(d.transports))
	return d, nil
}

// Close closes the ledger.
func (d *Desk) Close() error { return d.Ledger.Close() }

// Platforms lists the platforms that have a transport.
func (d *Desk) Platforms() []string { return slices.Sorted(maps.Keys(d.transports)) }

// Operator authenticates a terminal token. A failure is recorded, and tells the caller nothing but that it failed.
func (d *Desk) Operator(ctx context.Context, token string) (operator.Operator, error) {
	op, err := d.operators.ByToken(token)
	if err != nil {
		err = errors.Join(err, d.Ledger.RecordRefusal(ctx, "authenticate", "unauthenticated", 0, err))
	}
	return op, err
}

// route says where internal notices go. They are queued for the internal destination, which is verified before each batch; without one
// they stay in the ledger and on the operator's surface. There is no fall-back.
func (d *Desk) route() ledger.Notice {
	if d.config.Internal == nil {
		return ledger.Notice{Routed: ledger.RoutedRetained, Reason: "no internal destination is configured"}
	}
	return ledger.Notice{Routed: ledger.RoutedInternal, Reason: "queued for the internal destination, which is verified before anything is told"}
}
