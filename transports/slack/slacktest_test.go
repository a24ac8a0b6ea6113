package slack

import (
	"html"
	"io"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack/slacktest"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// libraryFake is the library's own fake of Slack. Its conversations.info has no
// is_member, so that method is answered here.
func libraryFake(t *testing.T) *slacktest.Server {
	t.Helper()
	server := slacktest.NewTestServer(func(c slacktest.Customize) {
		c.Handle("/conversations.info", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"ok":true,"channel":{"id":"`+r.FormValue("channel")+`","is_member":true}}`)
		})
	})
	server.Start()
	t.Cleanup(server.Stop)
	return server
}

// reader is somebody else in the channel: the fake shows its posts on a WebSocket.
func reader(t *testing.T, server *slacktest.Server) (next func() transporttest.Delivered) {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(server.GetWSURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_ = conn.Close()
	})
	return func() transporttest.Delivered {
		var post struct {
			Channel  string `json:"channel"`
			ThreadTS string `json:"thread_ts"`
			Text     string `json:"text"`
		}
		if err := conn.ReadJSON(&post); err != nil {
			t.Fatal(err)
		}
		return transporttest.Delivered{Channel: post.Channel, Thread: post.ThreadTS, Text: html.UnescapeString(post.Text)}
	}
}

// The fake's reply has no message, so no echo, and a ts without a fraction: both are
// taken as they come.
func TestAgainstTheLibrarysFake(t *testing.T) {
	server := libraryFake(t)
	tr, err := New(Config{Token: gives(token, nil), APIURL: server.GetAPIURL(), TextLimit: MaxText})
	if err != nil {
		t.Fatal(err)
	}
	next := reader(t, server)
	s := connect(t, tr)
	for _, nasty := range transporttest.NastyTexts() {
		m := message()
		m.Text = nasty.Text
		if tr.Validate(m) != nil {
			continue
		}
		prepare(t, s, m)
		r, err := s.Send(t.Context(), claimed(m))
		if transports.Judge(r, err) != transports.Confirmed || r.Altered {
			t.Errorf("%s: %+v, %v", nasty.Name, r, err)
		}
		if got, want := next(), (transporttest.Delivered{Channel: channel, Thread: thread, Text: nasty.Text}); got != want {
			t.Errorf("%s: arrived %+q\nwant %+q", nasty.Name, got, want)
		}
	}
}
