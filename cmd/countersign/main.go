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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once, the usual way.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, processEnv()))
}
