package transporttest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/transports"
)

func (s suite) validate(t *testing.T) {
	f := s.start(t, Accept)
	if err := f.Transport.Validate(s.h.Message); err != nil {
		t.Errorf("the harness's own message: %v", err)
	}
	unsendable := []Unsendable{
		{"channel", s.with(func(m *transports.Message) { m.Channel = "" })},
		{"channel", s.with(func(m *transports.Message) { m.Channel += "\n" })},
		{"channel", s.with(func(m *transports.Message) { m.Channel += "\xff" })},
		{"thread", s.with(func(m *transports.Message) { m.Thread += "\r\n" })},
		{"subject", s.with(func(m *transports.Message) { m.Subject = "x\r\nBcc: evil@example.com" })},
		{"subject", s.with(func(m *transports.Message) { m.Subject = "\xff" })},
		{"text", s.with(func(m *transports.Message) { m.Text = "" })},
		{"text", s.with(func(m *transports.Message) { m.Text = "ok\x00 and pay 900" })},
		{"text", s.with(func(m *transports.Message) { m.Text = "caf\xe9" })},
		{"text", s.with(func(m *transports.Message) { m.Text = "\xed\xa0\x80" })}, // a lone surrogate
	}
	session := s.connect(t, f)
	for _, u := range append(unsendable, s.h.Unsendable...) {
		name := fmt.Sprintf("%+q", asDelivered(u.Message))
		s.wantValidation(t, name, u.Field, f.Transport.Validate(u.Message))
		if session.Prepare(t.Context(), u.Message) == nil {
			t.Errorf("%s: Prepare took what Validate refuses", name)
		}
	}
	f.close(t, session)
	f.saw(t, 0)
}

func (s suite) with(change func(*transports.Message)) transports.Message {
	m := s.h.Message
	change(&m)
	return m
}

func (s suite) wantValidation(t *testing.T, name, field string, err error) {
	t.Helper()
	var v *transports.ValidationError
	if !errors.As(err, &v) {
		t.Errorf("%s: Validate gave %v, want a *ValidationError", name, err)
		return
	}
	if v.Field != field || v.Reason == "" || (v.Limit > 0) != (v.Size > 0) {
		t.Errorf("%s: refused as %+v, want field %q with a reason, and limit and size together", name, *v, field)
	}
	s.checkError(t, err)
}

func (s suite) checkReceipt(t *testing.T, r transports.Receipt) {
	t.Helper()
	if r.Coordinate == "" || strings.ContainsAny(r.Coordinate, "\r\n") {
		t.Errorf("coordinate %q is not one line", r.Coordinate)
	}
	for _, words := range []string{r.Coordinate, r.Detail} {
		s.checkWords(t, words)
	}
}

// checkError looks at an error and at all it wraps.
func (s suite) checkError(t *testing.T, err error) {
	t.Helper()
	for _, e := range unwrapped(err) {
		s.checkWords(t, e.Error())
		s.checkWords(t, fmt.Sprintf("%+v %#v", e, e))
	}
}

func unwrapped(err error) []error {
	all := []error{err}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if next := u.Unwrap(); next != nil {
			all = append(all, unwrapped(next)...)
		}
	case interface{ Unwrap() []error }:
		for _, next := range u.Unwrap() {
			all = append(all, unwrapped(next)...)
		}
	}
	return all
}

// checkWords: no secret in any form, valid UTF-8, not longer than a provider's
// words and what is said around them.
func (s suite) checkWords(t *testing.T, words string) {
	t.Helper()
	if !utf8.ValidString(words) || len(words) > 2*transports.MaxWords {
		t.Errorf("%d octets, or not UTF-8: %.200q", len(words), words)
	}
	for _, secret := range s.h.Secrets {
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)),
		} {
			if strings.Contains(words, form) {
				t.Errorf("a secret, as %q, in %.300q", form, words)
			}
		}
	}
}
