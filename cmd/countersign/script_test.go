package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are what the scripts have besides the commands of testscript:
//
//	fails CODE PROGRAM [ARG...]    run it; it must end with exactly this exit code
//	keys FILE PATH KEY...          the object at PATH, or each in the array there, has all these keys
//	value FILE PATH WANT           the value at PATH: as JSON, or a string as it is
//	getjson NAME FILE PATH         put the value at PATH into the environment
//	bytes FILE TEXT                write what the escapes of a Go string in TEXT stand for: \x00, \u200b
//
// FILE holds one JSON value and may be stdout or stderr. PATH is "." or names and indexes joined by dots: 0.claim.state.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	commands := map[string]func(*testscript.TestScript, []string){
		"fails":   scriptFails,
		"keys":    scriptKeys,
		"value":   scriptValue,
		"getjson": scriptGetJSON,
		"bytes":   scriptBytes,
	}
	out := map[string]func(*testscript.TestScript, bool, []string){}
	for name, run := range commands {
		out[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < 2 {
				ts.Fatalf("%s is called in another way", name)
			}
			run(ts, args)
		}
	}
	return out
}

func scriptFails(ts *testscript.TestScript, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		ts.Fatalf("it succeeded, want exit %d", want)
	case !ok:
		ts.Fatalf("%v", err)
	case exit.ExitCode() != want:
		ts.Fatalf("exit %d, want %d", exit.ExitCode(), want)
	}
}

// jsonAt reads the one JSON value of a file, and follows path into it.
func jsonAt(ts *testscript.TestScript, file, path string) any {
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	if decoder.More() {
		ts.Fatalf("%s holds more than one JSON value", file)
	}
	if path == "." {
		return value
	}
	for name := range strings.SplitSeq(path, ".") {
		var ok bool
		switch v := value.(type) {
		case map[string]any:
			value, ok = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if ok = err == nil && i < len(v); ok {
				value = v[i]
			}
		}
		if !ok {
			ts.Fatalf("%s: there is no %s in %s", file, name, path)
		}
	}
	return value
}

func scriptKeys(ts *testscript.TestScript, args []string) {
	value := jsonAt(ts, args[0], args[1])
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	if len(list) == 0 {
		ts.Fatalf("the array is empty, so that nothing could be found missing")
	}
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			ts.Fatalf("%v is no object", item)
		}
		for _, key := range args[2:] {
			if _, ok := object[key]; !ok {
				ts.Fatalf("%s is missing in %v", key, object)
			}
		}
	}
}

func jsonText(ts *testscript.TestScript, value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	ts.Check(err)
	return string(text)
}

func scriptValue(ts *testscript.TestScript, args []string) {
	if len(args) != 3 {
		ts.Fatalf("value FILE PATH WANT")
	}
	value := jsonAt(ts, args[0], args[1])
	asJSON, err := json.Marshal(value)
	ts.Check(err)
	if want := args[2]; want != jsonText(ts, value) && want != string(asJSON) {
		ts.Fatalf("%s is %s, want %s", args[1], asJSON, want)
	}
}

func scriptGetJSON(ts *testscript.TestScript, args []string) {
	if len(args) != 3 {
		ts.Fatalf("getjson NAME FILE PATH")
	}
	ts.Setenv(args[0], jsonText(ts, jsonAt(ts, args[1], args[2])))
}

func scriptBytes(ts *testscript.TestScript, args []string) {
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
