// Package agentstage is the last step before an agent's program begins. Rouse's own program is started again under
// another name, takes rights away from itself, and then becomes the agent's program. What it does cannot be done from
// outside without a moment in which the agent already runs: limits, no new privileges, and a list of users that knows
// the agent's account.
//
// It is entered from an init function, so that every program that starts agents, tests too, can be started as it, before most
// of the program has been set up.
package agentstage

import (
	"encoding/json"
	"io"
	"os"
	"syscall"
)

// Name is the first argument of the program when it is this stage.
const Name = "rouse-agent-stage"

// Handles of the stage, after the three of the agent.
const (
	orderHandle  = 3 // the order is read from it
	reportHandle = 4 // what went wrong is written to it; it is closed by becoming the program
)

// Order is what the stage is to do, and what to become.
type Order struct {
	Program string
	Argv    []string
	Env     []string
	Dir     string

	Drop     bool // become UID and GID, without any other group
	UID, GID uint32
	Passwd   string // the account's line in the list of users, and
	Group    string // in that of groups, which this process and its children then see; "": the system's lists as they are

	Parent        int // process whose end ends this one
	Subreaper     bool
	NoNewPrivs    bool
	Processes     uint64 // most processes and threads of the account; 0: no limit
	OOMScore      int    // oom_score_adj, if it is higher than what there is
	ForegroundTTY bool   // the standard input is the terminal of a session of its own
}

// Report is why the program could not be started.
type Report struct {
	Step  string // what was tried: "chdir" and "exec" concern the program, all others the stage
	Errno syscall.Errno
}

// Encode writes an order for the stage.
func (o Order) Encode(w io.Writer) error { return json.NewEncoder(w).Encode(o) }

// ReadReport reads what a stage reports until it became the program, or ended; nil when it reports nothing.
func ReadReport(r io.Reader) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(r, 1<<16))
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var report Report
	return &report, json.Unmarshal(text, &report)
}

func init() {
	switch {
	case len(os.Args) != 1:
	case os.Args[0] == Name:
		enter()
	case os.Args[0] == WatchdogName:
		watch()
	}
}
