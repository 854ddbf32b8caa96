//go:build !linux

package agentstage

import "os"

// enter is for Linux alone.
func enter() { os.Exit(127) }
