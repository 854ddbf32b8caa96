package server

import (
	"os"
	"runtime/debug"

	"rouse.dev/rouse/internal/proc"
)

// garbagePercent lets the heap grow to three times of what lives before garbage is collected. What lives is some 8 MB, so that at the
// usual twice of it the collector took a quarter of the processor's time while a backlog was worked off (docs/performance.md).
const garbagePercent = 200

// settleMemory gives back what only the start needed. Whoever set GOGC knows better.
func (s *Server) settleMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(garbagePercent)
	}
	debug.FreeOSMemory()
	if err := proc.ForgetFile(); err != nil {
		s.log.Warn("the memory of the start is kept", "error", err)
	}
}
