package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/ledger"
	"countersign/transports"
)

// NotConfiguredError says that a transport isn't there, and what to add to have it.
type NotConfiguredError struct {
	Platform   string
	Configured []string // the platforms that are there
}

func (e *NotConfiguredError) Error() string {
	have := "none is"
	if len(e.Configured) > 0 {
		have = strings.Join(e.Configured, ", ") + " is"
	}
	return fmt.Sprintf("platform %q has no transport (configured: %s); add a section [transports.%s] to the configuration", e.Platform, have, e.Platform)
}

// GateError says which gate refused a draft, and why.
type GateError struct{ Gate, Reason string }

func (e *GateError) Error() string { return e.Gate + " gate refused this draft: " + e.Reason }

// File takes a draft through the gates, in this order, and stores it as an obligation that waits for an operator. It authorises
// nothing, and nothing is told to the counterparty.
func (d *Desk) File(ctx context.Context, filing ledger.Filing) (ledger.Filed, error) {
	draft, err := ledger.Clean(filing, d.limits) // 1. what is stored, hashed and shown from here on
	if err != nil {
		return ledger.Filed{}, d.refuse(ctx, filing, err)
	}
	if filed, repeated, err := d.Ledger.Repeated(ctx, draft); err != nil || repeated { // 2. idempotency
		return filed, err
	}
	if err := allowed(draft.Filing()); err != nil { // 3. policy
		return ledger.Filed{}, d.refuse(ctx, filing, err)
	}
	// 4. Sticky rejection and review memory belong here; this version refuses nothing on their account.
	if draft, err = d.destination(ctx, draft); err != nil { // 5. destination
		return ledger.Filed{}, d.refuse(ctx, filing, err)
	}
	gates := ledger.Gates{Warnings: []string{noBaseline}} // 6. baseline
	return d.Ledger.File(ctx, draft, gates)               // 7. to 11. marks, signal, hash, upsert, notice: one transaction
}

const noBaseline = "no baseline checker is configured: nothing was compared with the record of signed contracts"

// allowed is the policy of this version: every message waits for an operator, and no machine approves anything.
func allowed(f ledger.Filing) error {
	if f.AutoSendAfter != 0 {
		return &GateError{Gate: "policy", Reason: "auto-approval is not allowed; file without --auto-send-after, and the draft waits for an operator"}
	}
	return nil
}

// destination resolves a channel's name to its id, once, so that the id is what is approved, and asks the transport whether it could
// send exactly this there.
func (d *Desk) destination(ctx context.Context, draft ledger.Draft) (ledger.Draft, error) {
	f := draft.Filing()
	transport, ok := d.transports[f.Platform]
	if !ok {
		return draft, &NotConfiguredError{Platform: f.Platform, Configured: d.Platforms()}
	}
	if resolver, ok := transport.(transports.Resolver); ok {
		channel, err := resolver.Resolve(ctx, f.Channel)
		if err != nil {
			return draft, err
		}
		if draft, err = draft.At(channel); err != nil {
			return draft, err
		}
		f = draft.Filing()
	}
	return draft, transport.Validate(transports.Message{Platform: f.Platform, Channel: f.Channel, Thread: f.Thread, Subject: f.Subject, Text: f.Text})
}

// refuse records a gate's refusal; the ledger records its own.
func (d *Desk) refuse(ctx context.Context, filing ledger.Filing, cause error) error {
	return errors.Join(cause, d.Ledger.RecordRefusal(ctx, "file", filing.Agent, 0, cause))
}
