package interact

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
)

// click is an interaction as far as it matters here: who did what on which card. Of it only team and user are believed, since Slack
// signed for them; the rest is compared with the ledger.
type click struct {
	team, user string // of the person, whose own team may be another than the channel's
	action     string // one of notify's actions
	ref        notify.Ref
	card       ledger.CardRef
	nonce      string
	trigger    string // opens a modal, for three seconds
	view       string // the modal that was submitted; "" for a button
	words      string // what the person wrote: a reason, a note or evidence
	coordinate string
	tooFast    bool // the card changed in the moment before
}

// settling is how long a card stands still before an approval of it counts: the button that was aimed at may have been another's.
const settling = 1500 * time.Millisecond

// errNothing is an interaction that asks for nothing: a link that was opened, a modal that was closed.
var errNothing = errors.New("nothing to do")

// read takes a click out of the library's callback.
func read(call slackgo.InteractionCallback) (click, error) {
	switch call.Type {
	case slackgo.InteractionTypeBlockActions:
		return readButton(call)
	case slackgo.InteractionTypeViewSubmission:
		return readModal(call)
	}
	return click{}, errNothing
}

func readButton(call slackgo.InteractionCallback) (click, error) {
	c := person(call)
	c.card = ledger.CardRef{Channel: call.Container.ChannelID, TS: call.Container.MessageTs}
	if len(call.ActionCallback.BlockActions) != 1 || call.View.ID != "" {
		return c, errNothing
	}
	button := call.ActionCallback.BlockActions[0]
	if !decides(button.ActionID) {
		return c, errNothing
	}
	c.action, c.trigger = button.ActionID, call.TriggerID
	c.nonce = nonce(c, button.ActionTs)
	c.tooFast = changedBefore(call.Message.Edited, button.ActionTs)
	var err error
	c.ref, err = notify.ParseRef(button.Value)
	return c, err
}

// readModal takes the click that opened the modal out of its metadata: the nonce is that click's, so that a submission that is delivered
// twice decides once.
func readModal(call slackgo.InteractionCallback) (click, error) {
	c := person(call)
	var m metadata
	if err := json.Unmarshal([]byte(call.View.PrivateMetadata), &m); err != nil {
		return c, fmt.Errorf("the modal's metadata: %w", err)
	}
	c.action, c.ref, c.card, c.nonce, c.view = m.Action, m.Ref, ledger.CardRef{Channel: m.Channel, TS: m.TS}, m.Nonce, call.View.ID
	if m.Opener != c.user {
		return c, fmt.Errorf("another person opened this dialog: %w", operator.ErrNotAuthorised)
	}
	if !decides(m.Action) {
		return c, errNothing
	}
	if call.View.State != nil {
		c.words = strings.TrimSpace(call.View.State.Values[blockWords][inputID].Value)
		c.coordinate = strings.TrimSpace(call.View.State.Values[blockCoordinate][inputID].Value)
	}
	return c, nil
}

func person(call slackgo.InteractionCallback) click {
	c := click{team: call.User.TeamID, user: call.User.ID}
	if c.team == "" {
		c.team = call.Team.ID
	}
	return c
}

func decides(action string) bool {
	switch action {
	case notify.ActionApprove, notify.ActionChanges, notify.ActionReject, notify.ActionUndo, notify.ActionArrived, notify.ActionNotArrived:
		return true
	}
	return false
}

// nonce names a click by all that makes it one. The parts are joined as JSON, which nothing in them can imitate.
func nonce(c click, actionTS string) string {
	joined, err := json.Marshal([]string{c.team, c.user, c.card.Channel, c.card.TS, c.action, actionTS})
	if err != nil {
		panic(err) // an array of strings always has a JSON form
	}
	return "slack:" + ledger.HashText(string(joined))
}

// changedBefore tells whether the message was edited in the moment before the click, by Slack's own clock.
func changedBefore(edited *slackgo.Edited, actionTS string) bool {
	if edited == nil {
		return false
	}
	before, err1 := slackTime(edited.Timestamp)
	clicked, err2 := slackTime(actionTS)
	return err1 == nil && err2 == nil && clicked.Sub(before) < settling
}

// slackTime reads a timestamp of Slack's: seconds and microseconds, with a point between.
func slackTime(ts string) (time.Time, error) {
	sec, frac, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	us, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(s, us*1000), nil
}
