package slack

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/slack-go/slack/slacktest"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// theirs is the library's own fake. Its conversations.info has no is_member, so that
// method is answered here; its chat.postMessage echoes nothing in message, and gives a
// ts without a fraction.
func theirs(t *testing.T) (server *slacktest.Server, texts func() []string) {
	t.Helper()
	var (
		mu   sync.Mutex
		seen []string
	)
	server = slacktest.NewTestServer(func(c slacktest.Customize) {
		c.Handle("/conversations.info", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"ok":true,"channel":{"id":"`+r.FormValue("channel")+`","is_member":true}}`)
		})
	})
	server.Start()
	t.Cleanup(server.Stop)
	return server, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

var _ = url.Values{}
var _ = html.UnescapeString
var _ = strings.Contains
var _ transports.Message
var _ = transporttest.NastyTexts
