package fakeslack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

const card = `[{"type":"section","text":{"type":"plain_text","text":"AT&amp;T"}},` +
	`{"type":"actions","block_id":"act","elements":[{"type":"button","action_id":"approve","style":"primary","value":"41:7",` +
	`"text":{"type":"plain_text","text":"Approve"}}]}]`

// app is the library's socketmode client, which runs until the test ends. It acknowledges what answer wants, with what it returns.
func app(t *testing.T, s *Server, answer func(slackgo.InteractionCallback) (payload any, acknowledge bool)) <-chan error {
	t.Helper()
	sm := socketmode.New(client(t, s, BotToken), socketmode.OptionPingInterval(10*time.Second), socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithCancel(context.Background())
	ended, pumped := make(chan error, 1), make(chan struct{})
	go func() { ended <- sm.RunContext(ctx) }()
	go func() {
		defer close(pumped)
		for {
			select {
			case e := <-sm.Events:
				if call, ok := e.Data.(slackgo.InteractionCallback); ok {
					if payload, acknowledge := answer(call); acknowledge {
						_ = sm.AckCtx(ctx, e.Request.EnvelopeID, payload)
					}
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-pumped })
	return ended
}

func yes(slackgo.InteractionCallback) (any, bool) { return nil, true }

// dial opens a connection by hand.
func dial(t *testing.T, s *Server) (*websocket.Conn, string) {
	t.Helper()
	_, url, err := client(t, s, BotToken).StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	t.Cleanup(func() { conn.Close() })
	return conn, url
}

// read is the next message; it fails after five seconds.
func read(t *testing.T, conn *websocket.Conn) map[string]any {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, frame, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	decode(frame, &m)
	return m
}

func wait(t *testing.T, until func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := until(ctx); err != nil {
		t.Fatal(err)
	}
}

func connected(t *testing.T, s *Server, n int) {
	t.Helper()
	wait(t, func(ctx context.Context) error { return s.ConnectedAgain(ctx, n) })
}

func TestClickThroughTheSocket(t *testing.T) {
	s, api := slack(t)
	got := make(chan slackgo.InteractionCallback, 2)
	app(t, s, func(call slackgo.InteractionCallback) (any, bool) { got <- call; return nil, true })
	wait(t, s.Connected)
	ts := post(t, api, blocksOf(t, card))
	m, _ := s.Message(room, ts)
	in := s.Click(m, "approve", ann)
	if payload, err := s.Send(t.Context(), in); err != nil || len(payload) != 0 {
		t.Fatalf("acknowledged with %s, %v", payload, err)
	}
	if _, err := s.Redeliver(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	call, again := <-got, <-got
	a := call.ActionCallback.BlockActions[0]
	if a.ActionID != "approve" || a.BlockID != "act" || a.Value != "41:7" || a.Text.Text != "Approve" || a.Type != "button" || a.ActionTs <= ts {
		t.Errorf("action: %+v", a)
	}
	if call.User.ID != ann.ID || call.User.TeamID != TeamID || call.Team.ID != TeamID || call.Channel.ID != room || call.Channel.Name != "desk" {
		t.Errorf("who and where: %+v %+v %+v", call.User, call.Team, call.Channel)
	}
	if call.Container.MessageTs != ts || call.Container.ChannelID != room || call.Message.Timestamp != ts || len(call.Message.Blocks.BlockSet) != 2 {
		t.Errorf("message: %+v", call.Message)
	}
	if call.TriggerID == "" || again.ActionCallback.BlockActions[0].ActionTs != a.ActionTs || again.TriggerID != call.TriggerID {
		t.Errorf("delivered again: %+v", again)
	}
}

func TestClickOnWhatWasEditedSince(t *testing.T) {
	s, api := slack(t)
	ts := post(t, api, blocksOf(t, card))
	old, _ := s.Message(room, ts)
	if _, _, _, err := api.UpdateMessageContext(t.Context(), room, ts, textOption("gone"), slackgo.MsgOptionBlocks()); err != nil {
		t.Fatal(err)
	}
	in := s.Click(old, "approve", ann, At("1800000000.000001"))
	if in.ActionTS != "1800000000.000001" || !strings.Contains(string(in.Payload), `"action_ts":"1800000000.000001"`) {
		t.Fatalf("%s", in.Payload)
	}
	if now, _ := s.Message(room, ts); len(Buttons(now)) != 0 || len(Buttons(old)) != 1 {
		t.Fatal("the old copy has changed, or the new one hasn't")
	}
}

func TestNotAcknowledged(t *testing.T) {
	s, api := slack(t)
	post(t, api, blocksOf(t, card))
	in := s.Click(s.Messages(room)[0], "approve", ann)
	if _, err := s.Send(t.Context(), in); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("not connected: %v", err)
	}
	app(t, s, func(slackgo.InteractionCallback) (any, bool) { return nil, false })
	wait(t, s.Connected)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Send(ctx, in); !errors.Is(err, ErrNotAcknowledged) {
		t.Fatalf("no word: %v", err)
	}
}

func TestURLsWorkOnce(t *testing.T) {
	s, _ := slack(t)
	conn, url := dial(t, s)
	if m := read(t, conn); m["type"] != "hello" {
		t.Fatalf("greeted with %v", m)
	}
	_, response, err := websocket.DefaultDialer.DialContext(t.Context(), url, nil)
	if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
		t.Fatalf("the second time: %v, %v", response, err)
	}
	response.Body.Close()
}

func TestDisconnect(t *testing.T) {
	s, _ := slack(t)
	for n, reason := range []string{Warning, RefreshRequested, LinkDisabled} {
		conn, _ := dial(t, s)
		connected(t, s, n+1)
		if err := s.Disconnect(reason); err != nil {
			t.Fatal(err)
		}
		read(t, conn)
		if m := read(t, conn); m["type"] != "disconnect" || m["reason"] != reason {
			t.Fatalf("%s: %v", reason, m)
		}
		if reason != Warning {
			if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Fatalf("%s: %v", reason, err)
			}
		}
		conn.Close()
		wait(t, s.Disconnected)
	}
	if err := s.Disconnect(Warning); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("with no connection: %v", err)
	}
}

func TestTheLibraryConnectsAgain(t *testing.T) {
	s, _ := slack(t)
	app(t, s, yes)
	connected(t, s, 1)
	if err := s.Disconnect(RefreshRequested); err != nil {
		t.Fatal(err)
	}
	connected(t, s, 2)
	if err := s.CutFrame(); err != nil {
		t.Fatal(err)
	}
	connected(t, s, 3)
	if got := len(s.Requests("apps.connections.open")); got != 3 {
		t.Fatalf("%d URLs for 3 connections", got)
	}
}

func TestCutInMidFrame(t *testing.T) {
	s, _ := slack(t)
	conn, _ := dial(t, s)
	read(t, conn)
	if err := s.CutFrame(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, frame, err := conn.ReadMessage()
	if err == nil || websocket.IsCloseError(err, websocket.CloseNormalClosure) || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("read %q, %v", frame, err)
	}
	wait(t, s.Disconnected)
}

func TestSilence(t *testing.T) {
	s, api := slack(t, WithPing(5*time.Millisecond))
	conn, _ := dial(t, s)
	pings, pinged := 0, make(chan struct{}, 3)
	conn.SetPingHandler(func(string) error {
		if pings++; pings <= 3 {
			pinged <- struct{}{}
		}
		return nil
	})
	read(t, conn)
	later := make(chan int, 1)
	go func() {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _, _ = conn.ReadMessage() // the mark
		before := pings
		if _, frame, err := conn.ReadMessage(); err == nil {
			t.Errorf("a silent socket says %s", frame)
		}
		later <- pings - before
	}()
	for range 3 {
		<-pinged
	}
	if err := errors.Join(s.GoSilent(), s.SendFrame(`{"type":"mark"}`)); err != nil {
		t.Fatal(err)
	}
	post(t, api, blocksOf(t, card))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // 20 intervals
	defer cancel()
	if _, err := s.Send(ctx, s.Click(s.Messages(room)[0], "approve", ann)); !errors.Is(err, ErrNotAcknowledged) {
		t.Fatalf("on a silent socket: %v", err)
	}
	conn.Close()
	if n := <-later; n > 1 { // one may have been under way
		t.Fatalf("%d pings from a silent socket", n)
	}
}

// What waits for somebody who never comes must not outlive the test.
func TestNoGoroutineIsLeft(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		s, api := slack(t)
		dial(t, s)
		connected(t, s, 1)
		s.Script("auth.test", Stall())
		go func() { _, _ = api.AuthTestContext(context.WithoutCancel(t.Context())) }()
		wait(t, func(ctx context.Context) error {
			return s.Until(ctx, func() bool { return len(s.Requests("auth.test")) == 1 })
		})
	})
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, f := range []string{").pings(", ").listen(", "fakeslack.Stall"} {
		if bytes.Contains(stacks, []byte(f)) {
			t.Errorf("%s still runs", f)
		}
	}
}

func TestOpensRefused(t *testing.T) {
	s, _ := slack(t)
	s.RefuseOpens(2, "internal_error")
	api := client(t, s, BotToken)
	for _, want := range []string{"internal_error", "internal_error", ""} {
		_, _, err := api.StartSocketModeContext(t.Context())
		wantCode(t, err, want)
	}
	s.RefuseOpens(1, "invalid_auth")
	if err := <-app(t, s, yes); err == nil || err.Error() != "invalid_auth" {
		t.Fatalf("the library's client ended with %v", err)
	}
}

func TestAnyFrame(t *testing.T) {
	s, _ := slack(t)
	conn, _ := dial(t, s)
	read(t, conn)
	if err := s.SendFrame(`{"type":"events_api","envelope_id":"e"}`); err != nil {
		t.Fatal(err)
	}
	if m := read(t, conn); m["type"] != "events_api" {
		t.Fatalf("read %v", m)
	}
}

// The limit of an acknowledgement is Slack's: it drops a larger one without a word.
func TestLargeAcknowledgementsAreDropped(t *testing.T) {
	s, api := slack(t)
	post(t, api, blocksOf(t, card))
	in := s.Click(s.Messages(room)[0], "approve", ann)
	conn, _ := dial(t, s)
	read(t, conn)
	answer := func(n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond+time.Duration(maxAck-n)*time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() { _, err := s.Send(ctx, in); done <- err }()
		envelope := read(t, conn)
		head := `{"envelope_id":"` + envelope["envelope_id"].(string) + `","payload":"`
		frame := head + strings.Repeat("x", n-len(head)-2) + `"}`
		if !json.Valid([]byte(frame)) || len(frame) != n {
			t.Fatal("not the frame that was meant")
		}
		if err := conn.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		return <-done
	}
	if err := answer(maxAck - 1); err != nil {
		t.Errorf("just small enough: %v", err)
	}
	if err := answer(maxAck); !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("too large: %v", err)
	}
}
