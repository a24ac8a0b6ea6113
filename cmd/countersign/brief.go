package main

import (
	"bytes"
	"fmt"
	"time"

	"countersign/ledger"
	"countersign/textdiff"
)

// brief is a draft laid out for the panel, in lines that fit the screen's width.
type brief struct {
	lines []string
	end   int // of the text: the lines that must have been on the screen before it is approved
}

// layOut puts what an operator decides on in this order: where it goes, what the system has to say of it, the whole text, what changed
// since an operator saw it last, and only then what the agent says, under the agent's name.
func layOut(p *page, s ledger.Subject, now time.Time) brief {
	briefDestination(p, s)
	briefMarkers(p, s.Markers)
	p.blank()
	p.line("The text, whole (%d characters):", len([]rune(s.DraftText)))
	p.quote(s.DraftText)
	end := bytes.Count(p.buf.Bytes(), []byte("\n"))
	briefChanges(p, s)
	briefRemark(p, s.Remark)
	briefAgent(p, s)
	briefTimes(p, s, now)
	return brief{lines: p.lines(), end: end}
}

func briefDestination(p *page, s ledger.Subject) {
	p.fields(
		field{"priority", string(s.Priority)},
		field{"to", s.Counterparty},
		field{"platform", s.Platform},
		field{"channel", s.Channel},
		field{"thread", optional(s.Thread)},
		field{"subject", optional(s.Subject)},
	)
}

func briefMarkers(p *page, markers []string) {
	if len(markers) == 0 {
		return
	}
	p.blank()
	p.line("The system says:")
	for _, m := range markers {
		p.fieldsIn(markerInk, field{"", m})
	}
}

// briefChanges compares with the filing before, or with the rejected draft that this one takes the place of.
func briefChanges(p *page, s ledger.Subject) {
	if s.Previous == nil {
		return
	}
	p.blank()
	if s.Previous.Rejected {
		p.line("Changed since obligation %d, which was rejected:", s.Previous.ObligationID)
	} else {
		p.line("Changed since the filing before (epoch %d):", s.Previous.Epoch)
	}
	changed := briefFieldChanges(p, s)
	switch {
	case s.Previous.Text != s.DraftText:
		p.diff(linesOf(textdiff.Compare(s.Previous.Text, s.DraftText)))
	case changed:
		p.line("The text is the same.")
	default:
		p.line("Nothing: destination, subject and text are the same.")
	}
}

// briefFieldChanges tells of destination and subject. A rejected draft went to the same channel, or it would not be compared with.
func briefFieldChanges(p *page, s ledger.Subject) bool {
	before := ledger.FilingShown{Platform: s.Platform, Channel: s.Channel, Thread: s.Thread}
	if s.Previous.Subject != "" {
		before.Subject = &s.Previous.Subject
	}
	if n := len(s.Filings); n > 1 && !s.Previous.Rejected {
		before = s.Filings[n-2]
	}
	changes := changedFields(before, ledger.FilingShown{Platform: s.Platform, Channel: s.Channel, Thread: s.Thread, Subject: s.Subject})
	for _, c := range changes {
		p.fields(field{c.Field + " was", optional(c.From)}, field{c.Field + " is", optional(c.To)})
	}
	return len(changes) > 0
}

func briefRemark(p *page, r *ledger.Remark) {
	if r == nil {
		return
	}
	p.blank()
	p.line("The last word of an operator:")
	p.fields(field{r.Kind + " by " + r.By, p.time(r.AtTS)})
	p.quote(r.Note)
}

// briefAgent is all that the agent chose to say. Each line stands behind a bar, so that none looks like the system's.
func briefAgent(p *page, s ledger.Subject) {
	p.blank()
	p.fields(field{"Filed by agent", orNone(s.Agent)})
	if s.OriginUser != "" {
		p.fields(field{"for user", s.OriginUser})
	}
	p.line("The agent says:")
	p.quote(orNone(s.Summary))
	if said := s.AgentContext(); said != "" {
		p.quote(said)
	}
}

func briefTimes(p *page, s ledger.Subject, now time.Time) {
	var list []field
	if s.Signal != nil {
		list = append(list, field{"answers", fmt.Sprintf("obligation %d: %s", s.Signal.ObligationID, s.Signal.Summary)})
	}
	if s.FirstFiledTS != 0 && s.FirstFiledTS != s.FiledTS {
		list = append(list, field{"first filed", fmt.Sprintf("%s (%s ago)", p.time(s.FirstFiledTS), age(now, s.FirstFiledTS))})
	}
	list = append(list, field{"filed", fmt.Sprintf("%s (%s ago)", p.time(s.FiledTS), age(now, s.FiledTS))})
	if s.AutoSendAfter != nil {
		list = append(list, field{"sends itself", p.time(*s.AutoSendAfter)})
	}
	p.blank()
	p.fields(append(list, field{"obligation", fmt.Sprintf("%d · epoch %d · sha256 %.8s", s.ObligationID, s.Epoch, s.DraftSHA256)})...)
}
