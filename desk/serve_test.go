package desk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

func (s *stage) get(address, path string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.ctx(), http.MethodGet, "http://"+address+path, nil)
	s.must(err)
	return s.do(r)
}

func (s *stage) do(r *http.Request) (int, string) {
	s.t.Helper()
	response, err := http.DefaultClient.Do(r)
	s.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.must(err)
	return response.StatusCode, string(body)
}

func (s *stage) ready(address string) (int, desk.Readiness) {
	s.t.Helper()
	status, body := s.get(address, "/readyz")
	var r desk.Readiness
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		s.t.Fatalf("%q: %v", body, err)
	}
	return status, r
}

// HTTP mode from the signed request to the decision.
func TestServeOverHTTP(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{Listen: "127.0.0.1:0"})
	address := <-s.addr
	if status, body := s.get(address, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("%d %q", status, body)
	}
	if status, r := s.ready(address); status != 200 || !r.Ready || r.LastHeard != nil {
		t.Errorf("%d %+v", status, r)
	}
	target := "http://" + address + desk.InteractionsPath
	m := s.card(filed.ObligationID, notify.ActionApprove)
	in := s.slack.Click(m, notify.ActionApprove, anna)
	for i := range 2 { // the same signed body twice is the same decision
		if status, body := s.do(s.slack.SignedRequest(target, in.Payload, time.Now())); status != 200 || body != "" {
			t.Errorf("%d: %d %q", i, status, body)
		}
	}
	s.status(filed.ObligationID, ledger.StatusApproved)
	if status, r := s.ready(address); status != 200 || r.LastHeard == nil {
		t.Errorf("%d %+v", status, r)
	}
	s.must(s.stop())
	s.decidedOnce(filed.ObligationID)
	if n := s.slack.Connections(); n != 0 || len(s.slack.Ephemerals(anna.ID)) != 0 {
		t.Errorf("%d sockets, %v", n, s.slack.Ephemerals(anna.ID))
	}
}

// FAULTS 21: what Slack did not sign, or signed long ago, changes nothing.
func TestUnsignedRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{Listen: "127.0.0.1:0"})
	target := "http://" + <-s.addr + desk.InteractionsPath
	in := s.slack.Click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	signed := func() *http.Request { return s.slack.SignedRequest(target, in.Payload, time.Now()) }
	for name, c := range map[string]struct {
		want   int
		change func(*http.Request) *http.Request
	}{
		"no signature": {401, func(r *http.Request) *http.Request { r.Header.Del("X-Slack-Signature"); return r }},
		"no time":      {401, func(r *http.Request) *http.Request { r.Header.Del("X-Slack-Request-Timestamp"); return r }},
		"another's signature": {401, func(r *http.Request) *http.Request {
			r.Header.Set("X-Slack-Signature", fakeslack.Sign("another secret", r.Header.Get("X-Slack-Request-Timestamp"), []byte("payload=x")))
			return r
		}},
		"six minutes old": {401, func(*http.Request) *http.Request {
			return s.slack.SignedRequest(target, in.Payload, time.Now().Add(-6*time.Minute))
		}},
		"six minutes ahead": {401, func(*http.Request) *http.Request {
			return s.slack.SignedRequest(target, in.Payload, time.Now().Add(6*time.Minute))
		}},
		"a larger body": {401, func(r *http.Request) *http.Request {
			body := "payload=" + strings.Repeat("x", 100)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return r
		}},
		"a body over the limit": {413, func(r *http.Request) *http.Request {
			body := strings.Repeat("x", 4<<20+1)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return r
		}},
		"signed, and no interaction": {400, func(*http.Request) *http.Request { return s.slack.SignedRequest(target, []byte("{"), time.Now()) }},
		"signed, and empty":          {400, func(*http.Request) *http.Request { return s.slack.SignedRequest(target, nil, time.Now()) }},
		"no POST":                    {405, func(r *http.Request) *http.Request { r.Method = http.MethodPut; return r }},
	} {
		if status, body := s.do(c.change(signed())); status != c.want {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	s.must(s.stop())
	s.untouched(filed)
	if n := s.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND actor = 'slack over HTTP'`); n == 0 {
		t.Error("no refusal is on record")
	}
}

// Ending finishes the clicks that were acknowledged.
func TestEndingFinishesTheClicksInHand(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]string{"Socket Mode": "", "HTTP": "127.0.0.1:0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.usual()
			filed := s.file(filing("120 pumps."))
			s.serve(desk.ServeOptions{Listen: listen})
			in := s.slack.Click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
			if listen == "" {
				s.send(in)
			} else if status, _ := s.do(s.slack.SignedRequest("http://"+<-s.addr+desk.InteractionsPath, in.Payload, time.Now())); status != 200 {
				t.Fatal(status)
			}
			s.must(s.stop())
			if shown := s.show(filed.ObligationID); shown.Status != ledger.StatusApproved {
				t.Errorf("%s", shown.Status)
			}
		})
	}
}

// A request that was still being read when the end came used to be acknowledged after Serve had returned, and its click was lost.
func TestEndingWaitsForTheRequestInHand(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{Listen: "127.0.0.1:0"})
	address := <-s.addr
	in := s.slack.Click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	r := s.slack.SignedRequest("http://"+address+desk.InteractionsPath, in.Payload, time.Now())
	body, err := io.ReadAll(r.Body)
	s.must(err)
	conn, err := new(net.Dialer).DialContext(s.ctx(), "tcp", address)
	s.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n", desk.InteractionsPath, address, len(body))
	s.must(r.Header.Write(conn))
	fmt.Fprint(conn, "\r\n")
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // it reads the body from here on
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = answers.ReadString('\n')
	s.end()
	_, err = conn.Write(body)
	s.must(err)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("%q, %v", line, err)
	}
	s.must(s.stop())
	if shown := s.show(filed.ObligationID); shown.Status != ledger.StatusApproved {
		t.Errorf("%s", shown.Status)
	}
}

// The passes that were asked for run, and their news is on the card.
func TestServeRunsThePasses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{Deliver: 50 * time.Millisecond, Sweep: 50 * time.Millisecond})
	s.click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	s.status(filed.ObligationID, ledger.StatusSent)
	s.until("the card tells the receipt", func() bool {
		m, _ := s.slack.Message(internalChannel, s.subject(filed.ObligationID).Card.TS)
		return strings.Contains(strings.Join(fakeslack.DecodedTexts(m), "\n"), "approved by anna · receipt ")
	})
	s.must(s.stop())
	sent, err := os.ReadFile(filepath.Join(s.dir, "outbox", "messages.jsonl"))
	if err != nil || strings.Count(string(sent), "120 pumps.") != 1 {
		t.Errorf("%q, %v", sent, err)
	}
}

// What no waiting mends ends serving, with words.
func TestServeSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	s.must(err)
	defer taken.Close()
	if err := s.term.Serve(t.Context(), desk.ServeOptions{Listen: taken.Addr().String()}); err == nil || !strings.Contains(err.Error(), "listening") {
		t.Errorf("%v", err)
	}
	raw, err := os.ReadFile(s.config)
	s.must(err)
	without := func(key string) string {
		var kept []string
		for line := range strings.Lines(string(raw)) {
			if !strings.HasPrefix(line, key) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	for key, opts := range map[string]desk.ServeOptions{"app_token": {}, "signing_secret": {Listen: "127.0.0.1:0"}} {
		s.put(s.config, without(key))
		err := s.open().Serve(context.Background(), opts)
		wantAs[*desk.ConfigError](t, err)
		if err != nil {
			contains(t, err.Error(), key)
		}
	}
	s.put(s.config, strings.ReplaceAll(string(raw), "[internal]\nplatform = \"slack\"\nteam = \"T0EXAMPLE\"\nchannel = \"C0INTERNAL\"\n", ""))
	wantAs[*desk.NoSurfaceError](t, s.open().Serve(context.Background(), desk.ServeOptions{}))
}
