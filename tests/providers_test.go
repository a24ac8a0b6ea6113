package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
)

// Secrets that must show up nowhere.
const (
	plantedPassword = "hunter2-Planted/Password+1"
	plantedSlack    = "xoxb-1111-planted-Slack-Token"
	plantedTelegram = "4242:AAHplanted_Telegram_Token_0123456789"
)

var planted = []string{plantedPassword, plantedSlack, plantedTelegram}

// arrivals counts what arrived at the counterparties, by text.
type arrivals struct {
	mu    sync.Mutex
	count map[string]int
}

func newArrivals() *arrivals { return &arrivals{count: map[string]int{}} }

func (a *arrivals) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count[text]++
}

func (a *arrivals) of(text string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[text]
}

// mailServer is a real SMTP server on loopback.
func mailServer(t testing.TB, a *arrivals) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{a}, nil }))
	server.Domain = "mail.invalid"
	server.ErrorLog = log.New(io.Discard, "", 0) // each killed client is one line
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

type mailSession struct{ arrivals *arrivals }

func (*mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (*mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*mailSession) Reset()                               {}
func (*mailSession) Logout() error                        { return nil }

func (s *mailSession) Data(r io.Reader) error {
	reader, err := mail.CreateReader(r)
	if err != nil {
		return err
	}
	part, err := reader.NextPart()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(part.Body)
	if err != nil {
		return err
	}
	s.arrivals.add(string(text))
	return nil
}

// slackServer answers as Slack's Web API does, for any channel.
func slackServer(t testing.TB, a *arrivals) (url string) {
	t.Helper()
	var posted sync.Map
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"ok": true}
		switch method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; method {
		case "auth.test":
			answer["team_id"], answer["user_id"], answer["bot_id"] = "T0EXAMPLE", "U0BOT", "B0BOT"
		case "conversations.info":
			answer["channel"] = map[string]any{"id": r.FormValue("channel"), "is_channel": true, "is_member": true, "name": "x"}
		case "chat.postMessage":
			text := r.FormValue("text")
			a.add(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text))
			mu.Lock()
			n++
			ts := fmt.Sprintf("1800000000.%06d", n)
			mu.Unlock()
			posted.Store(ts, text)
			answer["channel"], answer["ts"], answer["message"] = r.FormValue("channel"), ts, map[string]any{"text": text, "ts": ts, "type": "message"}
		default:
			answer = map[string]any{"ok": false, "error": "unknown_method"}
		}
		respond(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/"
}

// telegramServer answers as the Bot API does, for any chat.
func telegramServer(t testing.TB, a *arrivals) (url string) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/bot"+plantedTelegram+"/") {
			http.NotFound(w, r)
			return
		}
		id, _ := strconv.ParseInt(r.FormValue("chat_id"), 10, 64)
		chat := map[string]any{"id": id, "type": "private", "first_name": "x"}
		var result any
		switch method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; method {
		case "getMe":
			result = map[string]any{"id": 4242, "is_bot": true, "first_name": "desk", "username": "desk_bot"}
		case "getChat":
			result = chat
		case "sendMessage":
			a.add(r.FormValue("text"))
			mu.Lock()
			n++
			result = map[string]any{"message_id": n, "date": 1800000000, "chat": chat, "text": r.FormValue("text")}
			mu.Unlock()
		}
		respond(w, map[string]any{"ok": result != nil, "result": result})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func respond(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that was killed reads no answer
}
