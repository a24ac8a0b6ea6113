package telegram

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// envEmulator is the directory where the npm package telegram-test-api, an emulator of
// the Bot API by others, is installed: …/node_modules/telegram-test-api.
const envEmulator = "COUNTERSIGN_TELEGRAM_EMULATOR"

// startEmulator is the emulator's own documented way to start it. It says where it
// listens, and ends with its input, so that it never outlives this process. A port of
// "0" is any free one, where the number 0 is its default, 9000.
const startEmulator = `
const TelegramServer = require(process.argv[1]);
const server = new TelegramServer({ host: '127.0.0.1', port: '0', storage: 'RAM', storeTimeout: 3600 });
server.start().then(() => console.log(server.server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
`

// emulator starts it, or skips the test and says why.
func emulator(t *testing.T) (address string) {
	t.Helper()
	dir := os.Getenv(envEmulator)
	if dir == "" {
		t.Skipf("SKIPPED: no Bot API by others to deliver to. Set %s to the directory of the npm package telegram-test-api, "+
			"such as node_modules/telegram-test-api after npm install telegram-test-api", envEmulator)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("SKIPPED: %s is set, but there is no node to run it: %v", envEmulator, err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err != nil {
		t.Fatalf("%s is no installed package: %v", envEmulator, err)
	}
	return run(t, exec.CommandContext(t.Context(), node, "-e", startEmulator, dir))
}

func run(t *testing.T, c *exec.Cmd) (address string) {
	t.Helper()
	var complaints bytes.Buffer
	c.Stderr = &complaints
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = in.Close()
		_ = c.Wait()
		t.Fatalf("the emulator did not start: %v\n%s", err, complaints.String())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// stored is a message as the emulator keeps it: the parameters of sendMessage.
type stored struct {
	MessageID int `json:"messageId"`
	Message   struct {
		ChatID      string `json:"chat_id"`
		Text        string `json:"text"`
		Topic       string `json:"message_thread_id"`
		Reply       string `json:"reply_parameters"`
		LinkPreview string `json:"link_preview_options"`
		ParseMode   string `json:"parse_mode"`
	} `json:"message"`
}

// history asks the emulator, as a client in its tests would, what the bot has sent.
func history(t *testing.T, address string) (all []stored) {
	t.Helper()
	r, err := http.Post(address+"/getUpdatesHistory", "application/json", strings.NewReader(object(map[string]string{"token": token})))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var reply struct {
		OK     bool     `json:"ok"`
		Result []stored `json:"result"`
	}
	if err := json.NewDecoder(r.Body).Decode(&reply); err != nil || !reply.OK {
		t.Fatalf("history: %v, %+v", err, reply)
	}
	return reply.Result
}

// Delivery to a Bot API that others wrote: what it stored is what was approved. It has
// no getChat, so the chat is not checked.
func TestEmulator(t *testing.T) {
	address := emulator(t)
	tr := open(t, nil, func(c *Config) { c.APIURL, c.CheckChat = address, false })
	session := connect(t, tr)
	texts := transporttest.NastyTexts()
	for name, text := range map[string]string{
		"paths": "see /a_b/c_d, x*y", "dots": "1.5 - done!", "4,096": strings.Repeat("a", MaxText),
		"emoji": strings.Repeat("🙂", MaxText/2), "form": "a=b&c=d+e%20f;g[h]=i&text=j",
	} {
		texts = append(texts, transporttest.NastyText{Name: name, Text: text})
	}
	var want []transports.Message
	var places []string
	for _, text := range texts {
		m := with(func(m *transports.Message) { m.Text, m.Thread = text.Text, "42" })
		if tr.Validate(m) != nil {
			continue // refused at filing
		}
		prepare(t, session, m)
		r, err := session.Send(t.Context(), claimed(m))
		if err != nil || r.Altered {
			t.Errorf("%s: %+v, %v", text.Name, r, err)
		}
		want, places = append(want, m), append(places, r.Coordinate)
	}
	all := history(t, address)
	if len(all) != len(want) || len(want) < 12 {
		t.Fatalf("%d messages are stored, want %d, and no fewer than 12", len(all), len(want))
	}
	for i, got := range all {
		m := got.Message
		if m.Text != want[i].Text || m.ChatID != want[i].Channel || m.Topic != "42" || m.ParseMode != "" || m.LinkPreview != `{"is_disabled":true}` {
			t.Errorf("stored %+q\nwant   %+q", m, []string{want[i].Channel, want[i].Thread, want[i].Text})
		}
		if place := fmt.Sprintf("%s:%d", m.ChatID, got.MessageID); place != places[i] {
			t.Errorf("stored as %s, the receipt says %s", place, places[i])
		}
	}
}

// The emulator's answer has no reply_to_message, which is how a server from before Bot
// API 7.0, that doesn't know reply_parameters, would answer: the receipt says so.
func TestEmulatorKnowsNoReplies(t *testing.T) {
	address := emulator(t)
	m := with(func(m *transports.Message) { m.Thread = "reply:7" })
	tr := open(t, nil, func(c *Config) { c.APIURL, c.CheckChat = address, false })
	r, err := sendOne(t, tr, m)
	if err != nil || !r.Altered || !strings.HasSuffix(r.Detail, "it is not a reply to the message") {
		t.Errorf("%+v, %v", r, err)
	}
	if all := history(t, address); len(all) != 1 || all[0].Message.Reply != `{"message_id":7}` {
		t.Errorf("stored %+v", all)
	}
}

// With check_chat on, the emulator is a server that can't be asked: nothing is sent.
func TestEmulatorKnowsNoGetChat(t *testing.T) {
	address := emulator(t)
	session := connect(t, open(t, nil, func(c *Config) { c.APIURL = address }))
	err := session.Prepare(t.Context(), offer())
	if err == nil {
		t.Error("prepared")
	}
	if all := history(t, address); len(all) != 0 {
		t.Errorf("stored %+v", all)
	}
}
