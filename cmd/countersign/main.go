// Command countersign is an approval ledger for outbound messages: agents file drafts, a named operator decides on the
// exact text, and a worker sends it once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(untilSignal(), processEnv()))
}

// untilSignal is cancelled by the signals that ask the program to end. A second Ctrl-C or SIGTERM ends the process at once, the usual
// way.
//
// A second SIGHUP doesn't: when a terminal closes, the shell sends one and the kernel another, and the message in hand is to be
// finished. Where the caller had it ignored (nohup), it stays ignored.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	return ctx
}
