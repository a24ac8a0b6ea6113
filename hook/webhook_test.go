package hook_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/hook"
)

const key = "a shared secret, hunter2"

// posted is one request as a receiver sees it.
type posted struct {
	method, uri string
	header      http.Header
	body        []byte
}

// receiver is a server on loopback that answers as scripted, and keeps what it gets.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []posted
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got = append(r.got, posted{request.Method, request.RequestURI, request.Header, body})
		r.mu.Unlock()
		answer(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func webhook(t *testing.T, q *queue, url string, change ...func(*hook.WebhookConfig)) *hook.Hook {
	t.Helper()
	c := hook.WebhookConfig{URL: url, Secret: func() (string, error) { return key, nil }, Now: func() time.Time { return q.now }, Timeout: 10 * time.Second}
	for _, change := range change {
		change(&c)
	}
	w, err := hook.NewWebhook(c)
	must(t, err)
	return hook.New(q, w)
}

func TestAFollowUpIsPostedAndSigned(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter")
	r := newReceiver(t, status(http.StatusNoContent))
	report := pass(t, webhook(t, q, r.URL+"/follow-ups?desk=1"))
	got := r.all()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	p := got[0]
	if p.method != "POST" || p.uri != "/follow-ups?desk=1" || p.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", p.method, p.uri, p.header)
	}
	// The recipe, as a receiver would write it.
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("v1:" + p.header.Get("Countersign-Timestamp") + ":"))
	mac.Write(p.body)
	if want := "v1=" + hex.EncodeToString(mac.Sum(nil)); p.header.Get("Countersign-Signature") != want || p.header.Get("Countersign-Timestamp") != "1800000000" {
		t.Errorf("signature %s at %s, want %s", p.header.Get("Countersign-Signature"), p.header.Get("Countersign-Timestamp"), want)
	}
	inbox, err := q.Inbox(t.Context(), "quoter")
	must(t, err)
	want := hook.Message{ID: 1, Agent: "quoter", ObligationID: 1, Kind: "steered", Body: inbox[0].Body, CreatedTS: 1_800_000_000, LedgerID: q.ID()}
	if message(t, p.body) != want {
		t.Errorf("posted %s", p.body)
	}
	if ids(report.Taken) != "1" || q.rows() != "" {
		t.Errorf("%+v; rows: %s", report, q.rows())
	}
	for name, values := range p.header {
		if strings.Contains(fmt.Sprint(values), key) {
			t.Errorf("the secret is in header %s", name)
		}
	}
}

// Made with: printf %s 'v1:1800000000:{"id":1}' | openssl dgst -sha256 -hmac 'a shared secret, hunter2'
func TestTheSignatureIsTheDocumentedOne(t *testing.T) {
	const want = "v1=bcf4788652dc5d3ce6f8c7a20b48d1eebbf318820bd6d0109f31fddf8e2e5d45"
	if got := hook.Sign(key, time.Unix(1_800_000_000, 999), []byte(`{"id":1}`)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestOnly2xxIsTaken(t *testing.T) {
	for code, want := range map[int]string{
		200: "", 202: "", 299: "",
		301: "1 1 1m0s the webhook answered with status 301; redirects are not followed",
		307: "1 1 1m0s the webhook answered with status 307; redirects are not followed",
		400: "1 1 1m0s the webhook answered with status 400",
		429: "1 1 1m0s the webhook answered with status 429",
		500: "1 1 1m0s the webhook answered with status 500",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			q := newQueue(t)
			q.tell("quoter", "shorter")
			r := newReceiver(t, func(w http.ResponseWriter, request *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(code)
				fmt.Fprint(w, "no, ", request.Header.Get("Countersign-Signature"))
			})
			pass(t, webhook(t, q, r.URL))
			if got := q.rows(); got != want || len(r.all()) != 1 {
				t.Errorf("rows: %s, want %s; %d requests", got, want, len(r.all()))
			}
		})
	}
}

func TestAnAnswerIsNotReadForEver(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter", "longer")
	wrote := make(chan error, 2)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		var err error
		for range 1000 { // a gigabyte
			if _, err = w.Write(chunk); err != nil {
				break
			}
		}
		wrote <- err
	})
	if report := pass(t, webhook(t, q, r.URL)); ids(report.Taken) != "1 2" {
		t.Errorf("%+v", report)
	}
	for range 2 {
		if err := <-wrote; err == nil {
			t.Error("all of it was read")
		}
	}
}

func TestAReceiverThatDoesNotAnswer(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter")
	end := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	pass(t, webhook(t, q, r.URL, func(c *hook.WebhookConfig) { c.Timeout = 50 * time.Millisecond }))
	if got := q.rows(); got != "1 1 1m0s the webhook did not answer in time" {
		t.Errorf("rows: %s", got)
	}
}

// The errors of net/http name the URL, which may be all that keeps others from posting there, and repeat what a server said.
func TestErrorsRepeatNoSecretAndNoURL(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			request, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 %s %s\r\n\r\n", request.URL.Path, key)
			}
			conn.Close()
		}
	}()
	for name, url := range map[string]string{
		"a garbled answer": "http://" + listener.Addr().String() + "/t0ken/hunter2",
		"nobody there":     "http://127.0.0.1:1/t0ken/hunter2?key=hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			q.tell("quoter", "shorter")
			report := pass(t, webhook(t, q, url))
			if len(report.Failed) != 1 {
				t.Fatalf("%+v", report)
			}
			for _, words := range []string{q.rows(), fmt.Sprintf("%+v", report)} {
				if strings.Contains(words, "hunter2") || strings.Contains(words, "t0ken") {
					t.Errorf("it says %s", words)
				}
			}
		})
	}
}

func TestASecretThatIsNotThereSignsNothing(t *testing.T) {
	missing := errors.New("secret env:X: the environment variable is not set")
	for name, of := range map[string]func() (string, error){
		"unreadable": func() (string, error) { return "", missing },
		"empty":      func() (string, error) { return "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			q.tell("quoter", "shorter")
			r := newReceiver(t, status(200))
			_, err := webhook(t, q, r.URL, func(c *hook.WebhookConfig) { c.Secret = of }).Pass(t.Context())
			if !errors.As(err, new(*hook.NotReadyError)) || len(r.all()) != 0 || q.rows() != "1 0 now" {
				t.Errorf("%v, %d requests; rows: %s", err, len(r.all()), q.rows())
			}
		})
	}
}

func TestPlainHTTPStaysOnThisMachine(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // must not be asked
	pass(t, webhook(t, q, "http://192.0.2.1/"))  // RFC 5737: nobody's
	if got := q.rows(); !strings.Contains(got, "plain http is for this machine only") {
		t.Errorf("rows: %s", got)
	}
	r := newReceiver(t, status(200))
	q.now = q.now.Add(time.Minute)
	if report := pass(t, webhook(t, q, strings.Replace(r.URL, "127.0.0.1", "localhost", 1))); ids(report.Taken) != "1" {
		t.Errorf("%+v", report)
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, url := range []string{"", "agents.example.com/hunter2", "ftp://agents.example.com/hunter2", "https://", "https://a b/hunter2", "http://:80/hunter2"} {
		if _, err := hook.NewWebhook(hook.WebhookConfig{URL: url}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
