//go:build race

package ledger_test

// interruptCycles is how many messages each worker of the interruption test delivers. The race detector makes a step twenty times as
// slow; the thousand contexts are ended in the run without it, which CI makes too.
const interruptCycles = 6
