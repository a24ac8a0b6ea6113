package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) waitCommand() *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until an obligation is decided, or until it has ended",
		ArgsUsage: "ID",
		Category:  categoryAgents,
		Description: manual{
			text: `It only looks. Until "decided": an operator has approved or rejected it, or it was closed. Until
"done": it is sent, rejected or closed, or its delivery is held as unknown. The answer is the
same when the time is over; the exit code tells.`,
			examples: []string{
				"countersign wait 431 --timeout 10m",
				"countersign wait 431 --timeout 1h --until decided --json",
			},
			exits: []exitNote{{exitTryLater, "the time is over, and it still waits"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "timeout", Usage: "wait `TIME` at most; 0s looks once", Value: 5 * time.Minute},
			&cli.StringFlag{Name: "until", Usage: "`WHAT` to wait for: decided or done", Value: untilDone},
		},
		Action: a.wait,
	}
}

const (
	untilDecided = "decided"
	untilDone    = "done"
)

// waited is how an obligation stands when the waiting ends.
type waited struct {
	ObligationID int64                 `json:"obligation_id"`
	Status       ledger.Status         `json:"status"`
	Epoch        int64                 `json:"epoch"`
	Done         bool                  `json:"done"` // what was waited for has come
	Claim        *ledger.HeldClaim     `json:"claim"`
	Delivery     *ledger.DeliveryShown `json:"delivery"`
}

func (a *app) wait(c *cli.Context) error {
	id, err := oneID(c)
	if err != nil {
		return err
	}
	timeout, err := notNegative(c, "timeout")
	if err != nil {
		return err
	}
	until := c.String("until")
	if until != untilDecided && until != untilDone {
		return usagef("--until is %s or %s, not %q", untilDecided, untilDone, until)
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		var last waited
		if _, err := a.poll(c.Context, timeout, func() (bool, error) {
			o, err := d.Ledger.Status(c.Context, id)
			last = waited{o.ObligationID, o.Status, o.Epoch, reached(o, until), o.Claim, o.Delivery}
			return last.Done, err
		}); err != nil {
			return err
		}
		return a.tellWaited(last, timeout)
	})
}

// reached tells if there is nothing to wait for any more.
func reached(o ledger.Standing, until string) bool {
	switch o.Status {
	case ledger.StatusSent, ledger.StatusRejected, ledger.StatusClosed:
		return true
	case ledger.StatusApproved:
		return until == untilDecided || o.Claim != nil && o.Claim.State == ledger.ClaimUnknown
	default:
		return false
	}
}

func (a *app) tellWaited(w waited, timeout time.Duration) error {
	err := a.out.show(w, func(p *page) {
		list := []field{{"obligation", fmt.Sprint(w.ObligationID)}, {"status", string(w.Status)}, {"epoch", fmt.Sprint(w.Epoch)}}
		if w.Claim != nil {
			list = append(list, field{"claim", string(w.Claim.State)})
		}
		if w.Delivery != nil {
			list = append(list, field{"receipt", w.Delivery.Kind + " " + w.Delivery.Coordinate})
		}
		p.fields(list...)
	})
	if err == nil && !w.Done {
		err = exitf(exitTryLater, kindTimeout, "obligation %d is still %s after %s", w.ObligationID, w.Status, timeout)
	}
	return err
}
