package config

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Line int    // in the file, counted from 1; 0 if it isn't known
	Key  string // such as deliver.concurrency or operators[1].id; "" if it is about no key
	Text string
}

// InvalidError lists all that is wrong with a configuration, in the order of the file.
type InvalidError struct {
	Path     string
	Problems []Problem
}

// Error says each on a line of its own, as path:line: key: text.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("the configuration is not valid:")
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n%s:", e.Path)
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:", p.Line)
		}
		if p.Key != "" {
			fmt.Fprintf(&b, " %s:", p.Key)
		}
		b.WriteString(" " + p.Text)
	}
	return b.String()
}

// findings collects problems, with their lines.
type findings struct {
	lines    lines
	problems []Problem
}

func (f *findings) report(key, format string, args ...any) {
	f.problems = append(f.problems, Problem{Line: f.lines.of(key), Key: key, Text: fmt.Sprintf(format, args...)})
}

func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems
}

// lines knows on which line a key stands. The TOML library keeps that to itself, so it is read off the form that people
// write: a table's header or "key =" at the start of a line. A key written in another form has the line of its section,
// or none.
type lines map[string]int

var (
	header     = regexp.MustCompile(`^\s*(\[\[?)\s*([^\[\]]+?)\s*\]`)
	assignment = regexp.MustCompile(`^\s*([A-Za-z0-9_."'-]+(?:\s*\.\s*[A-Za-z0-9_."'-]+)*)\s*=`)
	index      = regexp.MustCompile(`\[\d+\]`)
	multiline  = regexp.MustCompile(`"""|'''`)
)

func newLines(data []byte) lines {
	at := lines{}
	section, inString := "", false
	arrays := map[string]int{}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, maxFile+1)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		if !inString {
			if h := header.FindStringSubmatch(line); h != nil {
				section = bare(h[2])
				if h[1] == "[[" {
					at.add(section, n)
					arrays[section]++
					section = indexed(section, arrays[section]-1)
				}
				at.add(section, n)
			} else if a := assignment.FindStringSubmatch(line); a != nil {
				at.add(join(section, bare(a[1])), n)
			}
		}
		if len(multiline.FindAllString(line, -1))%2 == 1 {
			inString = !inString
		}
	}
	return at
}

// add notes the first place only: a key that stands twice is a syntax error, a table may be opened by its parts.
func (l lines) add(key string, n int) {
	if _, ok := l[key]; !ok {
		l[key] = n
	}
}

// of is the line of the key, or of the innermost section around it that has one; 0 if there is none.
func (l lines) of(key string) int {
	for {
		if n, ok := l[key]; ok {
			return n
		}
		cut := strings.LastIndexAny(key, ".[")
		if cut < 0 {
			return 0
		}
		key = key[:cut]
	}
}

// bare takes quotes and blanks out of a dotted key.
func bare(key string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\"'", r) {
			return -1
		}
		return r
	}, key)
}
