//go:build !race

package ledger_test

// interruptCycles is how many messages each worker of the interruption test delivers: a thousand steps in all.
const interruptCycles = 84
