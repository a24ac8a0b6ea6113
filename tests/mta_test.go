package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

func (d *mtaDesk) lettersOf(t *testing.T, obligations []int64) (letters []letter) {
	t.Helper()
	for _, id := range obligations {
		letters = append(letters, d.letterOf(t, id))
	}
	return letters
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
	m.check(t, d.lettersOf(t, ids))
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

// testAmongRefused: after some refusals a server has enough of RSET and ends the session (Exim after ten, by default). What can be
// delivered is, in the same pass, by another session.
func (m *mta) testAmongRefused(t *testing.T) {
	const pairs = 12
	d := m.open(t, m.access(), "[deliver]\nconcurrency = 1\n")
	var ids []int64
	for i := range pairs {
		bad := fmt.Sprintf("kim%d@elsewhere.example", i)
		good := fmt.Sprintf("kim%d@%s", i, m.host())
		d.mustApprove(t, ledger.Filing{Counterparty: bad, Channel: bad, Text: "not to be sent"})
		ids = append(ids, d.mustApprove(t, ledger.Filing{Counterparty: good, Channel: good, Subject: "good", Text: good}))
	}
	r := d.pass(t)
	if len(r.Delivered) != pairs || len(r.NotPrepared) != pairs || len(slices.Concat(r.Refused, r.Ambiguous, r.Skipped)) > 0 {
		t.Fatalf("%+v", r)
	}
	for _, item := range r.NotPrepared {
		if !strings.Contains(item.Error, "relay not permitted") {
			t.Errorf("%s: the reason is %q", item.Channel, item.Error)
		}
	}
	m.check(t, d.lettersOf(t, ids))
}

func unclaimed(t *testing.T, o ledger.Shown) {
	t.Helper()
	if o.Status != ledger.StatusApproved || o.Claim != nil || o.Delivery != nil {
		t.Errorf("obligation %d is %s, with claim %+v and receipt %+v", o.ObligationID, o.Status, o.Claim, o.Delivery)
	}
}

// mtaProgram is a directory in which the program itself runs.
type mtaProgram struct {
	m        *mta
	dir      string
	password string
	said     bytes.Buffer
}

// initialised is one with a configuration as init makes it, and the server added.
func (m *mta) initialised(t *testing.T, a mtaAccess) *mtaProgram {
	t.Helper()
	p := &mtaProgram{m: m, dir: t.TempDir(), password: a.password}
	p.run(t, 0, "", "init", "--operator", "anna")
	file, err := os.OpenFile(filepath.Join(p.dir, "countersign.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(m.section(a))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the program, which has to end with this exit code, and returns its standard output.
func (p *mtaProgram) run(t *testing.T, code int, stdin string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t), args...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "TEST_MTA_PASSWORD="+p.password, config.EnvVar+"=countersign.toml")
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // the exit code is looked at
	p.said.Write(stdout.Bytes())
	p.said.Write(stderr.Bytes())
	if got := command.ProcessState.ExitCode(); got != code {
		t.Fatalf("%q: exit %d, want %d\n%s%s", args, got, code, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func (p *mtaProgram) json(t *testing.T, into any, code int, stdin string, args ...string) {
	t.Helper()
	out := p.run(t, code, stdin, append(args, "--json", "--verbose")...)
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

func (p *mtaProgram) approve(t *testing.T, channel, subject, text string) (obligation string) {
	t.Helper()
	var filed ledger.Filed
	p.json(t, &filed, 0, text, "file", "--counterparty", "acme", "--platform", "smtp", "--channel", channel, "--subject", subject)
	obligation = fmt.Sprint(filed.ObligationID)
	p.run(t, 0, "", "approve", obligation, "--epoch", fmt.Sprint(filed.Epoch), "--token-file", "anna.token")
	return obligation
}

// show reads the obligation, and makes sure that nothing is in flight or held.
func (p *mtaProgram) show(t *testing.T, obligation string) (o ledger.Shown) {
	t.Helper()
	var claims []ledger.HeldClaim
	p.json(t, &claims, 0, "", "claims")
	if len(claims) > 0 {
		t.Errorf("claims has %+v", claims)
	}
	p.json(t, &o, 0, "", "show", obligation)
	return o
}

func (p *mtaProgram) keepsSecret(t *testing.T, secrets ...string) {
	t.Helper()
	if form := p.m.leak(p.said.Bytes(), secrets...); form != "" {
		t.Errorf("the program printed a secret as %q", form)
	}
	p.m.keptIn(t, p.dir, secrets...)
}

// testProgram goes the way of the README, from init to the mailbox, and into what can go wrong there.
func (m *mta) testProgram(t *testing.T) {
	t.Run("delivered", func(t *testing.T) {
		p := m.initialised(t, m.access())
		id := p.approve(t, m.recipient, "=?utf-8?q?Offer?= für Zoë", "..dots\n.\nFrom here on  \n\ttabs, é, 漢, 🙂")
		if out := p.run(t, 0, "", "deliver", "--verbose"); !bytes.Contains(out, []byte("delivered 1, refused 0, ambiguous 0, not prepared 0, skipped 0\n")) {
			t.Errorf("got\n%s", out)
		}
		if out := p.run(t, 0, "", "deliver"); len(out) > 0 {
			t.Errorf("a pass that has nothing to do says\n%s", out)
		}
		m.check(t, []letter{m.letterOf(t, p.show(t, id))})
		p.keepsSecret(t, m.password)
	})
	for _, refusal := range m.refusals(t) {
		t.Run(refusal.name, func(t *testing.T) {
			p := m.initialised(t, refusal.access)
			id := p.approve(t, m.recipient+refusal.also, "not to be sent", "not to be sent")
			var r sweep.Report
			p.json(t, &r, 75, "", "deliver")
			if len(r.NotPrepared) != 1 || !strings.Contains(r.NotPrepared[0].Error, refusal.want) {
				t.Errorf("%+v", r)
			}
			unclaimed(t, p.show(t, id))
			p.run(t, 0, "", "audit", "log")
			p.keepsSecret(t, m.password, refusal.access.password)
		})
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
