package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AckWithin is how long Slack waits for an acknowledgement.
// Source: https://docs.slack.dev/interactivity/handling-user-interaction, "Acknowledgment response"
const AckWithin = 3 * time.Second

// maxAck is from where on Slack drops an acknowledgement without a word, in octets: github.com/slack-go/slack/socketmode, maxResponseSize.
const maxAck = 20 * 1024

// ErrNotAcknowledged: the app said nothing within AckWithin, or within the context's time where that is shorter.
var ErrNotAcknowledged = errors.New("fakeslack: the interaction was not acknowledged")

// Send sends an interaction to the app through the newest connection and waits for the acknowledgement. It returns its payload, nil where
// there is none, after Answer took it. The errors are ErrNotConnected, ErrNotAcknowledged and Answer's.
func (s *Server) Send(ctx context.Context, in Interaction) (json.RawMessage, error) {
	return s.deliver(ctx, in, nil)
}

// Redeliver sends an interaction again in the same envelope, as Slack does when it didn't hear of the first.
func (s *Server) Redeliver(ctx context.Context, in Interaction) (json.RawMessage, error) {
	return s.deliver(ctx, in, map[string]any{"retry_attempt": 1, "retry_reason": "timeout"})
}

func (s *Server) deliver(ctx context.Context, in Interaction, more map[string]any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, AckWithin)
	defer cancel()
	k, ack, err := s.expect(in.EnvelopeID)
	if err != nil {
		return nil, err
	}
	envelope := map[string]any{
		"type": "interactive", "envelope_id": in.EnvelopeID, "payload": json.RawMessage(in.Payload), "accepts_response_payload": in.ViewID != "",
	}
	for name, value := range more {
		envelope[name] = value
	}
	if !s.isSilent(k) {
		if err := k.send(encode(envelope)); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrNotAcknowledged, err)
		}
	}
	select {
	case payload := <-ack:
		return payload, s.Answer(in, payload)
	case <-k.done:
		return lastWord(ack, func(payload json.RawMessage) error { return s.Answer(in, payload) })
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %v", ErrNotAcknowledged, ctx.Err())
	}
}

// lastWord takes the acknowledgement that came just before the connection ended.
func lastWord(ack <-chan json.RawMessage, answer func(json.RawMessage) error) (json.RawMessage, error) {
	select {
	case payload := <-ack:
		return payload, answer(payload)
	default:
		return nil, fmt.Errorf("%w: the connection ended", ErrNotAcknowledged)
	}
}

// expect finds the connection to send on, and a place for the acknowledgement.
func (s *Server) expect(id string) (*socket, <-chan json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.live()
	if err != nil {
		return nil, nil, err
	}
	ack := make(chan json.RawMessage, 1)
	s.link.acks[id] = ack
	return k, ack, nil
}

// acknowledged takes a frame of the app's. A word about an envelope that Slack never sent is a fault of the app; one too many, or one too
// large, Slack drops.
func (s *Server) acknowledged(frame []byte) {
	var a struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	err := json.Unmarshal(frame, &a)
	s.mu.Lock()
	defer s.mu.Unlock()
	ack, known := s.link.acks[a.EnvelopeID]
	if err != nil || !known {
		if !s.closed {
			s.t.Errorf("fakeslack: the app says %.200q, which acknowledges nothing", frame)
		}
		return
	}
	if len(frame) >= maxAck {
		return
	}
	select {
	case ack <- a.Payload:
	default:
	}
}
