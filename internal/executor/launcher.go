//go:build unix

package executor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/xid"
)

const (
	defaultTimeout = 30 * time.Minute
	// defaultDrain is how long output is awaited after the leader's end while something still holds its pipes.
	defaultDrain = 2 * time.Second
	// endLimit is how long processes may take to disappear after KILL: only ones that hang in the kernel need it.
	endLimit = 10 * time.Second
)

// Options are what the server decides for all commands and ACP agents.
type Options struct {
	WorkRoot   string              // each agent gets a folder of its own below it
	Credential *syscall.Credential // the account commands run as; nil: the server's. Needs root
	Home       string              // HOME of that account; "" with Credential nil: the server's
	User       string              // its name, for USER and LOGNAME; may be ""
	Path       string              // PATH of commands; "": the server's, without what the account cannot enter
	Drain      time.Duration       // 0: 2 s
	// AccountOf, if it is set, names the account of each workspace's agents, instead of Credential, Home and User.
	AccountOf func(workspace xid.ID) (AgentAccount, error)
	account   *AgentAccount // of the workspace that these options are for

	NewPrivileges bool // programs such as sudo may raise an agent's rights
	Processes     int  // most processes and threads of an attempt, or where they cannot be counted so of its account; 0: no limit
	OOMScore      int  // oom_score_adj of agents; 0: the server's
	NoCgroups     bool // agents are kept together without cgroups
	// Installation is what a copy of the database does not share. It is in the mark of each launch, so that the server of a
	// copy takes no process of this one for its own.
	Installation string
	// Tools is the path of rouse's own program, which serves the tools of a run (rouse mcp); "": agents get none of them.
	Tools string
}

// launcher starts processes of agents, and ends them: with their attempt, and with the server. Executors share one.
type launcher struct {
	options  Options
	spawner  spawner
	watchdog watchdog
	copies   keyed // working copies that somebody is at, and their repositories

	mu     sync.Mutex
	closed bool
	live   sync.WaitGroup
}

func newLauncher(options Options) *launcher {
	if options.Drain == 0 {
		options.Drain = defaultDrain
	}
	return &launcher{options: options}
}

// Close waits for live runs, which the caller ends through their contexts, and then ends the watchdog. It is idempotent.
func (c *launcher) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.live.Wait()
	c.spawner.close()
	if err := c.watchdog.close(); err != nil {
		return fmt.Errorf("end the watchdog: %w", err)
	}
	return nil
}

// Check says why a command line could not be started here, and what to do; nil when it could, as far as can be seen.
func (c *launcher) Check(argv []string, workingDirectory string) error {
	o, failure := c.options.of("")
	if failure != nil {
		return failure
	}
	if _, failure := o.prepare(Request{RunID: "run", AgentID: "check", Attempt: 1}, argv, cmp.Or(workingDirectory, "/")); failure != nil {
		return failure
	}
	return nil
}

func (c *launcher) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.live.Add(1)
	return true
}

// start starts the process and puts its group under watch.
func (c *launcher) start(l launch) (*process, *Failure) {
	release, failure := l.options.holdAccount()
	if failure != nil {
		return nil, failure
	}
	pipes, err := openPipes()
	if err != nil {
		release()
		return nil, l.options.startFailure(l, err)
	}
	started, home, err := c.spawn(l, pipes.child())
	pipes.closeChild()
	if err != nil {
		pipes.closeOurs()
		release()
		return nil, l.options.startFailure(l, err)
	}
	p := &process{pipes: pipes, leader: started, group: identify(started.Pid, l.mark, c.options.Installation), launch: l, home: home, unhold: release, exited: make(chan struct{})}
	go func() { p.state = awaitExit(started); close(p.exited) }()
	p.unfollow = func() {}
	err = c.watchdog.add(p.group.PGID, p.cgroupPath())
	if err == nil {
		p.unfollow = l.lease.follow(func(until time.Time) { c.watchdog.until(p.group.PGID, until) })
	} else {
		p.killAll()
		<-p.exited
		pipes.closeOurs()
		var result Result
		c.reap(p, &result)
		return nil, launchFailure(err, "%v", err)
	}
	return p, nil
}

// reap reaps the leader and makes sure that nothing of the launch is left, in the group or out of it, because what an
// attempt started ends with the attempt.
func (c *launcher) reap(p *process, result *Result) *os.ProcessState {
	deadline := time.Now().Add(endLimit)
	select {
	case <-p.exited:
	default: // it hangs in the kernel; the watchdog keeps it in view until it ends
		go func() { <-p.exited; p.release(&c.watchdog); p.unhold() }()
		result.Survivors = errors.New("its first process hangs in the kernel")
		return nil
	}
	state := p.release(&c.watchdog)
	result.ExitCode = exitCode(state)
	left := errors.Join(awaitGroupEnd(p.group, deadline), endMarked(p.group, deadline), p.endRest(p.launch, deadline))
	p.unhold()
	result.Survivors = errors.Join(left, p.launch.options.sweep())
	return state
}
