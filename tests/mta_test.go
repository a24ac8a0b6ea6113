package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
	"countersign/sweep"
	"countersign/transports"
	"countersign/transports/smtp"
	"countersign/transports/transporttest"
)

// What was approved is what a reader of the mailbox sees, behind a mail server by others and a mail library of another language.
func TestMTA(t *testing.T) {
	m := newMTA(t)
	t.Run("desk", m.testDesk)
	t.Run("login", func(t *testing.T) { m.testOther(t, mtaAccess{address: m.address, tls: "starttls", auth: "login"}) })
	t.Run("implicit TLS", func(t *testing.T) {
		if m.implicit == "" {
			t.Skip("COUNTERSIGN_MTA_IMPLICIT isn't set")
		}
		m.testOther(t, mtaAccess{address: m.implicit, tls: "implicit", auth: "plain"})
	})
	t.Run("refused", m.testRefused)
	t.Run("among refused", m.testAmongRefused)
	t.Run("program", m.testProgram)
	t.Run("transport", m.testTransport)
	t.Run("each once", func(t *testing.T) { m.check(t, nil) }) // what was sent twice had time to arrive
}

// mtaSubjects are combined with the nasty texts.
var mtaSubjects = []string{
	"",
	"Offer 2291",
	"=?utf-8?q?Offer?=",
	"=?utf-8?b?T2ZmZXI=?= =?iso-8859-1?q?=E9?=",
	"a =?utf-8?q?b?= c=?utf-8?q?d?=e =? ?= =?x",
	"=?utf-8?q?x=0D=0ABcc:_evil@example.com?=",
	"one\r\nBcc: evil@example.com\r\n\r\nbody",
	"Re: Fwd: 100% & under_score = \"q\" 'q' \\ (comment) <a@b>, ; :",
	strings.Repeat("x", 300),
	strings.TrimSpace(strings.Repeat("many words ", 27)),
	strings.Repeat("x", 76) + " " + strings.Repeat("y", 200),
	strings.Repeat("é漢🙂", 100),
	strings.TrimSpace(strings.Repeat("größer als é ", 23)),
	"שלום, مرحبا\u202e.exe",
	"\u00e9 e\u0301",
	"a\u00a0b\u200bc\u2028d\u2029e",
	"\ufeffa mark in front",
	"  blanks \t around\tand  inside  ",
	"👩‍👩‍👧 🇫🇷 ✅ \U000e0041",
	"bell \x07 and escape \x1b[2K",
	"é",
	". From here",
}

// mtaAccess is one way to the server.
type mtaAccess struct {
	address, tls, auth, ca, password string
}

func (m *mta) access() mtaAccess {
	return mtaAccess{address: m.address, tls: "starttls", auth: "plain", ca: m.ca, password: m.password}
}

const mtaSection = `
[transports.smtp]
address = %q
tls = %q
ca_file = %q
from = %q
auth = %q
username = %q
password = "env:TEST_MTA_PASSWORD"
`

func (m *mta) section(a mtaAccess) string {
	return fmt.Sprintf(mtaSection, a.address, a.tls, a.ca, m.from(), a.auth, m.user)
}

// mtaDesk is an open desk that mails through the server, with an operator.
type mtaDesk struct {
	*desk.Desk
	m    *mta
	anna operator.Operator
	dir  string
	said bytes.Buffer // by the passes
}

func (m *mta) open(t *testing.T, a mtaAccess, sections ...string) *mtaDesk {
	t.Helper()
	t.Setenv("TEST_MTA_PASSWORD", a.password)
	token, hash, err := operator.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	d := &mtaDesk{m: m, dir: t.TempDir()}
	path := filepath.Join(d.dir, "countersign.toml")
	text := fmt.Sprintf("[[operators]]\nid = \"anna\"\ntoken_sha256 = %q\n", hash) + m.section(a) + strings.Join(sections, "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Create(t.Context(), c.Ledger.Path); err != nil {
		t.Fatal(err)
	}
	if d.Desk, err = desk.Open(t.Context(), c, desk.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if d.anna, err = d.Operator(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	return d
}

// approve files and approves; it returns the obligation, or why the filing was refused.
func (d *mtaDesk) approve(t *testing.T, f ledger.Filing) (int64, error) {
	t.Helper()
	f.Agent, f.Platform = "quoter", "smtp"
	filed, err := d.File(t.Context(), f)
	if err != nil {
		return 0, err
	}
	_, err = d.Ledger.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch,
		Verdict: ledger.Approve, Operator: d.anna})
	if err != nil {
		t.Fatal(err)
	}
	return filed.ObligationID, nil
}

func (d *mtaDesk) mustApprove(t *testing.T, f ledger.Filing) int64 {
	t.Helper()
	id, err := d.approve(t, f)
	if err != nil {
		t.Fatalf("filing %+v: %v", f, err)
	}
	return id
}

// pass makes one, and keeps what it said.
func (d *mtaDesk) pass(t *testing.T) sweep.Report {
	t.Helper()
	r, err := d.Deliver(t.Context(), sweep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&d.said).Encode(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// deliver makes a pass that has to deliver everything, and another that has to find nothing.
func (d *mtaDesk) deliver(t *testing.T, want int) {
	t.Helper()
	for _, want := range []int{want, 0} {
		r := d.pass(t)
		if failed := slices.Concat(r.Refused, r.Ambiguous, r.NotPrepared, r.Skipped); len(r.Delivered) != want || len(failed) > 0 {
			t.Fatalf("delivered %d, want %d; not delivered: %+v", len(r.Delivered), want, failed)
		}
	}
}

// letterOf is what has to be in the mailbox, by what the ledger says was approved, claimed and confirmed.
func (m *mta) letterOf(t *testing.T, shown ledger.Shown, to ...string) letter {
	t.Helper()
	if shown.Status != ledger.StatusSent || shown.Snapshot == nil || shown.Claim == nil || shown.Delivery == nil || shown.Delivery.Altered {
		t.Fatalf("obligation %d is %s: %+v, %+v", shown.ObligationID, shown.Status, shown.Claim, shown.Delivery)
	}
	if key := shown.Claim.Key; len(key) < 16 {
		t.Fatalf("obligation %d has the key %q", shown.ObligationID, key)
	}
	id := m.messageID(transports.Message{ObligationID: shown.ObligationID, DecisionID: shown.Claim.DecisionID, Key: shown.Claim.Key})
	if !strings.HasPrefix(shown.Delivery.Coordinate, id+" 250 ") {
		t.Errorf("obligation %d has the coordinate %q, want one that begins with %s", shown.ObligationID, shown.Delivery.Coordinate, id)
	}
	if len(to) == 0 {
		to = []string{shown.Snapshot.Channel}
	}
	optional := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return letter{id: id, to: to, thread: optional(shown.Snapshot.Thread), subject: optional(shown.Snapshot.Subject), text: shown.Snapshot.Text}
}

func (d *mtaDesk) letterOf(t *testing.T, obligation int64, to ...string) letter {
	t.Helper()
	shown, err := d.Ledger.Show(t.Context(), obligation)
	if err != nil {
		t.Fatal(err)
	}
	return d.m.letterOf(t, shown, to...)
}

// testDesk is FAULTS 11 and 12, and 18 as far as mail goes: all texts and subjects, to one recipient over one connection.
func (m *mta) testDesk(t *testing.T) {
	d := m.open(t, m.access())
	texts := append(transporttest.NastyTexts(), transporttest.NastyText{Name: "as long as it may be", Text: strings.Repeat("漢🙂", 20_000)})
	if len(texts) < len(mtaSubjects) {
		t.Fatal("some subjects aren't used")
	}
	var ids []int64
	for i, text := range texts {
		id, err := d.approve(t, ledger.Filing{Counterparty: fmt.Sprintf("customer %d", i), Channel: m.recipient,
			Subject: mtaSubjects[i%len(mtaSubjects)], Text: text.Text})
		if _, bad := errors.AsType[*ledger.InputError](err); bad && text.Name == "only white space" {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", text.Name, err)
		}
		ids = append(ids, id)
	}
	d.deliver(t, len(texts)-1)
	var letters []letter
	for _, id := range ids {
		letters = append(letters, d.letterOf(t, id))
	}
	m.check(t, letters)
	d.keepsSecret(t, m.password)
}

// testOther takes another way to the server, with an answer in a thread, two recipients, and a recipient who needs SMTPUTF8 and IDN.
func (m *mta) testOther(t *testing.T, a mtaAccess) {
	a.ca, a.password = m.ca, m.password
	d := m.open(t, a)
	text := "Grüße,\n.\nDesk"
	answer := d.mustApprove(t, ledger.Filing{Counterparty: "a", Channel: m.recipient, Thread: "<offer.17@customer.example>", Subject: "Re: Offer", Text: text})
	two := d.mustApprove(t, ledger.Filing{Counterparty: "b", Channel: m.recipient + ",second@" + m.host(), Subject: "für zwei", Text: text})
	idn := d.mustApprove(t, ledger.Filing{Counterparty: "c", Channel: "zoë@bücher." + m.host(), Subject: "größer", Text: text})
	d.deliver(t, 3)
	m.check(t, []letter{d.letterOf(t, answer), d.letterOf(t, two, m.recipient, "second@"+m.host()), d.letterOf(t, idn, "zoë@xn--bcher-kva."+m.host())})
	d.keepsSecret(t, m.password)
}

// keepsSecret looks for secrets in what the passes said, and in the ledger and whatever lies beside it.
func (d *mtaDesk) keepsSecret(t *testing.T, secrets ...string) {
	t.Helper()
	if form := d.m.leak(d.said.Bytes(), secrets...); form != "" {
		t.Errorf("a report holds a secret as %q", form)
	}
	d.m.keptIn(t, d.dir, secrets...)
}

// mtaRefusal is a reason for which nothing can be prepared.
type mtaRefusal struct {
	name   string
	access mtaAccess
	also   string // a recipient besides the good one
	want   string // in the reason
}

func (m *mta) refusals(t *testing.T) []mtaRefusal {
	t.Helper()
	_, _, foreign := transporttest.ServerTLS(t, "localhost")
	ca := filepath.Join(t.TempDir(), "foreign.pem")
	if err := os.WriteFile(ca, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	wrongPassword, wrongCA := m.access(), m.access()
	wrongPassword.password = "not " + m.password
	wrongCA.ca = ca
	return []mtaRefusal{
		{name: "wrong password", access: wrongPassword, want: "535"},
		{name: "wrong CA", access: wrongCA, want: "certificate signed by unknown authority"},
		{name: "one recipient of two", access: m.access(), also: ",kim@elsewhere.example", want: "<kim@elsewhere.example>: relay not permitted"},
	}
}

// testRefused: whatever is refused before the content uses up no approval, and reaches nobody.
func (m *mta) testRefused(t *testing.T) {
	for _, refusal := range m.refusals(t) {
		t.Run(refusal.name, func(t *testing.T) {
			d := m.open(t, refusal.access)
			var ids []int64
			for _, local := range []string{"first", "second", "third"} {
				ids = append(ids, d.mustApprove(t, ledger.Filing{Counterparty: local, Channel: local + "@" + m.host() + refusal.also, Text: "not to be sent"}))
			}
			r := d.pass(t)
			if len(r.NotPrepared) != len(ids) || len(slices.Concat(r.Delivered, r.Refused, r.Ambiguous, r.Skipped)) > 0 {
				t.Errorf("%+v", r)
			}
			for _, item := range r.NotPrepared {
				if !strings.Contains(item.Error, refusal.want) {
					t.Errorf("the reason is %q, want %q in it", item.Error, refusal.want)
				}
			}
			for _, id := range ids {
				shown, err := d.Ledger.Show(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				unclaimed(t, shown)
			}
			d.keepsSecret(t, m.password, refusal.access.password)
		})
	}
}

// testAmongRefused: a server may have enough of RSET after some refusals in a row and end the session, as Exim does after ten such
// commands. What can be delivered is delivered all the same, in the same pass.
func (m *mta) testAmongRefused(t *testing.T) {
	d := m.open(t, m.access(), "[deliver]\nconcurrency = 1\n")
	const refused = 12
	for i := range refused {
		bad := fmt.Sprintf("kim%d@elsewhere.example", i)
		d.mustApprove(t, ledger.Filing{Counterparty: bad, Channel: bad, Text: "not to be sent"})
	}
	good := d.mustApprove(t, ledger.Filing{Counterparty: "good", Channel: m.recipient, Text: "after the refused ones"})
	r := d.pass(t)
	if len(r.Delivered) != 1 || len(r.NotPrepared) != refused || len(slices.Concat(r.Refused, r.Ambiguous, r.Skipped)) > 0 {
		t.Fatalf("%+v", r)
	}
	for _, item := range r.NotPrepared {
		if !strings.Contains(item.Error, "relay not permitted") {
			t.Errorf("%s: the reason is %q", item.Channel, item.Error)
		}
	}
	m.check(t, []letter{d.letterOf(t, good)})
}

func unclaimed(t *testing.T, o ledger.Shown) {
	t.Helper()
	if o.Status != ledger.StatusApproved || o.Claim != nil || o.Delivery != nil {
		t.Errorf("obligation %d is %s, with claim %+v and receipt %+v", o.ObligationID, o.Status, o.Claim, o.Delivery)
	}
}

// testTransport hands over the nasty texts as they are, which no ledger has cleaned, in one session, of which something else was
// asked before.
func (m *mta) testTransport(t *testing.T) {
	transport, err := smtp.New(smtp.Config{Address: m.address, CAFile: m.ca, From: m.from(), Auth: smtp.AuthPlain, Username: m.user,
		Password: func() (string, error) { return m.password, nil }})
	if err != nil {
		t.Fatal(err)
	}
	session, err := transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := transports.Message{ObligationID: 1, Platform: "smtp", Channel: "kim@elsewhere.example", Text: "not to be sent"}
	if _, refused := errors.AsType[*transports.PrepareError](session.Prepare(t.Context(), elsewhere)); !refused {
		t.Error("a recipient elsewhere was prepared")
	}
	givenUp := elsewhere
	givenUp.Channel = m.recipient
	if err := errors.Join(session.Prepare(t.Context(), givenUp), session.Reset(t.Context())); err != nil {
		t.Fatal(err)
	}
	var letters []letter
	for i, text := range transporttest.NastyTexts() {
		msg := transports.Message{ObligationID: int64(1000 + i), Platform: "smtp", Channel: m.recipient, Subject: "raw", Text: text.Text}
		if err := transport.Validate(msg); err != nil {
			t.Fatalf("%s: %v", text.Name, err)
		}
		if err := session.Prepare(t.Context(), msg); err != nil {
			t.Fatalf("%s: %v", text.Name, err)
		}
		msg.DecisionID, msg.Key = int64(1+i), randomHex(16)
		if _, err := session.Send(t.Context(), msg); err != nil {
			t.Fatalf("%s: %v", text.Name, err)
		}
		letters = append(letters, letter{id: m.messageID(msg), to: []string{m.recipient}, subject: "raw", text: text.Text})
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	m.check(t, letters)
}
