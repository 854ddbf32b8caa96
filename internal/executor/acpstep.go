//go:build unix

package executor

import (
	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// Bounds of the steps of an attempt; one is at most 16 KiB, as those are that workers report (SPEC S7.6).
const (
	maxSteps     = 1000
	maxStepText  = 500 // bytes of a title or a path
	maxStepWord  = 100 // bytes of a kind or a status
	maxPlanText  = 240 // bytes of an entry of a plan
	maxPlanned   = 50  // entries of a plan
	maxLocations = 15
)

// steps passes on what the agent does as data: its tools, its plans and what it asks leave for. Its log tells the same in
// words, and goes on when there were too many steps.
type steps struct {
	sink Sink
	mask func(string) string
	told int
}

func (s *steps) tell(name string, what any) {
	switch s.told++; {
	case s.told <= maxSteps:
		s.sink.Progress(map[string]any{name: what})
	case s.told == maxSteps+1:
		s.sink.Progress(map[string]any{"truncated": true})
	}
}

func (s *steps) short(text string, limit int) string {
	return cutText(s.mask(domain.StorableText(text)), limit)
}

// set adds a member that is known.
func (s *steps) set(step map[string]any, name, text string) {
	if text != "" {
		step[name] = s.short(text, maxStepText)
	}
}

// tool reports a tool that is used for the first time, or whose state has changed.
func (s *steps) tool(id acp.ToolCallId, call toolCall, at []acp.ToolCallLocation) {
	step := map[string]any{"id": s.short(string(id), maxStepText)}
	s.set(step, "title", call.title)
	s.set(step, "kind", string(call.kind))
	s.set(step, "status", string(call.status))
	var places []any
	for _, place := range at[:min(len(at), maxLocations)] {
		places = append(places, s.short(place.Path, maxStepText))
	}
	if len(places) > 0 {
		step["locations"] = places
	}
	s.tell("tool", step)
}

// plan tells a plan that has changed.
func (s *steps) plan(entries []acp.PlanEntry) {
	list := []any{}
	for _, e := range entries[:min(len(entries), maxPlanned)] {
		list = append(list, map[string]any{"content": s.short(e.Content, maxPlanText), "priority": s.short(string(e.Priority), 20), "status": s.short(string(e.Status), 20)})
	}
	s.tell("plan", list)
}

// permission tells what the agent asked leave for, and the answer.
func (s *steps) permission(tool, title string, kind acp.ToolKind, allowed bool, policy domain.AcpPermissionPolicy) {
	step := map[string]any{"tool": s.short(tool, maxStepText), "allowed": allowed, "policy": string(policy)}
	s.set(step, "title", title)
	s.set(step, "kind", string(kind))
	s.tell("permission", step)
}
