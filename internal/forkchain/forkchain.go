// Package forkchain is what a test program becomes to be hard to end: a chain of processes, each of which lives for 0.1 ms.
package forkchain

import "os"

// steps are enough for half a minute at least. What the chain has open, its last process closes.
const steps = 300_000

// Enter makes this program a chain when it was called so: PROGRAM fork-chain same, or fork-chain setsid for a new session with each
// step. It is to be called first in TestMain.
func Enter() {
	if len(os.Args) > 2 && os.Args[1] == "fork-chain" {
		run(os.Args[2] == "setsid")
		os.Exit(0)
	}
}
