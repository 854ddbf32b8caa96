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
	labels     []string    // without the workspace; at most two
	zeros      [][2]string // the series that are shown before anything is counted

	mu     sync.Mutex
	bounds [2]labels
	values map[series]int64
}

// series is one line of a family. workspace is empty when it is unattributed, or when the family is the process's.
type series struct {
	workspace xid.ID
	values    [2]string
}

// fromZero shows series at 0 before anything is counted: those of these values of the only label, or, without values,
// the one series of a family without labels. It is for what alarms are made on: an alarm on a rate needs a series that
// is there. All series of all workspaces at 0 made a scrape of megabytes.
func (f *family) fromZero(values ...string) *family {
	if len(values) == 0 {
		values = []string{""}
	}
	for _, value := range values {
		f.zeros = append(f.zeros, [2]string{value})
	}
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

// zero adds what is shown before it was counted, of each workspace that the process knows of, or of the process.
func (f *family) zero(workspaces *labels, out map[[3]string]int64) {
	of := []string{""}
	if f.scope == perWorkspace && len(f.zeros) > 0 {
		of = workspaces.all()
	}
	for _, workspace := range of {
		for _, values := range f.zeros {
			out[[3]string{workspace, values[0], values[1]}] = 0
		}
	}
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
