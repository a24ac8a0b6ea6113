package command_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"countersign/command"
)

const asParent = "COUNTERSIGN_TEST_RUN_AS_PARENT"

// TestMain lets the test binary be a process that runs a command and waits for it.
func TestMain(m *testing.M) {
	if path := os.Getenv(asParent); path != "" {
		_, err := command.Command{Path: path}.Run(context.Background(), nil)
		fmt.Fprintln(os.Stderr, "the command ended before its parent:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestTheProgramDiesWithUs(t *testing.T) {
	w := newWitness(t)
	c := script(t, "exec 3>"+w.path, "printf x >&3", "exec sleep 1000")
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"="+c.Path)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	w.heard(t)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Fatal("the parent was not killed")
	}
	w.gone(t)
}
