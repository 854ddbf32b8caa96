//go:build unix && !linux

package executor

// chainArgument is of Linux alone.
const chainArgument = "fork-chain"

func chain(bool) {}
