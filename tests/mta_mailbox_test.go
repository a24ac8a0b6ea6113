package tests

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/transports"
)

// mta is a mail server by others, as .ci/mta starts one, and what this run gave it.
type mta struct {
	address, implicit string // with STARTTLS; with TLS from the first octet on
	ca                string
	user, password    string
	recipient         string
	mailbox           string // a Maildir, for any name at the recipient's domain and at those below it

	// domain is the sender's, of this run alone: it ends each of our Message-IDs, so that several runs can share a mailbox.
	domain string
	sent   int             // letters that have to be in the mailbox, checked so far
	ours   map[string]bool // by path: the mail is of this run
}

// newMTA skips the test where there is no mail server, or no Python to read its mailbox with.
func newMTA(t *testing.T) *mta {
	t.Helper()
	env := func(name string) string { return os.Getenv("COUNTERSIGN_MTA_" + name) }
	if env("ADDRESS") == "" {
		t.Skip("no mail server: COUNTERSIGN_MTA_ADDRESS isn't set; `.ci/mta start DIR` starts one and prints the variables")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3, whose email library reads the mailbox")
	}
	return &mta{
		address: env("ADDRESS"), implicit: env("IMPLICIT"), ca: env("CA"), user: env("USER"), password: env("PASSWORD"),
		recipient: env("RECIPIENT"), mailbox: env("MAILBOX"), domain: "run-" + randomHex(8) + ".example",
		ours: map[string]bool{},
	}
}

func randomHex(n int) string {
	octets := make([]byte, n)
	_, _ = rand.Read(octets) // never fails
	return hex.EncodeToString(octets)
}

// from is the sender in the configuration. Its name needs encoding.
func (m *mta) from() string { return mtaName + " <" + m.sender() + ">" }

const mtaName = "Bürö-Desk"

func (m *mta) sender() string { return "desk@" + m.domain }

// host is the recipient's domain.
func (m *mta) host() string { return m.recipient[strings.LastIndexByte(m.recipient, '@')+1:] }

// A letter is what was approved and sent, and what has to be in the mailbox.
type letter struct {
	id                    string // Message-ID
	to                    []string
	thread, subject, text string
}

// A storedMail is a mail of the mailbox as Python's email library reads it.
type storedMail struct {
	ID, Sender, Type, Charset string
	Subject                   string // by Python's present parser
	OldSubject                string // by the one that it had before, which other programs still use
	Body                      []byte // as decoded octets
	Content                   []byte // as decoded text, in UTF-8
	From, To                  [][2]string
	Thread, References        string
	Fields                    []string // names, in order
	Defects                   []string
}

// readMails prints what is in the mails whose files are its arguments.
const readMails = `
import base64, email, email.errors, email.header, email.policy, json, sys

def people(field):
    return [[a.display_name, a.addr_spec] for a in field.addresses] if field else []

def old_subject(octets):
    raw = email.message_from_bytes(octets, policy=email.policy.compat32)["Subject"]
    if raw is None:
        return ""
    return str(email.header.make_header(email.header.decode_header("".join(raw.splitlines()))))

# The library takes octets for RFC 5322, and characters for a header of RFC 6532, but calls the latter's addresses defect.
def parse(octets):
    if octets.isascii():
        return email.message_from_bytes(octets, policy=email.policy.default), ()
    return email.message_from_string(octets.decode(), policy=email.policy.default), email.errors.NonASCIILocalPartDefect

def read(path):
    with open(path, "rb") as file:
        octets = file.read()
    mail, allowed = parse(octets)
    defects = [d for part in (mail, *mail.values()) for d in part.defects if not isinstance(d, allowed)]
    return {
        "id": mail["Message-ID"], "sender": mail["Return-Path"], "type": mail.get_content_type(), "charset": mail.get_content_charset(),
        "subject": mail["Subject"] or "", "oldsubject": old_subject(octets),
        "body": base64.b64encode(mail.get_payload(decode=True)).decode(),
        "content": base64.b64encode(mail.get_content().encode()).decode(),
        "from": people(mail["From"]), "to": people(mail["To"]),
        "thread": mail["In-Reply-To"] or "", "references": mail["References"] or "",
        "fields": mail.keys(), "defects": [repr(d) for d in defects],
    }

json.dump([read(path) for path in sys.argv[1:]], sys.stdout)
`

// arrived lists the files of this run's mails. A file is whole as soon as it is there, and never changes: that is what a Maildir
// is for.
func (m *mta) arrived(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(m.mailbox, "new", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		if _, known := m.ours[path]; !known {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m.ours[path] = bytes.Contains(content, []byte("@"+m.domain+">\n"))
		}
		return !m.ours[path]
	})
}

// wait returns when the mailbox has n mails of this run: servers deliver after they have said yes.
func (m *mta) wait(t *testing.T, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		paths := m.arrived(t)
		if len(paths) >= n {
			return paths
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("of %d mails %d are in the mailbox: %v", n, len(paths), ctx.Err())
		}
	}
}

func (m *mta) read(t *testing.T, paths []string) []storedMail {
	t.Helper()
	command := exec.CommandContext(t.Context(), "python3", append([]string{"-c", readMails}, paths...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.String())
	}
	var mails []storedMail
	if err := json.Unmarshal(out, &mails); err != nil {
		t.Fatal(err)
	}
	return mails
}

// check finds each letter in the mailbox, once, and besides them only those that were checked before.
func (m *mta) check(t *testing.T, letters []letter) {
	t.Helper()
	m.sent += len(letters)
	mails := m.read(t, m.wait(t, m.sent))
	if len(mails) != m.sent {
		t.Errorf("the mailbox has %d mails, want %d", len(mails), m.sent)
	}
	byID := map[string][]storedMail{}
	for _, mail := range mails {
		byID[mail.ID] = append(byID[mail.ID], mail)
	}
	for _, l := range letters {
		found := byID[l.id]
		if len(found) != 1 {
			t.Errorf("%s arrived %d times", l.id, len(found))
			continue
		}
		m.compare(t, l, found[0])
	}
}

// compare looks at one mail as its reader does.
func (m *mta) compare(t *testing.T, want letter, got storedMail) {
	t.Helper()
	for name, text := range map[string][]byte{"body": got.Body, "content": got.Content} {
		if string(text) != want.text {
			t.Errorf("%s: %s is %.200q, want %.200q", want.id, name, text, want.text)
		}
	}
	for name, subject := range map[string]string{"subject": got.Subject, "old parser's subject": got.OldSubject} {
		if subject != want.subject {
			t.Errorf("%s: %s is %q, want %q", want.id, name, subject, want.subject)
		}
	}
	if got.Thread != want.thread || got.References != want.thread {
		t.Errorf("%s: In-Reply-To %q, References %q, want %q", want.id, got.Thread, got.References, want.thread)
	}
	if !slices.Equal(got.From, [][2]string{{mtaName, m.sender()}}) || got.Sender != "<"+m.sender()+">" {
		t.Errorf("%s: from %q, envelope %q", want.id, got.From, got.Sender)
	}
	if !slices.Equal(got.To, people(want.to)) {
		t.Errorf("%s: to %q, want %q", want.id, got.To, want.to)
	}
	if got.Type != "text/plain" || got.Charset != "utf-8" || len(got.Defects) > 0 {
		t.Errorf("%s: %s in %s, defects %v", want.id, got.Type, got.Charset, got.Defects)
	}
	if fields := withoutTrace(got.Fields); !slices.Equal(fields, fieldsOf(want)) {
		t.Errorf("%s: fields %v, want %v", want.id, got.Fields, fieldsOf(want))
	}
}

func people(addresses []string) [][2]string {
	var list [][2]string
	for _, a := range addresses {
		list = append(list, [2]string{"", a})
	}
	return list
}

// fieldsOf are the header fields that we write, in our order.
func fieldsOf(l letter) []string {
	fields := []string{"From", "To"}
	if l.subject != "" {
		fields = append(fields, "Subject")
	}
	fields = append(fields, "Date", "Message-Id")
	if l.thread != "" {
		fields = append(fields, "In-Reply-To", "References")
	}
	return append(fields, "Mime-Version", "Content-Type", "Content-Transfer-Encoding")
}

// withoutTrace takes off the fields that servers put in front: those of RFC 5321 section 4.4, and two that Exim's users know.
func withoutTrace(fields []string) []string {
	trace := []string{"return-path", "received", "envelope-to", "delivery-date"}
	ours := slices.IndexFunc(fields, func(name string) bool { return !slices.Contains(trace, strings.ToLower(name)) })
	return fields[max(ours, 0):]
}

// leak is the form of a secret that was found in what was written, "" if none was.
func (m *mta) leak(written []byte, secrets ...string) string {
	for _, secret := range secrets {
		inJSON, _ := json.Marshal(secret) // a string always can be
		for _, form := range []string{
			secret, strings.Trim(string(inJSON), `"`), url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
			base64.RawStdEncoding.EncodeToString([]byte(secret)),
			base64.RawStdEncoding.EncodeToString([]byte("\x00" + m.user + "\x00" + secret)), // as AUTH PLAIN has it
		} {
			if bytes.Contains(written, []byte(form)) {
				return form
			}
		}
	}
	return ""
}

// keptIn looks for secrets in everything below a directory.
func (m *mta) keptIn(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if form := m.leak(content, secrets...); form != "" {
			t.Errorf("%s holds a secret as %q", path, form)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// messageID is what transports/smtp promises to make of a claim.
func (m *mta) messageID(sent transports.Message) string {
	return fmt.Sprintf("<countersign.%d.%d.%s@%s>", sent.ObligationID, sent.DecisionID, sent.Key, m.domain)
}
