//go:build !linux

package forkchain

// run is for Linux alone.
func run(bool) {}
