package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"countersign/transports"
)

// Stages as recorded with an outcome.
const (
	stageSession = "session"
	stageMessage = "message" // it can't be written as it is
	stageOpen    = "open"    // the directory or a file in it
	stageLock    = "lock"
	stageWrite   = "write"
	stageSync    = "sync"
)

type session struct {
	t        *Transport
	prepared *transports.Message
	place    *place // of prepared
	finished bool   // closed, or a Send ended in doubt
}

var errFinished = errors.New("the session is finished; connect again")

var _ transports.Session = (*session)(nil)

// A line is one message as readers see it.
type line struct {
	ObligationID int64  `json:"obligation_id"`
	DecisionID   int64  `json:"decision_id"`
	Channel      string `json:"channel"`
	Thread       string `json:"thread"`
	Subject      string `json:"subject"`
	Text         string `json:"text"`
	SentTS       int64  `json:"sent_ts"`
	Key          string `json:"key"`
}

// encode makes the line with its end. json would replace invalid UTF-8 without a
// word, so that is refused first.
func encode(m transports.Message, sent time.Time) ([]byte, error) {
	if err := transports.CheckMessage(m); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(line{
		ObligationID: m.ObligationID, DecisionID: m.DecisionID,
		Channel: m.Channel, Thread: m.Thread, Subject: m.Subject, Text: m.Text,
		SentTS: sent.Unix(), Key: m.Key,
	})
	return b.Bytes(), err
}

// Prepare makes the directory, finds out whether it could take the message, and opens what
// Send needs.
func (s *session) Prepare(ctx context.Context, m transports.Message) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &transports.PrepareError{Stage: stageOpen, Err: err}
	}
	wide := m
	wide.DecisionID, wide.Key = math.MaxInt64, strings.Repeat("0", transports.MaxKey)
	text, err := encode(wide, s.t.now())
	if err != nil {
		return &transports.PrepareError{Stage: stageMessage, Permanent: true, Err: err}
	}
	p, err := s.t.reserve(len(text))
	if err != nil {
		return &transports.PrepareError{Stage: stageOpen, Err: err}
	}
	s.prepared, s.place = &m, p
	return nil
}

// Send appends the line under the lock, in one write, and syncs it.
func (s *session) Send(ctx context.Context, m transports.Message) (transports.Receipt, error) {
	prepared, p := s.prepared, s.place
	s.prepared, s.place = nil, nil
	if p != nil {
		defer p.close()
	}
	if err := transports.CheckSend(ctx, prepared, m); err != nil {
		return transports.Receipt{}, err
	}
	text, err := encode(m, s.t.now())
	if err != nil {
		return transports.Receipt{}, &transports.RefusedError{Stage: stageMessage, Err: err}
	}
	if err := p.take(ctx); err != nil {
		return transports.Receipt{}, &transports.RefusedError{Stage: stageLock, Err: err}
	}
	r, err := p.append(ctx, text)
	s.finished = transports.Classify(err) == transports.Ambiguous
	return r, err
}

// append writes the line. As long as no octet of it is in the file it is refused;
// from the first octet until the sync is done, nobody can say what the disk holds.
func (p *place) append(ctx context.Context, text []byte) (transports.Receipt, error) {
	at, err := p.findEnd()
	if err != nil {
		return transports.Receipt{}, &transports.RefusedError{Stage: stageOpen, Err: err}
	}
	if at.unfinished {
		text = append([]byte("\n"), text...)
		at.offset++
	}
	if err := transports.CheckTime(ctx); err != nil {
		return transports.Receipt{}, err
	}
	if n, err := p.messages.Write(text); err != nil {
		return transports.Receipt{}, writeFailed(n, len(text), err)
	}
	if err := p.messages.Sync(); err != nil {
		return transports.Receipt{}, &transports.AmbiguousError{Stage: stageSync, Err: err}
	}
	return transports.Receipt{Coordinate: fmt.Sprintf("%s:%d", FileName, at.offset), Detail: p.t.path()}, nil
}

func writeFailed(n, size int, err error) error {
	if n == 0 {
		return &transports.RefusedError{Stage: stageWrite, Err: fmt.Errorf("nothing was written: %w", err)}
	}
	return &transports.AmbiguousError{Stage: stageWrite, Err: fmt.Errorf("%d of %d octets were written: %w", n, size, err)}
}

// Reset closes what Prepare opened.
func (s *session) Reset(context.Context) error {
	s.giveUp()
	if s.finished {
		return &transports.PrepareError{Stage: stageSession, Err: errFinished}
	}
	return nil
}

// Close ends the session; between messages it holds no file.
func (s *session) Close() error {
	s.giveUp()
	s.finished = true
	return nil
}

func (s *session) giveUp() {
	if s.place != nil {
		s.place.close()
	}
	s.prepared, s.place = nil, nil
}
