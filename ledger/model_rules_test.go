package ledger_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/ledger"
)

// model is what the contract says about an obligation's states (sections 4 to 7), in memory and without SQL. It was written from the
// contract: where it and the ledger differ, one of them is wrong.
type model struct {
	maxAge      map[string]time.Duration // of an approval, by platform; 0 is no limit
	obligations []*mObligation           // id is index + 1; so for the others
	decisions   []*mDecision
	told        []mFollowUp
	attempts    []string
	notices     []string
	events      []string // the audit log but its refusals
}

type mObligation struct {
	id                    int64
	counterparty, channel string
	platform              string
	status                ledger.Status
	epoch                 int64
	deadline              int64
	filings               []*mFiling // the newest last; an open signal has none
	byHand                []string   // receipts of kind manual_notice
	overtaken             bool       // closed by a taking back, since a newer draft held the pair
}

type mFiling struct {
	ledger.Filing
	epoch          int64
	hash, envelope string
	result         ledger.Filed // as File returned it the first time
}

type mDecision struct {
	id, obligation, epoch   int64
	verdict                 ledger.Verdict
	operator, reason, nonce string // nonce is empty where the ledger made it
	at                      time.Time
	filing                  *mFiling // what was decided on
	voided                  *mVoiding
	claim                   *mClaim
}

type mVoiding struct {
	kind, actor, reason, nonce string
	reject                     bool
}

type mClaim struct {
	state      ledger.ClaimState
	worker     string
	generation int64
	token, key string // learned from Claim and BeginDispatch
	touched    int64
	coordinate string
	evidence   bool
	altered    bool
	settledBy  string
	outcome    ledger.Outcome
	spooled    bool // delivered by a spooled receipt after it was unknown
}

type mFollowUp struct {
	agent      string
	obligation int64
	kind       string
	acked      bool
}

// mAnswer is what the contract says about one call. Where several reasons forbid it, any true one may be given.
type mAnswer struct {
	refusals []error             // none: the call succeeds
	value    any                 // what it returns then
	accept   func(got any) error // instead of value: the result has parts that no rule predicts, and the model learns them
	either   bool                // the contract leaves open whether it is refused; nothing changes
}

func refuse(reasons ...error) mAnswer { return mAnswer{refusals: reasons} }

// systemName acts where no person and no worker does.
const systemName = "countersign"

func (m *model) obligation(id int64) *mObligation {
	if id < 1 || id > int64(len(m.obligations)) {
		return nil
	}
	return m.obligations[id-1]
}

func (m *model) decision(id int64) *mDecision {
	if id < 1 || id > int64(len(m.decisions)) {
		return nil
	}
	return m.decisions[id-1]
}

func (m *model) of(d *mDecision) *mObligation { return m.obligation(d.obligation) }

func (o *mObligation) newest() *mFiling {
	if len(o.filings) == 0 {
		return &mFiling{}
	}
	return o.filings[len(o.filings)-1]
}

func (o *mObligation) onPair(counterparty, channel string) bool {
	return o.counterparty == counterparty && o.channel == channel
}

func (c *mClaim) active() bool {
	return c != nil && (c.state == ledger.ClaimClaimed || c.state == ledger.ClaimDispatching || c.state == ledger.ClaimUnknown)
}

// holding is the decision whose claim holds the obligation.
func (m *model) holding(o *mObligation) *mDecision {
	for _, d := range m.decisions {
		if d.obligation == o.id && d.claim.active() {
			return d
		}
	}
	return nil
}

// standing is the approval that the obligation rests on now.
func (m *model) standing(o *mObligation) *mDecision {
	for _, d := range slices.Backward(m.decisions) {
		if d.obligation == o.id && d.verdict == ledger.Approve && d.epoch == o.epoch && d.voided == nil {
			return d
		}
	}
	return nil
}

func (m *model) tell(o *mObligation, kind string) { m.tellAgent(o.newest().Agent, o, kind) }

func (m *model) tellAgent(agent string, o *mObligation, kind string) {
	if agent != "" {
		m.told = append(m.told, mFollowUp{agent: agent, obligation: o.id, kind: kind})
	}
}

// event is a row of the audit log. What operators care for is a notice too; how a worker comes along is not.
func (m *model) event(name string, obligation, decision int64) {
	m.events = append(m.events, fmt.Sprintf("%s obligation %d decision %d", name, obligation, decision))
	switch name {
	case "claimed", "adopted", "dispatching", "declared_dead":
	default:
		m.notices = append(m.notices, fmt.Sprintf("%d %s", obligation, name))
	}
}

func (m *model) notice(o *mObligation, kind string) {
	m.notices = append(m.notices, fmt.Sprintf("%d %s", o.id, kind))
}

func advance(now time.Time, epoch int64) int64 { return max(now.Unix(), epoch+1) }

// envelopeOf is the README's recipe, for text that needs no escaping in JSON.
func envelopeOf(f ledger.Filing) string {
	quote := func(s string) string {
		if s == "" {
			return "null"
		}
		return `"` + s + `"`
	}
	return sha(`{"attachments":[],"channel":"` + f.Channel + `","platform":"` + f.Platform + `","schema":"countersign.envelope/v1","subject":` +
		quote(f.Subject) + `,"text_sha256":"` + sha(f.Text) + `","thread":` + quote(f.Thread) + `}`)
}

func sha(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// Section 5: filing.

func (m *model) repeated(f ledger.Filing) (answer mAnswer, found bool) {
	for _, o := range m.obligations {
		for _, first := range o.filings {
			if f.IdempotencyKey == "" || first.IdempotencyKey != f.IdempotencyKey || first.Agent != f.Agent {
				continue
			}
			if first.envelope != envelopeOf(f) || first.Counterparty != f.Counterparty {
				return refuse(&ledger.IdempotencyConflictError{Agent: f.Agent, Key: f.IdempotencyKey, ObligationID: o.id}), true
			}
			again := first.result
			again.Status, again.Replayed = o.status, true
			return mAnswer{value: again}, true
		}
	}
	return mAnswer{}, false
}

func (m *model) file(now time.Time, f ledger.Filing, gates ledger.Gates, cleaned bool) mAnswer {
	if answer, repeated := m.repeated(f); repeated {
		return answer
	}
	if f.Signal != 0 && m.obligation(f.Signal) == nil {
		return refuse(&ledger.InputError{Field: "signal"})
	}
	var held []error
	var waiting *mObligation
	warnings := len(gates.Warnings)
	for _, o := range m.obligations {
		if !o.onPair(f.Counterparty, f.Channel) {
			continue
		}
		if d := m.holding(o); d != nil && d.claim.settledBy == "" {
			held = append(held, &ledger.HeldError{ObligationID: o.id, State: d.claim.state})
		} else if d == nil && o.status == ledger.StatusApproved {
			warnings++
		}
		if o.status == ledger.StatusDrafted {
			waiting = o
		}
	}
	if held != nil {
		return refuse(held...)
	}
	marks := m.marks(now, f, gates)
	o := m.refile(now, waiting, f)
	filed := &mFiling{Filing: f, epoch: o.epoch, hash: sha(f.Text), envelope: envelopeOf(f)}
	o.filings = append(slices.Clip(o.filings), filed)
	m.event("staged", o.id, 0)
	want := ledger.Filed{ObligationID: o.id, Epoch: o.epoch, DraftSHA256: filed.hash, EnvelopeSHA256: filed.envelope, Refiled: waiting != nil,
		Status: ledger.StatusDrafted, Priority: f.Priority, Cleaned: cleaned, Notice: internalRoute}
	return mAnswer{accept: func(got any) error {
		filed.result = got.(ledger.Filed)
		bare := filed.result
		bare.Markers, bare.Warnings = nil, nil
		if err := differ(bare, want); err != nil {
			return err
		}
		if got := len(filed.result.Warnings); got != warnings {
			return fmt.Errorf("%d warnings, want %d: %q", got, warnings, filed.result.Warnings)
		}
		return marks.accept(filed.result.Markers)
	}}
}

// refile gives the waiting obligation a new epoch, or makes one.
func (m *model) refile(now time.Time, o *mObligation, f ledger.Filing) *mObligation {
	if o == nil {
		o = &mObligation{id: int64(len(m.obligations)) + 1, counterparty: f.Counterparty, channel: f.Channel, status: ledger.StatusDrafted}
		m.obligations = append(m.obligations, o)
	} else if replaced := o.newest().Agent; replaced != f.Agent {
		m.tellAgent(replaced, o, "superseded")
	}
	o.platform, o.deadline, o.epoch = f.Platform, f.AutoSendAfter, advance(now, o.epoch)
	return o
}

// mMarks are the markers that a draft must have, and those that it may have where the contract leaves the border open.
type mMarks struct{ must, may []string }

func (k mMarks) accept(got []string) error {
	var duplicates int
	for _, mark := range got {
		if strings.HasPrefix(mark, "["+ledger.MarkDuplicate) {
			duplicates++
		}
		if !slices.Contains(k.must, mark) && !slices.Contains(k.may, mark) {
			return fmt.Errorf("marker %s has no reason", mark)
		}
	}
	for _, mark := range k.must {
		if mark != duplicateDue && !slices.Contains(got, mark) {
			return fmt.Errorf("marker %s is missing in %q", mark, got)
		}
	}
	if duplicates > 1 || duplicates == 0 && slices.Contains(k.must, duplicateDue) {
		return fmt.Errorf("%d duplicate markers in %q", duplicates, got)
	}
	return nil
}

// duplicateDue stands for a duplicate marker with the id of any of the duplicates.
const duplicateDue = "[a duplicate]"

func (m *model) marks(now time.Time, f ledger.Filing, gates ledger.Gates) mMarks {
	k := mMarks{must: slices.Clone(gates.Markers)}
	used, usedAndKept := false, false
	for _, d := range m.decisions {
		o := m.of(d)
		if d.verdict != ledger.Approve {
			continue
		}
		if o.counterparty == f.Counterparty && o.channel == f.Channel && d.filing.Platform == f.Platform {
			used, usedAndKept = true, usedAndKept || d.voided == nil
		}
		if d.filing.envelope == envelopeOf(f) && d.voided == nil {
			k.duplicate(now, d)
		}
		if d.claim != nil && d.claim.settledBy != "" && d.claim.state == ledger.ClaimUnknown && o.onPair(f.Counterparty, f.Channel) {
			k.must = append(k.must, fmt.Sprintf("[%s #%d]", ledger.MarkUnresolved, o.id))
		}
	}
	if newDestination := "[" + ledger.MarkNewDestination + "]"; !used {
		k.must = append(k.must, newDestination)
	} else if !usedAndKept {
		k.may = append(k.may, newDestination)
	}
	return k
}

// duplicate: the envelope was approved within a day, or sent or unknown since then. A minute about the border may go either way, and so
// may what was only claimed or begun since.
func (k *mMarks) duplicate(now time.Time, d *mDecision) {
	age := now.Sub(d.at)
	if c := d.claim; c != nil {
		if touched := now.Sub(time.Unix(c.touched, 0)); touched < age {
			if (c.state == ledger.ClaimDelivered || c.state == ledger.ClaimUnknown) && touched < 24*time.Hour-time.Minute {
				k.must = append(k.must, duplicateDue)
			}
			age = touched
		}
	}
	if now.Sub(d.at) < 24*time.Hour-time.Minute {
		k.must = append(k.must, duplicateDue)
	}
	if age < 24*time.Hour+time.Minute {
		k.may = append(k.may, fmt.Sprintf("[%s #%d]", ledger.MarkDuplicate, d.obligation))
	}
}
