package notify

import (
	"testing"

	slackgo "github.com/slack-go/slack"
)

// Slack keeps emoji by name, and leaves out what it doesn't tell: neither is another text. A changed word or a lost block is.
func TestWhatCountsAsAnotherContent(t *testing.T) {
	sent := Message{Fallback: "AT&T 👍", Blocks: append(sections("pay 900 & go 👍"), small("part 1"))}
	echo := func(text string, blocks ...slackgo.Block) slackgo.Message {
		return slackgo.Message{Msg: slackgo.Msg{Text: text, Blocks: slackgo.Blocks{BlockSet: blocks}}}
	}
	for _, test := range []struct {
		name string
		echo slackgo.Message
		want bool
	}{
		{"as sent", echo("AT&amp;T 👍", sent.Blocks...), false},
		{"nothing told", echo(""), false},
		{"emoji by name", echo("AT&amp;T :+1:", Section("pay 900 &amp; go :+1:"), small("part 1")), false},
		{"another fallback", echo("AT", sent.Blocks...), true},
		{"another word", echo("AT&amp;T 👍", Section("pay 950 &amp; go 👍"), small("part 1")), true},
		{"an escape undone twice", echo("AT&amp;T 👍", Section("pay 900 &amp;amp; go 👍"), small("part 1")), true},
		{"a lost block", echo("AT&amp;T 👍", sent.Blocks[0]), true},
		{"another order", echo("AT&amp;T 👍", sent.Blocks[1], sent.Blocks[0]), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := differs(sent, test.echo); got != test.want {
				t.Errorf("differs is %v", got)
			}
		})
	}
}
