package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// scenes are obligations whose first pass makes calls of every kind.
var scenes = map[string]func(d *desk) int64{
	"drafted": func(d *desk) int64 { return d.file(filing("a short text")).ObligationID },
	"long":    func(d *desk) int64 { return d.file(filing(strings.Repeat("a long text\n", 1_500))).ObligationID },
	"unknown": func(d *desk) int64 { c := d.begun(filing("lost?")); d.unknown(c); return c.ObligationID },
	"altered": func(d *desk) int64 { c := d.begun(filing("changed")); d.complete(c, true); return c.ObligationID },
	"told once and then rejected": func(d *desk) int64 {
		filed := d.file(filing("bad"))
		d.pass()
		d.decide(filed, ledger.Reject)
		return filed.ObligationID
	},
}

// At each message of a pass Slack fails before or after the effect; one clean pass later everything was told, and no card can do what it doesn't show.
func TestAFailureAtEachMessageLosesNoNotice(t *testing.T) {
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			scene(d)
			before := d.counts()
			d.pass()
			after := d.counts()
			for _, method := range []string{"chat.postMessage", "chat.update"} {
				for call := range after[method] - before[method] {
					for kind, outcome := range map[string]fakeslack.Outcome{"refused": fakeslack.Fail("internal_error"), "cut before": fakeslack.Reset(),
						"cut after": fakeslack.After(fakeslack.Reset()), "garbled after": fakeslack.After(fakeslack.CutJSON())} {
						d.party = fmt.Sprintf("%s at %s %d", kind, method, call+1)
						failAt(d, scene, method, append(make([]fakeslack.Outcome, call), outcome))
					}
				}
			}
		})
	}
}

func failAt(d *desk, scene func(*desk) int64, method string, outcomes []fakeslack.Outcome) {
	d.t.Helper()
	id := scene(d)
	notices := len(d.subject(id).Notices)
	d.slack.Script(method, outcomes...)
	out, err := d.Pass(d.t.Context())
	if err == nil || ignoreExpected(err) != nil {
		d.t.Errorf("%s: the pass ended with %v", d.party, err)
	}
	if told := out.Told + d.pass().Told; told != notices {
		d.t.Errorf("%s: %d of %d notices told", d.party, told, notices)
	}
	d.checkSound(id)
}

// ignoreExpected lets through what a pass may end with when Slack fails.
func ignoreExpected(err error) error {
	switch err.(type) {
	case *notify.LaterError, *notify.UnverifiedError:
		return nil
	}
	return err
}

func (d *desk) counts() map[string]int {
	n := map[string]int{}
	for _, r := range d.slack.Requests("") {
		n[r.Method]++
	}
	return n
}

func TestARateLimitStopsThePass(t *testing.T) {
	for _, method := range []string{"auth.test", "conversations.info", "chat.postMessage", "chat.update"} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t)
			d.file(filing("one"))
			other := filing("two")
			other.Counterparty = "globex"
			d.file(other)
			d.slack.Script(method, fakeslack.RateLimited(30))
			_, err := d.Pass(t.Context())
			if got := retryAfter(err); got != 30*time.Second {
				t.Errorf("it waits %s after %v", got, err)
			}
			if got := len(d.slack.Requests(method)); got != 1 {
				t.Errorf("%d calls of %s", got, method)
			}
			if len(d.queued()) != 2 {
				t.Errorf("queued: %v", d.queued())
			}
		})
	}
}

// retryAfter is what a stopped pass tells of how long Slack wants to be left alone.
func retryAfter(err error) time.Duration {
	var later *notify.LaterError
	var limited *slackgo.RateLimitedError
	switch {
	case errors.As(err, &later):
		return later.RetryAfter
	case errors.As(err, &limited):
		return limited.RetryAfter
	}
	return 0
}

func TestARefusalOfOneStopsNoOther(t *testing.T) {
	d := newDesk(t)
	first := d.file(filing("one"))
	other := filing("two")
	other.Counterparty = "globex"
	second := d.file(other)
	d.slack.Script("chat.postMessage", fakeslack.Fail("invalid_blocks"))
	out, err := d.Pass(t.Context())
	must(t, err)
	if len(out.Failed) != 1 || out.Failed[0].ObligationID != first.ObligationID || !strings.Contains(out.Failed[0].Error, "invalid_blocks") {
		t.Errorf("failed: %+v", out.Failed)
	}
	if asJSON(t, out.Posted) != fmt.Sprintf("[%d]", second.ObligationID) || asJSON(t, d.queued()) != fmt.Sprintf("[%d]", first.ObligationID) {
		t.Errorf("posted %v, queued %v", out.Posted, d.queued())
	}
	d.pass()
	d.checkSound(first.ObligationID)
}

func TestADeletedCardIsPostedAnew(t *testing.T) {
	for _, code := range []string{"message_not_found", "cant_update_message"} {
		d := newDesk(t)
		filed := d.file(filing("one"))
		d.pass()
		old := d.card(filed.ObligationID)
		d.file(filing("one, mended"))
		d.slack.Script("chat.update", fakeslack.Fail(code))
		if out := d.pass(); len(out.Posted) != 1 || len(out.Edited) != 0 {
			t.Errorf("%+v", out)
		}
		if card := d.card(filed.ObligationID); card.TS == old.TS || actions(card) != "approve request_changes reject" {
			t.Errorf("%s: the card is %s with %q", code, card.TS, actions(card))
		}
	}
}

// A second pass at the same time does nothing, whichever process it is in.
func TestOnePassWorksAtATime(t *testing.T) {
	var d *desk
	var inner notify.Report
	var err error
	d = newDesk(t, func(o *notify.Options) {
		o.Describe = func(ctx context.Context, _, _ string) (notify.Destination, error) {
			inner, err = d.Pass(ctx)
			return notify.Destination{Name: "#acme & co", External: true, Known: true}, nil
		}
	})
	filed := d.file(filing("one"))
	d.pass()
	if err != nil || !inner.Busy || len(inner.Posted) > 0 {
		t.Errorf("%+v, %v", inner, err)
	}
	if card := words(d.card(filed.ObligationID)); !strings.Contains(card, "The provider calls it: #acme & co") || !strings.Contains(card, "EXTERNAL:") {
		t.Errorf("the card does not name the destination:\n%s", card)
	}
}
