package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionFrom(t *testing.T) {
	built := versionFrom(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc123"}, {Key: "vcs.time", Value: "2026-11-30T21:17:00Z"}, {Key: "vcs.modified", Value: "true"},
		},
	})
	built.Platform = "" // this machine's
	if want := (buildVersion{"v1.2.3", "go1.26.8", "", "abc123", "2026-11-30T21:17:00Z", true}); built != want {
		t.Errorf("got %+v", built)
	}
	if got := versionFrom(&debug.BuildInfo{}); got.Version != "(devel)" || got.Commit != "" || got.Modified {
		t.Errorf("got %+v", got)
	}
}

// All ways of asking get the same answer.
func TestVersion(t *testing.T) {
	text := runTest(t, testEnv("version"))
	if text.code != 0 || !strings.HasPrefix(text.stdout, "countersign ") || text.stderr != "" {
		t.Errorf("got %+v", text)
	}
	for _, line := range []string{"--version", "--version approve", "approve --version 5", "-v version"} {
		if got := runTest(t, testEnv(strings.Fields(line)...)); got != text {
			t.Errorf("%s: got %+v", line, got)
		}
	}
	asJSON := runTest(t, testEnv("--version", "--json"))
	var value map[string]any
	if err := json.Unmarshal([]byte(asJSON.stdout), &value); err != nil {
		t.Fatalf("%v in %q", err, asJSON.stdout)
	}
	for _, key := range []string{"version", "go", "platform", "commit", "commit_time", "modified"} {
		if _, ok := value[key]; !ok {
			t.Errorf("%s is missing in %v", key, value)
		}
	}
	if got := runTest(t, testEnv("version", "--json")); got != asJSON {
		t.Errorf("got %+v", got)
	}
}
