package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	defaultWidth = 100 // columns, where neither a terminal nor $COLUMNS tells
	minWidth     = 40  // narrower than this nothing is laid out
)

// output is where results go: one JSON value, or text for people.
type output struct {
	w     io.Writer
	json  bool
	width int
	whole bool // it goes to no terminal, so that nothing is cut to fit one
	paint bool // in colour
	zone  *time.Location
}

func newOutput(e env, asJSON bool) output {
	whole := e.Width <= 0 && e.Getenv("COLUMNS") == ""
	return output{w: e.Stdout, json: asJSON, width: terminalWidth(e), whole: whole, paint: wantsColour(e), zone: e.Now().Location()}
}

// terminalWidth is $COLUMNS, else the terminal's own width.
func terminalWidth(e env) int {
	width, err := strconv.Atoi(e.Getenv("COLUMNS"))
	if err != nil || width <= 0 {
		width = e.Width
	}
	if width <= 0 {
		width = defaultWidth
	}
	return max(width, minWidth)
}

// show writes a command's result, once: value with --json, else the page that people lays out.
func (o output) show(value any, people func(p *page)) error {
	if o.json {
		return writeJSON(o.w, value)
	}
	p := &page{width: o.width, whole: o.whole, paint: o.paint, zone: o.zone}
	people(p)
	_, err := o.w.Write(p.buf.Bytes())
	return err
}

// writeJSON writes v on one line, with no HTML escaping, in one write.
func writeJSON(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	_, err := w.Write(escapeHidden(buf.Bytes()))
	return err
}

// escapeHidden writes as \u escapes what a terminal might obey or hide and encoding/json leaves as it is: C1 controls,
// bidirectional and zero-width characters, tags. They only occur inside strings, where RFC 8259 section 7 makes the
// escape the same character.
func escapeHidden(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, doc[:size]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		doc = doc[size:]
	}
	return out
}

// newLogger logs to stderr: warnings, and with verbose what goes on. A person at the terminal knows what time it is;
// a cron mail doesn't. With --json each line of stderr is JSON.
func newLogger(e env, asJSON, verbose bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	if verbose {
		options.Level = slog.LevelInfo
	}
	if asJSON {
		return slog.New(slog.NewJSONHandler(e.Stderr, options))
	}
	if e.StderrTTY {
		options.ReplaceAttr = func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		}
	}
	return slog.New(slog.NewTextHandler(e.Stderr, options))
}

// count is a number of things: "1 problem", "2 deliveries".
func count(n int, one string) string {
	stem, isY := strings.CutSuffix(one, "y")
	switch {
	case n == 1:
		return "1 " + one
	case isY:
		return fmt.Sprintf("%d %sies", n, stem)
	default:
		return fmt.Sprintf("%d %ss", n, one)
	}
}
