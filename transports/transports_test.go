package transports_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"countersign/transports"
)

func TestClassify(t *testing.T) {
	refused := &transports.RefusedError{Stage: "data", Code: "554", Err: io.EOF}
	ambiguous := &transports.AmbiguousError{Stage: "final-dot", Err: io.EOF}
	for name, c := range map[string]struct {
		err  error
		want transports.Outcome
	}{
		"nil":                        {nil, transports.Confirmed},
		"refused":                    {refused, transports.Refused},
		"refused, wrapped":           {fmt.Errorf("obligation 4: %w", refused), transports.Refused},
		"ambiguous":                  {ambiguous, transports.Ambiguous},
		"ambiguous about a refusal":  {&transports.AmbiguousError{Err: refused}, transports.Ambiguous},
		"refused about an ambiguity": {&transports.RefusedError{Err: ambiguous}, transports.Ambiguous},
		"both":                       {errors.Join(refused, ambiguous), transports.Ambiguous},
		"nobody knows":               {errors.New("550 refused"), transports.Ambiguous},
		"the end of a context":       {context.DeadlineExceeded, transports.Ambiguous},
		"prepare error from a Send":  {&transports.PrepareError{Stage: "rcpt"}, transports.Ambiguous},
		"a validation error":         {&transports.ValidationError{Field: "text"}, transports.Ambiguous},
	} {
		if got := transports.Classify(c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// FAULTS 10: a yes without a coordinate proves nothing.
func TestJudge(t *testing.T) {
	refused := &transports.RefusedError{}
	for _, c := range []struct {
		r    transports.Receipt
		err  error
		want transports.Outcome
	}{
		{transports.Receipt{Coordinate: "x"}, nil, transports.Confirmed},
		{transports.Receipt{Detail: "x"}, nil, transports.Ambiguous},
		{transports.Receipt{}, refused, transports.Refused},
		{transports.Receipt{}, io.EOF, transports.Ambiguous},
	} {
		if got := transports.Judge(c.r, c.err); got != c.want {
			t.Errorf("%+v, %v: %q, want %q", c.r, c.err, got, c.want)
		}
	}
}

func TestErrorsSayStageCodeAndReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&transports.PrepareError{Stage: "rcpt", Code: "550", Err: io.EOF}, "not prepared at rcpt (550): EOF"},
		{&transports.RefusedError{Stage: "content", Err: io.EOF}, "refused at content: EOF"},
		{&transports.AmbiguousError{Stage: "final-dot", Err: io.EOF}, "unknown whether sent at final-dot: EOF"},
		{&transports.AmbiguousError{Stage: "final-dot", Code: "502"}, "unknown whether sent at final-dot (502)"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if strings.HasSuffix(c.want, "EOF") && !errors.Is(c.err, io.EOF) {
			t.Errorf("%v doesn't wrap its reason", c.err)
		}
	}
	limit := &transports.ValidationError{Field: "text", Limit: 4096, Size: 4097, Unit: "UTF-16 units", Reason: "is too long"}
	if got := limit.Error(); got != "text is too long: 4097 UTF-16 units, the limit is 4096" {
		t.Errorf("%q", got)
	}
}

func message() transports.Message {
	return transports.Message{ObligationID: 1, Platform: "local", Channel: "c", Thread: "t", Subject: "s", Text: "x", DecisionID: 2, Key: "0a"}
}

func TestCheckMessage(t *testing.T) {
	if err := transports.CheckMessage(message()); err != nil {
		t.Fatal(err)
	}
	for field, changes := range map[string][]func(*transports.Message){
		"platform": {func(m *transports.Message) { m.Platform = "\n" }},
		"channel": {
			func(m *transports.Message) { m.Channel = "" },
			func(m *transports.Message) { m.Channel = "\u0085" },
		},
		"thread":  {func(m *transports.Message) { m.Thread = "\x7f" }},
		"subject": {func(m *transports.Message) { m.Subject = "a\tb" }, func(m *transports.Message) { m.Subject = "\xc3" }},
		"key": {
			func(m *transports.Message) { m.Key = "0A" },
			func(m *transports.Message) { m.Key = "0 a" },
			func(m *transports.Message) { m.Key = strings.Repeat("a", 65) },
		},
		"text": {
			func(m *transports.Message) { m.Text = "" },
			func(m *transports.Message) { m.Text = "\x00" },
			func(m *transports.Message) { m.Text = "a\xffb" },
		},
	} {
		for i, change := range changes {
			m := message()
			change(&m)
			var v *transports.ValidationError
			if err := transports.CheckMessage(m); !errors.As(err, &v) || v.Field != field {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
}

func TestCheckSend(t *testing.T) {
	m := message()
	unclaimed := m
	unclaimed.DecisionID, unclaimed.Key = 0, ""
	other := m
	other.Text += " "
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name     string
		ctx      context.Context
		prepared *transports.Message
		m        transports.Message
		want     error
	}{
		{"all is well", t.Context(), &unclaimed, m, nil},
		{"nothing prepared", t.Context(), nil, m, transports.ErrNotPrepared},
		{"another text", t.Context(), &unclaimed, other, transports.ErrDiffers},
		{"no claim", t.Context(), &unclaimed, unclaimed, transports.ErrNoClaim},
		{"cancelled", ended, &unclaimed, m, transports.ErrTooLate},
		{"past its deadline", unnoticed{t.Context()}, &unclaimed, m, transports.ErrTooLate},
	} {
		err := transports.CheckSend(c.ctx, c.prepared, c.m)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil && transports.Classify(err) != transports.Refused {
			t.Errorf("%s: %T is no refusal", c.name, err)
		}
	}
}

// unnoticed has a deadline that is over, and a timer that hasn't run.
type unnoticed struct{ context.Context }

func (unnoticed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"5.1.1 unknown":             "5.1.1 unknown",
		"\xff\xfea":                 "\uFFFDa",
		strings.Repeat("é", 500):    strings.Repeat("é", 500),
		strings.Repeat("é", 501):    strings.Repeat("é", 498) + "…",
		strings.Repeat("\xff", 501): "\uFFFD",
	} {
		got := transports.Words(in)
		if got != want || !utf8.ValidString(got) || len(got) > transports.MaxWords {
			t.Errorf("%.20q… became %q (%d octets)", in, got, len(got))
		}
	}
}
