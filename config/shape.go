package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xrash/smetrics"
)

// Which keys there are, and what type each has, is read off the type Config by its toml tags. Keys are compared exactly:
// the TOML library would take "Path" for "path" too, and either of the two if a file has both.

// unsupported lists the sections that this version can't honour yet. They must not be ignored: a "deny" that nobody obeys
// is worse than none. A section leaves this table when its function is built.
var unsupported = map[string]string{
	"tools":         "[tools]",
	"baseline":      "[baseline]",
	"auto_approval": "[auto_approval]",
	"review":        "[review]",
	"policy":        "[[policy]]",
	"seal":          "[seal]",
	"fence":         "[fence]",
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
)

// shape walks a decoded file beside the type it is meant for.
type shape struct{ findings }

func checkShape(tree map[string]any, at lines) []Problem {
	s := shape{findings{lines: at}}
	s.table("", tree, reflect.TypeFor[Config]())
	return s.problems
}

func (s *shape) table(path string, table map[string]any, t reflect.Type) {
	known := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		key := join(path, name)
		field, ok := known[name]
		switch section, later := unsupported[key]; {
		case later:
			s.report(key, "%s is not supported by this version; remove it", section)
		case !ok:
			s.report(key, "unknown key%s", suggestion(key))
		default:
			s.value(key, table[name], field)
		}
	}
}

func (s *shape) value(key string, v any, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType:
		s.duration(key, v)
	case t == secretType:
		s.secret(key, v)
	case t.Kind() == reflect.Slice:
		s.list(key, v, t.Elem())
	case t.Kind() == reflect.Struct:
		if table, ok := v.(map[string]any); ok {
			s.table(key, table, t)
			return
		}
		s.mismatch(key, "a table", v)
	case t.Kind() == reflect.String:
		if _, ok := v.(string); !ok {
			s.mismatch(key, "a string", v)
		}
	case t.Kind() == reflect.Int:
		if _, ok := v.(int64); !ok {
			s.mismatch(key, "an integer", v)
		}
	case t.Kind() == reflect.Bool:
		if _, ok := v.(bool); !ok {
			s.mismatch(key, "true or false", v)
		}
	}
}

func (s *shape) duration(key string, v any) {
	text, ok := v.(string)
	if !ok {
		s.mismatch(key, `a string with a unit, such as "30s"`, v)
		return
	}
	if text == "" && strings.HasPrefix(key, "notify.") {
		return // never
	}
	if _, err := time.ParseDuration(text); err != nil {
		s.report(key, `must be a time with a unit, such as "30s" or "1h30m", is %q`, text)
	}
}

func (s *shape) secret(key string, v any) {
	text, ok := v.(string)
	if !ok {
		s.mismatch(key, `a string, best "env:NAME" or "file:/path"`, v)
		return
	}
	if _, err := ParseSecret(text); err != nil {
		s.report(key, "%v", err)
	}
}

// list takes a list of strings, and both forms of an array of tables: [[operators]] and operators = [{…}].
func (s *shape) list(key string, v any, element reflect.Type) {
	var all []any
	switch list := v.(type) {
	case []map[string]any:
		for _, table := range list {
			all = append(all, table)
		}
	case []any:
		all = list
	default:
		want := "a list of tables, each under [[" + key + "]]"
		if element.Kind() == reflect.String {
			want = `a list of strings, such as ["a", "b"]`
		}
		s.mismatch(key, want, v)
		return
	}
	for i, one := range all {
		s.value(indexed(key, i), one, element)
	}
}

// mismatch names the type of what was found, and never its value: it may be half a secret.
func (s *shape) mismatch(key, want string, got any) {
	s.report(key, "must be %s, is %s", want, typeName(got))
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date"
	case map[string]any:
		return "a table"
	}
	return "a list"
}

// fieldsOf maps the keys of a table to the types of their values.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		if name := field.Tag.Get("toml"); name != "" && name != "-" {
			fields[name] = field.Type
		}
	}
	return fields
}

// knownKeys lists every key and section there is, arrays without an index.
func knownKeys(path string, t reflect.Type) []string {
	var keys []string
	fields := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		key := join(path, name)
		keys = append(keys, key)
		if kind := field.Kind(); kind == reflect.Pointer || kind == reflect.Slice {
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct && field != secretType {
			keys = append(keys, knownKeys(key, field)...)
		}
	}
	return keys
}

// suggestion names the key that was probably meant: one of the same name in another section, or one spelled nearly so.
func suggestion(key string) string {
	plain := index.ReplaceAllString(key, "")
	best, least := "", len(plain)/3+1
	for _, known := range knownKeys("", reflect.TypeFor[Config]()) {
		distance := smetrics.WagnerFischer(strings.ToLower(plain), known, 1, 1, 1)
		if strings.EqualFold(lastPart(plain), lastPart(known)) {
			distance = min(distance, 1)
		}
		if distance < least {
			best, least = known, distance
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func indexed(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
