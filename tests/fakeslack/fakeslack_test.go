package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"
)

const room = "C0ROOM"

var ann = User{ID: "U0ANN", TeamID: TeamID, Name: "ann"}

// slack is one with a channel that the app is in, and a client for it.
func slack(t *testing.T, options ...Option) (*Server, *slackgo.Client) {
	t.Helper()
	s := New(t, options...)
	s.AddChannel(Channel{ID: room, Name: "desk", IsMember: true})
	s.AddUser(ann)
	return s, client(t, s, BotToken)
}

// client keeps no connection when the test ends: no goroutine is left.
func client(t *testing.T, s *Server, token string) *slackgo.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return slackgo.New(token, slackgo.OptionAPIURL(s.URL()), slackgo.OptionAppLevelToken(AppToken),
		slackgo.OptionHTTPClient(&http.Client{Transport: transport}))
}

// code is the error code of the Web API.
func code(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var said slackgo.SlackErrorResponse
	if !errors.As(err, &said) {
		t.Fatalf("got %T %v, want an error of the Web API", err, err)
	}
	return said.Err
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(t, err); got != want {
		t.Fatalf("got error %q (%v), want %q", got, err, want)
	}
}

func post(t *testing.T, api *slackgo.Client, options ...slackgo.MsgOption) string {
	t.Helper()
	_, ts, err := api.PostMessageContext(t.Context(), room, options...)
	if err != nil {
		t.Fatalf("chat.postMessage: %v", err)
	}
	return ts
}

func textOption(text string) slackgo.MsgOption { return slackgo.MsgOptionText(text, true) }

// blocksOf reads blocks as the library has them.
func blocksOf(t *testing.T, raw string) slackgo.MsgOption {
	t.Helper()
	var blocks slackgo.Blocks
	if err := json.Unmarshal([]byte(raw), &blocks); err != nil {
		t.Fatal(err)
	}
	return slackgo.MsgOptionBlocks(blocks.BlockSet...)
}

func TestTokens(t *testing.T) {
	s, _ := slack(t)
	for token, want := range map[string]string{BotToken: "", AppToken: "not_allowed_token_type", "xoxb-other": "invalid_auth", "": "not_authed"} {
		_, err := client(t, s, token).AuthTestContext(t.Context())
		wantCode(t, err, want)
	}
	opening := slackgo.New(BotToken, slackgo.OptionAPIURL(s.URL()), slackgo.OptionAppLevelToken(BotToken))
	_, _, err := opening.StartSocketModeContext(t.Context())
	wantCode(t, err, "not_allowed_token_type")
}

func TestWorkspace(t *testing.T) {
	s, api := slack(t)
	s.SetTeam(Team{ID: "T0OTHER", Name: "Other", Domain: "other"})
	who, err := api.AuthTestContext(t.Context())
	if err != nil || who.TeamID != "T0OTHER" || who.UserID != BotUser || who.BotID != BotID || who.URL != "https://other.slack.com/" {
		t.Fatalf("auth.test: %+v, %v", who, err)
	}
	s.SetChannel(room, func(c *Channel) { c.IsExtShared, c.ContextTeamID = true, "T0GUEST" })
	c, err := api.GetConversationInfoContext(t.Context(), &slackgo.GetConversationInfoInput{ChannelID: room})
	if err != nil || !c.IsExtShared || c.IsOrgShared || c.ContextTeamID != "T0GUEST" || c.Name != "desk" || !c.IsMember || c.IsIM {
		t.Fatalf("conversations.info: %+v, %v", c, err)
	}
	s.AddUser(User{ID: "U0BOT2", Name: "robot", IsBot: true, Deleted: true, TeamID: "T0X"})
	u, err := api.GetUserInfoContext(t.Context(), "U0BOT2")
	if err != nil || !u.IsBot || !u.Deleted || u.TeamID != "T0X" || u.Name != "robot" {
		t.Fatalf("users.info: %+v, %v", u, err)
	}
	_, err = api.GetUserInfoContext(t.Context(), "U0NOBODY")
	wantCode(t, err, "user_not_found")
}

func TestChannelsAreListedInPages(t *testing.T) {
	s, api := slack(t)
	s.AddChannel(Channel{ID: "C0OLD", Name: "old", IsMember: true, IsArchived: true})
	s.AddChannel(Channel{ID: "G0SECRET", Name: "secret", IsPrivate: true})
	s.AddChannel(Channel{ID: "G0OURS", Name: "ours", IsPrivate: true, IsMember: true})
	s.AddChannel(Channel{ID: "D0ANN", IsIM: true, User: ann.ID})
	var ids []string
	for cursor, pages := "", 0; ; pages++ {
		channels, next, err := api.GetConversationsContext(t.Context(), &slackgo.GetConversationsParameters{
			Cursor: cursor, Limit: 2, ExcludeArchived: true, Types: []string{"public_channel", "private_channel"}})
		if err != nil || pages > 3 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for _, c := range channels {
			ids = append(ids, c.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(ids, []string{room, "G0OURS"}) {
		t.Fatalf("listed: %v", ids)
	}
}

func TestWhereNothingCanBePosted(t *testing.T) {
	s, api := slack(t)
	s.AddChannel(Channel{ID: "C0OUT", Name: "out"})
	s.AddChannel(Channel{ID: "C0OLD", Name: "old", IsMember: true, IsArchived: true})
	s.AddChannel(Channel{ID: "G0SECRET", Name: "secret", IsPrivate: true})
	for channel, want := range map[string]string{
		"C0OUT": "not_in_channel", "C0OLD": "is_archived", "G0SECRET": "channel_not_found", "C0NONE": "channel_not_found", "#desk": "channel_not_found",
	} {
		_, _, err := api.PostMessageContext(t.Context(), channel, textOption("hello"))
		wantCode(t, err, want)
	}
	_, _, err := api.PostMessageContext(t.Context(), room, textOption(" \n"))
	wantCode(t, err, "no_text")
}

func TestEchoAndDecoding(t *testing.T) {
	s, api := slack(t)
	for _, text := range []string{"AT&T: 5 < 6 > 4", "literal &lt;b&gt;", "literal &amp;lt;", "https://example.com/?a=1&b=2"} {
		_, ts, m, err := api.PostMessageWithResponseContext(t.Context(), room, textOption(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := Decode(strings.Trim(m.Text, "<>")); got != text {
			t.Errorf("%q came back as %q", text, m.Text)
		}
		kept, ok := s.Message(room, ts)
		if !ok || Decode(kept.Text) != text || kept.User != BotUser || kept.Params["channel"] != room {
			t.Errorf("%q was kept as %+v", text, kept)
		}
	}
	requests := s.Requests("chat.postMessage")
	if len(requests) != 4 || !strings.Contains(string(requests[0].Body), "text=AT%26amp%3BT") || requests[0].Header.Get("Content-Type") == "" {
		t.Fatalf("requests: %d, %s", len(requests), requests[0].Body)
	}
}

func TestThreads(t *testing.T) {
	s, api := slack(t)
	theirs := s.SayAt("1600000000.000100", room, ann.ID, "what does it cost?")
	reply := post(t, api, textOption("900"), slackgo.MsgOptionTS(theirs.TS))
	again := post(t, api, textOption("really"), slackgo.MsgOptionTS(reply))
	lost := post(t, api, textOption("lost"), slackgo.MsgOptionTS("1500000000.000100"))
	all := s.Messages(room)
	if len(all) != 4 || all[1].TS != reply || all[1].ThreadTS != theirs.TS || all[2].ThreadTS != theirs.TS || all[3].TS != lost || all[3].ThreadTS != "" {
		t.Fatalf("messages: %+v", all)
	}
	if !(theirs.TS < reply && reply < again && again < lost) || !timestamp.MatchString(lost) {
		t.Fatalf("timestamps: %s %s %s %s", theirs.TS, reply, again, lost)
	}
	link, err := api.GetPermalinkContext(t.Context(), &slackgo.PermalinkParameters{Channel: room, Ts: reply})
	const page = "https://example.slack.com/archives/" + room + "/p17"
	if err != nil || !strings.HasPrefix(link, page) || !strings.HasSuffix(link, "?thread_ts="+theirs.TS+"&cid="+room) {
		t.Fatalf("permalink %q, %v", link, err)
	}
}

func TestUpdateAndDelete(t *testing.T) {
	s, api := slack(t)
	theirs := s.Say(room, ann.ID, "mine")
	ts := post(t, api, textOption("first"), blocksOf(t, `[{"type":"divider"}]`))
	update := func(channel, ts string, options ...slackgo.MsgOption) error {
		_, _, _, err := api.UpdateMessageContext(t.Context(), channel, ts, options...)
		return err
	}
	wantCode(t, update(room, theirs.TS, textOption("x")), "cant_update_message")
	wantCode(t, update(room, "1600000000.000100", textOption("x")), "message_not_found")
	wantCode(t, update("C0NONE", ts, textOption("x")), "channel_not_found")
	wantCode(t, update(room, ts, textOption(strings.Repeat("x", maxUpdateText+1))), "msg_too_long")
	wantCode(t, update(room, ts, textOption(strings.Repeat("x", maxUpdateText))), "")
	wantCode(t, update(room, ts, textOption("last"), slackgo.MsgOptionBlocks()), "")

	m, _ := s.Message(room, ts)
	if len(m.Edits) != 2 || m.Edits[0].Text != "first" || len(m.Edits[1].Blocks) != 1 || m.Text != "last" || len(m.Blocks) != 0 || m.EditedTS <= ts {
		t.Fatalf("blocks left out stay, an empty array takes them away; got %+v", m)
	}
	_, _, err := api.DeleteMessageContext(t.Context(), room, theirs.TS)
	wantCode(t, err, "cant_delete_message")
	_, _, err = api.DeleteMessageContext(t.Context(), room, ts)
	wantCode(t, err, "")
	wantCode(t, update(room, ts, textOption("x")), "message_not_found")
	if gone := s.Deleted(room); len(gone) != 1 || len(s.Messages(room)) != 1 {
		t.Fatalf("deleted: %+v", gone)
	}
}

func TestEphemerals(t *testing.T) {
	s, api := slack(t)
	_, err := api.PostEphemeralContext(t.Context(), room, "U0NOBODY", textOption("psst"))
	wantCode(t, err, "user_not_in_channel")
	ts, err := api.PostEphemeralContext(t.Context(), room, ann.ID, textOption("psst"))
	wantCode(t, err, "")
	if got := s.Ephemerals(ann.ID); len(got) != 1 || got[0].Text != "psst" || got[0].TS != ts || len(s.Messages(room)) != 0 {
		t.Fatalf("ephemerals: %+v", got)
	}
	_, _, _, err = api.UpdateMessageContext(t.Context(), room, ts, textOption("x"))
	wantCode(t, err, "message_not_found")
}

// send posts a body and returns the answer as it came.
func send(t *testing.T, s *Server, method, kind, body string) (answer reply) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+BotToken)
	r.Close = true
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	read, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	decode(read, &answer)
	return answer
}

func TestBodiesOtherThanForms(t *testing.T) {
	s, _ := slack(t)
	const kind = "application/json; charset=utf-8"
	for _, c := range []struct{ method, kind, body, want string }{
		{"chat.postMessage", kind, `{"channel":"C0ROOM","text":"hi","blocks":[{"type":"divider"}],"mrkdwn":false}`, ""},
		{"chat.postMessage", kind, `{"channel":"C0ROOM","blocks":"[{\"type\":\"divider\"}]"}`, ""},
		{"chat.postMessage", kind, `{"channel":`, "invalid_json"},
		{"chat.postMessage", kind, `[]`, "json_not_object"},
		{"chat.postMessage", "text/plain", `x`, "invalid_post_type"},
		{"chat.postMessage", kind, `{"channel":"C0ROOM","blocks":{}}`, "invalid_blocks_format"},
		{"chat.postMessage", kind, `{"channel":"C0ROOM","text":"x","attachments":[{}]}`, "invalid_attachments"},
		{"chat.postMassage", kind, `{}`, "unknown_method"},
	} {
		if got := str(send(t, s, c.method, c.kind, c.body)["error"]); got != c.want {
			t.Errorf("%s %s: got error %q, want %q", c.method, c.body, got, c.want)
		}
	}
	if got := send(t, s, "auth.test", "application/json", "{}"); got["warning"] != "missing_charset" || got["ok"] != true {
		t.Errorf("JSON without a charset: %v", got)
	}
	if first := s.Messages(room)[0]; first.Params["mrkdwn"] != "false" || string(first.RawBlocks) != `[{"type":"divider"}]` {
		t.Errorf("the first message: %+v", first)
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	s, _ := slack(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Until(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
