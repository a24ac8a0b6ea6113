package notify_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// silent makes a pass that must tell nothing to anybody, and keep what is queued.
func (d *desk) silent() {
	d.t.Helper()
	queued := asJSON(d.t, d.queued())
	calls := d.calls()
	_, err := d.Pass(d.t.Context())
	want[*notify.UnverifiedError](d.t, err)
	if d.calls() != calls || asJSON(d.t, d.queued()) != queued || queued == "[]" {
		d.t.Errorf("%d messages, queued %s and then %v", d.calls()-calls, queued, d.queued())
	}
	for _, line := range d.audit("told") {
		d.t.Errorf("told: %+v", line)
	}
}

func (d *desk) audit(event string) (rows []ledger.AuditEntry) {
	d.t.Helper()
	all, err := d.Audit(d.t.Context(), ledger.AuditFilter{})
	must(d.t, err)
	for _, row := range all {
		if row.Event == event {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestOnlyAVerifiedInternalDestinationGetsANotice(t *testing.T) {
	for name, change := range map[string]func(*fakeslack.Channel){
		"shared with another organisation": func(c *fakeslack.Channel) { c.IsExtShared = true },
		"about to be shared":               func(c *fakeslack.Channel) { c.IsPendingExtShared = true },
		"shared with another workspace":    func(c *fakeslack.Channel) { c.IsOrgShared = true },
		"another workspace's":              func(c *fakeslack.Channel) { c.ContextTeamID = "T0OTHER" },
		"connected to another workspace":   func(c *fakeslack.Channel) { c.ConnectedTeamIDs = []string{fakeslack.TeamID, "T0OTHER"} },
		"a direct message":                 func(c *fakeslack.Channel) { c.IsIM = true },
		"a group's direct message":         func(c *fakeslack.Channel) { c.IsMpIM = true },
		"archived":                         func(c *fakeslack.Channel) { c.IsArchived = true },
		"without the app":                  func(c *fakeslack.Channel) { c.IsMember = false },
		"private, without the app":         func(c *fakeslack.Channel) { c.IsMember, c.IsPrivate = false, true },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.file(filing("secret"))
			d.slack.SetChannel(room, change)
			d.silent()
			d.slack.AddChannel(fakeslack.Channel{ID: room, Name: "approvals", IsMember: true})
			if out := d.pass(); out.Told != 1 {
				t.Errorf("verified again: %+v", out)
			}
		})
	}
}

func TestAnotherWorkspaceGetsNoNotice(t *testing.T) {
	d := newDesk(t)
	d.file(filing("secret"))
	d.slack.SetTeam(fakeslack.Team{ID: "T0OTHER"})
	d.silent()
}

// A redirected id is another channel, whatever its name: the answer's own id counts.
func TestAnotherChannelIDGetsNoNotice(t *testing.T) {
	d := newDesk(t)
	d.file(filing("secret"))
	d.slack.Script("conversations.info", fakeslack.Status(200, `{"ok":true,"channel":{"id":"C0ELSE","name":"approvals","is_member":true,"context_team_id":"`+fakeslack.TeamID+`"}}`))
	d.silent()
}

// What Slack leaves out is not known, and so not internal.
func TestAnUnknownOwnerGetsNoNotice(t *testing.T) {
	d := newDesk(t)
	d.file(filing("secret"))
	d.slack.Script("conversations.info", fakeslack.Status(200, `{"ok":true,"channel":{"id":"`+room+`","name":"approvals","is_member":true}}`))
	d.silent()
}

func TestTheOriginGetsANoticeOnlyIfItIsTheInternalDestination(t *testing.T) {
	for channel, told := range map[string]bool{abroad: false, room: true} {
		d := newDesk(t)
		f := filing("text")
		f.Channel = channel
		filed := d.file(f)
		d.pass()
		if got := len(d.slack.Messages(channel)) > 0; got != told {
			t.Errorf("%s was told: %v", channel, got)
		}
		d.checkSound(filed.ObligationID)
	}
}

func TestAnUnknownOriginStaysQuiet(t *testing.T) {
	d := newDesk(t)
	f := filing("text")
	f.Channel, f.User = "C0NOWHERE", "U0NOBODY"
	d.file(f)
	d.pass()
	for _, r := range d.slack.Requests("") {
		if channel := r.Params["channel"]; channel != "" && channel != room {
			t.Errorf("%s to %s", r.Method, channel)
		}
	}
}

func TestThereIsNoFallBack(t *testing.T) {
	for name, outcome := range map[string]fakeslack.Outcome{
		"gone": fakeslack.Fail("channel_not_found"), "revoked": fakeslack.Fail("token_revoked"), "down": fakeslack.Status(503, "<html>"),
		"cut": fakeslack.Reset(), "nonsense": fakeslack.Status(200, `{"ok":true}`),
	} {
		for _, method := range []string{"auth.test", "conversations.info"} {
			t.Run(name+" "+method, func(t *testing.T) {
				d := newDesk(t)
				d.file(filing("secret"))
				d.slack.Script(method, outcome)
				d.silent()
				if text := d.passError(outcome, method); strings.Contains(text, "xoxb") || strings.Contains(text, "127.0.0.1") {
					t.Errorf("the error tells too much: %s", text)
				}
			})
		}
	}
}

func (d *desk) passError(o fakeslack.Outcome, method string) string {
	d.t.Helper()
	d.slack.Script(method, o)
	_, err := d.Pass(d.t.Context())
	return fmt.Sprint(err)
}

// The channel is verified before every batch of obligations: it turns external while a pass works.
func TestAChannelThatTurnsExternalFallsSilent(t *testing.T) {
	d := newDesk(t)
	for i := range 25 {
		f := filing("text")
		f.Counterparty = fmt.Sprintf("party %d", i)
		d.file(f)
	}
	external := `{"ok":true,"channel":{"id":"` + room + `","is_member":true,"is_ext_shared":true,"context_team_id":"` + fakeslack.TeamID + `"}}`
	d.slack.Script("conversations.info", fakeslack.Normal(), fakeslack.Status(200, external))
	out, err := d.Pass(t.Context())
	want[*notify.UnverifiedError](t, err)
	if n := len(out.Posted); n == 0 || n > 20 || len(d.queued()) != 25-n || len(d.slack.Messages(room)) != n {
		t.Errorf("%d posted, %d queued", len(out.Posted), len(d.queued()))
	}
}

// A receipt's footer is told in the internal channel, and the counterparty's gets nothing of ours.
func TestTheCounterpartyGetsNothingOfOurs(t *testing.T) {
	d := newDesk(t)
	d.complete(d.begun(filing("text")), true)
	d.unknown(d.begun(filing("other text")))
	d.pass()
	if got := d.slack.Messages(abroad); len(got) > 0 {
		t.Errorf("the counterparty reads %q", words(got[0]))
	}
	if got := d.slack.Messages(room); len(got) == 0 {
		t.Error("nobody was told")
	}
}
