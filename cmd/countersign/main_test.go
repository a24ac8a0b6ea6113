package main

import (
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
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", noExitSleep)
			return nil
		},
	})
}
