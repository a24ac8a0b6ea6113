package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

const (
	// digestLife is how long a reminder is edited before a new one is posted: an edit rings no bell.
	digestLife = 24 * time.Hour
	// digestLines bounds a reminder.
	digestLines = 20
	nothing     = "Nothing waits too long for a decision."
	goesOn      = "This reminder goes on in a newer message below."
)

// overdue is a draft that waits longer than its priority allows.
type overdue struct {
	id   int64
	line string
}

// remind keeps one message in the channel that names the drafts which wait too long. It is edited as they change, and posted anew once a
// day, or when something waits too long after nothing did. The channel is verified only where there is something to say.
func (n *Notifier) remind(ctx context.Context) error {
	late, err := n.overdue(ctx)
	if err != nil {
		return err
	}
	d, err := n.ledger.DigestIn(ctx, n.internal.Channel)
	if err != nil {
		return err
	}
	said := digestHash(late)
	live := d.TS != "" && d.ContentSHA256 != nothing
	fresh := live && n.opts.Now().Sub(time.Unix(d.PostedTS, 0)) < digestLife
	if len(late) == 0 && !live || said == d.ContentSHA256 && fresh {
		return nil
	}
	if err := n.Verify(ctx); err != nil {
		return err
	}
	if len(late) == 0 {
		return n.endDigest(ctx, d)
	}
	m, err := n.digest(ctx, late)
	if err != nil {
		return err
	}
	if fresh {
		err := n.editDigest(ctx, d.TS, m, said)
		if !gone(err) {
			return later(err)
		}
	}
	return n.newDigest(ctx, d, live, m, said)
}

func (n *Notifier) editDigest(ctx context.Context, ts string, m Message, said string) error {
	if _, err := n.edit(ctx, ts, m); err != nil {
		return err
	}
	return n.ledger.RecordDigest(ctx, n.internal.Channel, ts, said)
}

// newDigest posts a reminder that rings, and turns the one before into a pointer.
func (n *Notifier) newDigest(ctx context.Context, before ledger.Digest, live bool, m Message, said string) error {
	r, err := n.post(ctx, "", m)
	if err != nil {
		return later(err)
	}
	if err := n.ledger.RecordDigest(ctx, n.internal.Channel, r.ts, said); err != nil || !live {
		return err
	}
	if _, err := n.edit(ctx, before.TS, Message{Fallback: goesOn, Blocks: sections(goesOn)}); err != nil && !gone(err) {
		return later(err)
	}
	return nil
}

func (n *Notifier) endDigest(ctx context.Context, d ledger.Digest) error {
	if _, err := n.edit(ctx, d.TS, Message{Fallback: nothing, Blocks: sections(nothing)}); err != nil && !gone(err) {
		return later(err)
	}
	return n.ledger.RecordDigest(ctx, n.internal.Channel, d.TS, nothing)
}

// overdue lists what waits too long, the most urgent first.
func (n *Notifier) overdue(ctx context.Context) ([]overdue, error) {
	soonest := time.Duration(0)
	for _, limit := range n.opts.Remind {
		if limit > 0 && (soonest == 0 || limit < soonest) {
			soonest = limit
		}
	}
	if soonest == 0 {
		return nil, nil
	}
	now := n.opts.Now()
	waiting, err := n.ledger.Waiting(ctx, ledger.ListFilter{FiledBefore: now.Add(time.Microsecond - soonest)})
	if err != nil {
		return nil, err
	}
	var out []overdue
	for _, o := range waiting {
		if limit := n.opts.Remind[o.Priority]; limit > 0 && now.Sub(time.Unix(o.FiledTS, 0)) >= limit {
			out = append(out, overdue{o.ObligationID, fmt.Sprintf("%s · #%d · %s · since %s", o.Priority, o.ObligationID, oneLine(o.Counterparty), at(o.FiledTS))})
		}
	}
	return out, nil
}

func digestHash(late []overdue) string {
	var lines []string
	for _, o := range late {
		lines = append(lines, o.line)
	}
	return ledger.HashText(strings.Join(lines, "\n"))
}

// digest is the reminder: a line for each draft, with a link to its card where there is one.
func (n *Notifier) digest(ctx context.Context, late []overdue) (Message, error) {
	m := Message{Fallback: count(len(late), "draft") + " too long without a decision.",
		Blocks: []slackgo.Block{header("", "Waiting too long for a decision", "")}}
	for i, o := range late {
		if i == digestLines {
			m.Blocks = append(m.Blocks, sections(fmt.Sprintf("and %d more: countersign list", len(late)-i))...)
			break
		}
		link, err := n.link(ctx, o.id)
		if err != nil {
			return m, err
		}
		row := slackgo.NewSectionBlock(Text(Plain(o.line)), nil, nil)
		if link != "" {
			row.Accessory = slackgo.NewAccessory(slackgo.NewButtonBlockElement("open", "", Text("Open")).WithURL(link))
		}
		m.Blocks = append(m.Blocks, row)
	}
	return m, nil
}

// link is the address of an obligation's card, "" where Slack gives none.
func (n *Notifier) link(ctx context.Context, obligation int64) (string, error) {
	s, err := n.ledger.Subject(ctx, obligation, n.internal.Channel)
	if err != nil || s.Card == nil {
		return "", err
	}
	link, err := n.api.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: s.Card.Channel, Ts: s.Card.TS})
	var limited *slackgo.RateLimitedError
	if errors.As(err, &limited) {
		return "", later(err)
	}
	if err != nil {
		return "", nil // the line names the obligation without it
	}
	return link, nil
}
