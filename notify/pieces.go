package notify

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/slack-go/slack/slackutilsx"

	"countersign/plaintext"
)

// Limits of a message's blocks, in characters as they are sent: an & counts as the five of its escape.
const (
	// maxPiece is below the 3,000 of https://docs.slack.dev/reference/block-kit/blocks/section-block.
	maxPiece = 2_800
	// maxMessage bounds the blocks of one message together. Slack documents no figure and answers msg_blocks_too_long beyond some 13,000.
	maxMessage = 11_500
	// maxBlocks is below the 50 of https://docs.slack.dev/reference/block-kit/blocks.
	maxBlocks = 45
)

// unescape undoes the library's EscapeMessage, once.
func unescape(shown string) string { return entities.Replace(shown) }

var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// Plain is a foreign string of one line as it is sent to be shown: hidden characters as marks, nothing in it markup.
func Plain(s string) string { return slackutilsx.EscapeMessage(plaintext.VisibleLine(s)) }

// Pieces cuts a foreign text into what fits into blocks of limit characters, as it is sent to be shown. Together the pieces show what
// Visible shows of the whole.
func Pieces(text string, limit int) []string {
	var out []string
	for _, p := range pieces(text, limit) {
		out = append(out, p.shown)
	}
	return out
}

// piece is a stretch of a text, and how it is sent to be shown.
type piece struct{ raw, shown string }

// characters is a length as Slack counts it.
func characters(s string) int { return utf8.RuneCountInString(s) }

// pieces cuts a text into stretches whose shown form has at most limit characters, if possible after a line end, else between two words.
// No mark, no escape, and no character that a reader sees as one is cut in two, unless that alone is longer than the limit. Together the
// stretches are the text.
func pieces(text string, limit int) []piece {
	var out []piece
	for all := atoms(text, limit); len(all) > 0; {
		n := goodEnd(all, fitting(all, limit))
		out = append(out, joined(all[:n]))
		all = all[n:]
	}
	return out
}

// atoms are what is never cut: marks, and between them the characters that a reader sees as one.
func atoms(text string, limit int) []piece {
	var out []piece
	for _, p := range plaintext.Parts(text) {
		if p.Raw != p.Shown {
			out = append(out, piece{p.Raw, slackutilsx.EscapeMessage(p.Shown)})
			continue
		}
		for c := graphemes.FromString(p.Raw); c.Next(); {
			out = appendCluster(out, c.Value(), limit)
		}
	}
	return out
}

// appendCluster takes apart a letter with thousands of accents: shown in pieces it is shown, and refused by Slack it would not be.
func appendCluster(out []piece, cluster string, limit int) []piece {
	if characters(cluster) <= limit {
		return append(out, piece{cluster, slackutilsx.EscapeMessage(cluster)})
	}
	for _, r := range cluster {
		out = append(out, piece{string(r), slackutilsx.EscapeMessage(string(r))})
	}
	return out
}

// fitting is how many atoms fit, at least one.
func fitting(all []piece, limit int) int {
	size := 0
	for i, a := range all {
		if size += characters(a.shown); size > limit && i > 0 {
			return i
		}
	}
	return len(all)
}

// goodEnd is where to cut, at most n and no less than half of it: before a line or a word. What follows begins with ink, so that no piece
// is blank, and none loses its beginning where Slack trims a block.
func goodEnd(all []piece, n int) int {
	if n == len(all) {
		return n
	}
	for n > 1 && !slices.ContainsFunc(all[n:], hasInk) {
		n-- // what would be left is blank
	}
	word := n
	for i := n; i > n/2; i-- {
		switch {
		case isBlank(all[i]) || !isBlank(all[i-1]):
		case strings.HasSuffix(all[i-1].shown, "\n"):
			return i
		case word == n:
			word = i
		}
	}
	return word
}

func hasInk(a piece) bool { return !isBlank(a) }

func isBlank(a piece) bool { return strings.TrimFunc(a.shown, unicode.IsSpace) == "" }

func joined(all []piece) piece {
	var raw, shown strings.Builder
	for _, a := range all {
		raw.WriteString(a.raw)
		shown.WriteString(a.shown)
	}
	return piece{raw.String(), shown.String()}
}

// paged packs pieces into as few messages as take them, in order.
func paged(all []piece) [][]piece {
	var out [][]piece
	start, size := 0, 0
	for i, p := range all {
		n := characters(p.shown)
		if i > start && (i-start == maxBlocks-1 || size+n > maxMessage) { // one block is the message's label
			out = append(out, all[start:i])
			start, size = i, 0
		}
		size += n
	}
	if start < len(all) {
		out = append(out, all[start:])
	}
	return out
}

// shortened is the beginning of a line of a foreign text, as it is sent to be shown, in at most limit characters. It is for headings and
// previews, below which all of it stands.
func shortened(line string, limit int) string {
	all := atoms(oneLine(line), limit)
	if shown := joined(all).shown; characters(shown) <= limit {
		return shown
	}
	return joined(all[:fitting(all, limit-1)]).shown + "…"
}

// oneLine keeps a foreign string from looking like several lines of ours.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
