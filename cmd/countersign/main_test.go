package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"countersign": main,
		"probe":       probeMain,
	})
}

// noExitSleep is $GORACE for processes of a test built with -race: each would wait a second before it ends.
const noExitSleep = "atexit_sleep_ms=0"

// The scripts are run with the real program as a process of its own; they double as a manual of its command line.
func TestScripts(t *testing.T) {
	path := ""
	if builtWithRace() {
		path = plainProgram(t) + string(os.PathListSeparator)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", noExitSleep)
			e.Setenv("PATH", path+e.Getenv("PATH"))
			return nil
		},
	})
}

func builtWithRace() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// plainProgram builds the program as its users have it, and returns the folder it is in. With the race detector a process
// takes ten times as long, and the scripts start hundreds; what one process does at once is raced in the other tests.
func plainProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, programName), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}
