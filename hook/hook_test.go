package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/hook"
)

func TestAPassHandsOverWhatIsDueInOrder(t *testing.T) {
	q := newQueue(t)
	q.tell("a", "a1", "a2")
	q.tell("b", "b1")
	to := &scripted{}
	report := pass(t, hook.New(q, to))
	if got := strings.Join(to.got, " "); got != "a1 b1 a2" {
		t.Errorf("handed over: %s", got)
	}
	if ids(report.Taken) != "1 3 2" || len(report.Failed)+len(report.Behind) != 0 || q.rows() != "" {
		t.Errorf("report %+v, rows left: %s", report, q.rows())
	}
	if f := report.Taken[1]; f != (hook.FollowUp{ID: 3, Agent: "b", ObligationID: 2, Kind: "steered"}) {
		t.Errorf("reported: %+v", f)
	}
	if report := pass(t, hook.New(q, to)); len(to.got) != 3 || len(report.Taken) != 0 {
		t.Errorf("the second pass handed over %s", to.got)
	}
	empty, err := json.Marshal(pass(t, hook.New(q, to)))
	if err != nil || string(empty) != `{"taken":[],"failed":[],"behind":[]}` {
		t.Errorf("%s, %v", empty, err)
	}
}

func TestAFailureHoldsUpOnlyLaterOnesOfTheSameAgentAndOnlyInThisPass(t *testing.T) {
	q := newQueue(t)
	q.tell("a", "a1", "a2", "a3")
	q.tell("b", "b1", "b2")
	to := &scripted{fail: map[string]error{"a2": errors.New("status 503")}}
	report := pass(t, hook.New(q, to))
	if got := strings.Join(to.got, " "); got != "a1 b1 a2 b2" {
		t.Errorf("handed over: %s", got)
	}
	if ids(report.Taken) != "1 4 5" || ids(report.Failed) != "2" || ids(report.Behind) != "3" || report.Failed[0].Error != "status 503" {
		t.Errorf("report %+v", report)
	}
	if got := q.rows(); got != "2 1 1m0s status 503\n3 0 now" {
		t.Errorf("rows: %s", got)
	}
	to.got = nil
	pass(t, hook.New(q, to))
	if got := strings.Join(to.got, " "); got != "a3" || q.rows() != "2 1 1m0s status 503" {
		t.Errorf("the next pass handed over %s; rows: %s", got, q.rows())
	}
	q.now = q.now.Add(time.Minute)
	to.fail, to.got = nil, nil
	pass(t, hook.New(q, to))
	if got := strings.Join(to.got, " "); got != "a2" || q.rows() != "" {
		t.Errorf("a minute later it handed over %s; rows: %s", got, q.rows())
	}
}

func TestTheWaitDoublesUpToSixHours(t *testing.T) {
	q := newQueue(t)
	q.tell("a", "a1")
	to := &scripted{fail: map[string]error{"a1": errors.New("x")}}
	var waits []string
	for n := 1; n <= 12; n++ {
		if report := pass(t, hook.New(q, to)); len(report.Failed) != 1 {
			t.Fatalf("attempt %d: %+v", n, report)
		}
		fields := strings.Fields(q.rows())
		if fields[1] != fmt.Sprint(n) {
			t.Errorf("attempt %d: %s failures", n, fields[1])
		}
		waits = append(waits, fields[2])
		wait, err := time.ParseDuration(fields[2])
		must(t, err)
		q.now = q.now.Add(wait - time.Microsecond)
		if report := pass(t, hook.New(q, to)); len(report.Failed) != 0 {
			t.Fatalf("attempt %d was repeated too early", n)
		}
		q.now = q.now.Add(time.Microsecond)
	}
	if got := strings.Join(waits, " "); got != "1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h4m0s 2h8m0s 4h16m0s 6h0m0s 6h0m0s 6h0m0s" {
		t.Errorf("waits: %s", got)
	}
}

// More than one batch: a long queue took one pass for each hundred, and a failing one at its head all of them.
func TestAPassTakesTheWholeQueue(t *testing.T) {
	q := newQueue(t)
	notes := func(name string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(name, i))
		}
		return out
	}
	q.tell("stuck", notes("s", 120)...)
	q.tell("busy", notes("b", 120)...)
	q.tell("late", "l0")
	to := &scripted{fail: map[string]error{"s0": errors.New("x")}}
	report := pass(t, hook.New(q, to))
	if len(report.Taken) != 121 || len(report.Failed) != 1 || len(report.Behind) == 0 || len(to.got) != 122 || to.got[2] != "l0" {
		t.Errorf("%d taken, %d failed, %d behind; %d were handed over: %s …", len(report.Taken), len(report.Failed), len(report.Behind), len(to.got), to.got[:3])
	}
	if left := strings.Count(q.rows(), "\n") + 1; left != 120 {
		t.Errorf("%d are left", left)
	}
}

func TestAReceiverThatIsNotReadyPutsNothingOff(t *testing.T) {
	q := newQueue(t)
	to := &scripted{notReady: errors.New("the secret is not there")}
	if _, err := hook.New(q, to).Pass(t.Context()); err != nil {
		t.Errorf("with nothing to hand over: %v", err) // and so nothing reads a secret either
	}
	q.tell("a", "a1")
	report, err := hook.New(q, to).Pass(t.Context())
	if !errors.As(err, new(*hook.NotReadyError)) || !errors.Is(err, to.notReady) || len(to.got) != 0 || len(report.Failed) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if got := q.rows(); got != "1 0 now" {
		t.Errorf("rows: %s", got)
	}
}

func TestAnEndedPassFinishesWhatIsInHand(t *testing.T) {
	q := newQueue(t)
	q.tell("a", "a1", "a2", "a3")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	to := &scripted{before: func(word string) {
		if word == "a2" {
			cancel()
		}
	}}
	report, err := hook.New(q, to).Pass(ctx)
	if !errors.Is(err, context.Canceled) || ids(report.Taken) != "1 2" || len(report.Failed) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if got := q.rows(); got != "3 0 now" {
		t.Errorf("rows: %s", got)
	}
}

// unreliable is a queue whose record of a success is lost once.
type unreliable struct {
	*queue
	lost error
}

func (u *unreliable) HookTaken(ctx context.Context, id int64) error {
	if err := u.lost; err != nil {
		u.lost = nil
		return err
	}
	return u.queue.HookTaken(ctx, id)
}

func TestALostRecordIsHandedOverAgain(t *testing.T) {
	q := &unreliable{queue: newQueue(t), lost: errors.New("busy")}
	lost := q.lost
	q.tell("a", "a1")
	to := &scripted{}
	if _, err := hook.New(q, to).Pass(t.Context()); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	pass(t, hook.New(q, to))
	if got := strings.Join(to.got, " "); got != "a1 a1" || q.rows() != "" {
		t.Errorf("handed over: %s; rows: %s", got, q.rows())
	}
}
