package plaintext

import (
	"fmt"
	"slices"
	"strings"
)

// Findings counts what a reader of a text would not see.
type Findings struct {
	ZeroWidth          int // characters that draw nothing
	BidiControls       int // characters that turn the order of the text around them
	Tags               int // characters of the tag block, outside of flags
	VariationSelectors int // of the supplement, or after nothing that has variants
	BlankRuns          int // runs of at least 20 blanks in a line, or of at least 10 blank lines
	MixedDomains       int // host names that mix scripts, counted each time they occur

	// Domains are these host names in the order of their first occurrence, once each, with the foreign letters as
	// marks. They are safe to print.
	Domains []string
}

// maxDomains and maxDomain keep what String says of domains to a line, whatever the text holds.
const (
	maxDomains = 3
	maxDomain  = 60 // characters of one host name, before its letters become marks
)

// Hidden counts the hidden characters of s. Control characters are not among them: cleaning has removed them. Joiners
// and variation selectors that Arabic, Persian, Indic texts and emoji need are not hidden.
func Hidden(s string) Findings {
	var f Findings
	for _, sp := range scan(s) {
		switch sp.kind {
		case zeroWide:
			f.ZeroWidth++
		case bidi:
			f.BidiControls++
		case tag:
			f.Tags++
		case selector:
			f.VariationSelectors++
		case blanks, blankLines:
			f.BlankRuns++
		}
	}
	for _, h := range hosts(s) {
		f.addDomain(h)
	}
	return f
}

func (f *Findings) addDomain(h host) {
	f.MixedDomains++
	if shown := h.visible(maxDomain); !slices.Contains(f.Domains, shown) {
		f.Domains = append(f.Domains, shown)
	}
}

// Any tells whether there is anything to show.
func (f Findings) Any() bool {
	return f.ZeroWidth+f.BidiControls+f.Tags+f.VariationSelectors+f.BlankRuns+f.MixedDomains > 0
}

// String lists the counts that aren't zero, always in the same order: "1 zero-width, 2 bidi controls, 1 mixed-script
// domain (⟦U+0440⟧⟦U+0430⟧ypal.com)". It is safe to print, and "" if there is nothing.
func (f Findings) String() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(f.ZeroWidth, "zero-width", "zero-width")
	add(f.BidiControls, "bidi control", "bidi controls")
	add(f.Tags, "tag character", "tag characters")
	add(f.VariationSelectors, "variation selector", "variation selectors")
	add(f.BlankRuns, "long run of blanks", "long runs of blanks")
	add(f.MixedDomains, "mixed-script domain"+f.domains(), "mixed-script domains"+f.domains())
	return strings.Join(parts, ", ")
}

func (f Findings) domains() string {
	if len(f.Domains) == 0 {
		return ""
	}
	named := strings.Join(f.Domains[:min(len(f.Domains), maxDomains)], ", ")
	if len(f.Domains) > maxDomains {
		named += ", …"
	}
	return " (" + named + ")"
}
