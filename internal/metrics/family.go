package metrics

import (
	"maps"
	"sync"

	"rouse.dev/rouse/internal/xid"
)

// scope says whether a counter belongs to a workspace or to the process.
type scope bool

const (
	perProcess   scope = false
	perWorkspace scope = true
)

// family is one counter with its labels. Labels beyond the workspace are closed sets, except where the bound cuts in.
type family struct {
	name, help string
	scope      scope
	labels     []string   // without the workspace; at most two
	closed     [][]string // the values that each label can have

	mu     sync.Mutex
	bounds [2]labels
	values map[series]int64
}

// series is one line of a family. workspace is empty when it is unattributed, or when the family is the process's.
type series struct {
	workspace xid.ID
	values    [2]string
}

// among names the values that each label can have, so that what has not happened yet is shown at 0.
func (f *family) among(values ...[]string) *family {
	f.closed = values
	return f
}

func newFamily(name, help string, s scope, labels ...string) *family {
	return &family{name: name, help: help, scope: s, labels: labels, values: make(map[series]int64)}
}

// add raises one series. Values are in the order of the labels.
func (f *family) add(ws xid.ID, n int64, values ...string) {
	key := series{workspace: ws}
	for i, v := range values {
		key.values[i] = f.bounds[i].show(v, maxValues)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] += n
}

// snapshot copies all series.
func (f *family) snapshot() map[series]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.values)
}

// of copies the series of one workspace.
func (f *family) of(ws xid.ID) map[[2]string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[[2]string]int64)
	for key, n := range f.values {
		if key.workspace == ws {
			out[key.values] = n
		}
	}
	return out
}

// sum adds up the series of one workspace.
func (f *family) sum(ws xid.ID) int64 {
	var sum int64
	for _, n := range f.of(ws) {
		sum += n
	}
	return sum
}

// shown is a family as it is published: the workspaces beyond the bound are one.
func (f *family) shown(workspaces *labels) map[[3]string]int64 {
	out := make(map[[3]string]int64)
	f.zero(workspaces, out)
	for key, n := range f.snapshot() {
		label := ""
		if f.scope == perWorkspace {
			label = unattributed
			if key.workspace != "" {
				label = workspaces.show(key.workspace.String(), MaxWorkspaces)
			}
		}
		out[[3]string{label, key.values[0], key.values[1]}] += n
	}
	return out
}

// zero adds what can be counted and is known before it was: the series of each workspace that the process knows of, or of
// the process (AC-OFFICE-LOOP-LIVENESS-003.4).
func (f *family) zero(workspaces *labels, out map[[3]string]int64) {
	if len(f.closed) < len(f.labels) {
		return
	}
	of := []string{""}
	if f.scope == perWorkspace {
		of = workspaces.all()
	}
	for _, workspace := range of {
		for values := range filled(make(map[[2]string]int64), f.valuesOf(0), f.valuesOf(1)) {
			out[[3]string{workspace, values[0], values[1]}] = 0
		}
	}
}

// valuesOf are the values of a label; one that the family does not have is always empty.
func (f *family) valuesOf(label int) []string {
	if label < len(f.closed) {
		return f.closed[label]
	}
	return []string{""}
}

// labelNames are the names of shown's labels, workspace first.
func (f *family) labelNames() []string {
	if f.scope == perWorkspace {
		return append([]string{"workspace"}, f.labels...)
	}
	return f.labels
}

// labelValues are the values that belong to labelNames.
func (f *family) labelValues(key [3]string) []string {
	if f.scope == perWorkspace {
		return key[:1+len(f.labels)]
	}
	return key[1 : 1+len(f.labels)]
}
