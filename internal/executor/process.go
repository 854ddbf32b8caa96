//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// pipes are the three streams of a command: first our ends, then the child's.
type pipes struct {
	stdin, stdout, stderr                *os.File
	childStdin, childStdout, childStderr *os.File
}

func openPipes() (*pipes, error) {
	p := &pipes{}
	var errs [3]error
	p.childStdin, p.stdin, errs[0] = os.Pipe()
	p.stdout, p.childStdout, errs[1] = os.Pipe()
	p.stderr, p.childStderr, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.closeChild()
		p.closeOurs()
		return nil, err
	}
	return p, nil
}

func (p *pipes) child() []*os.File { return []*os.File{p.childStdin, p.childStdout, p.childStderr} }

// closeChild closes the child's ends on our side; a file that was never opened is nil, whose Close says so.
func (p *pipes) closeChild() { closeFiles(p.childStdin, p.childStdout, p.childStderr) }

func (p *pipes) closeOurs() { closeFiles(p.stdin, p.stdout, p.stderr) }

func closeFiles(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes hold nothing that a failed close could lose
	}
}

// process is one started command.
type process struct {
	*pipes
	leader   *os.Process
	group    ProcessGroup
	launch   launch
	home     *cgroup          // nil: it has none
	unhold   func()           // lets go of the account
	unfollow func()           // ends the watch of the lease
	exited   chan struct{}    // closed when the leader ended, while it is still unreaped where the system allows that
	state    *os.ProcessState // of a leader that could not be left unreaped; to be read after exited
	readers  sync.WaitGroup
	writer   sync.WaitGroup
}

// ending is why a command was ended, if it did not end by itself.
type ending struct {
	forced   bool // ended from here
	timedOut bool
	stopped  bool // by the context
}

// release reaps the leader, after taking its group off the watch: the id is free for others from then on.
func (p *process) release(w *watchdog) *os.ProcessState {
	p.unfollow()
	_ = w.del(p.group.PGID) // an error means that there is no watchdog, hence nothing to unlist
	if p.state == nil {
		p.state = children.reap(p.leader)
	}
	return p.state
}

// communicate feeds the prompt and reads both streams, in the background; stdout reads the first to its end. A child that reads nothing, or closes its
// input, is its own affair.
func (p *process) communicate(prompt string, out *output, stdout func(io.Reader)) {
	p.writer.Go(func() {
		_, _ = io.WriteString(p.stdin, prompt)
		_ = p.stdin.Close()
	})
	p.readers.Go(func() { stdout(p.stdout) })
	p.readers.Go(func() { out.copyLines(domain.LogStreamStderr, p.stderr) })
}

// limits are how long an attempt may take, and how long its end.
type limits struct {
	timeout time.Duration // 0: 30 m
	grace   time.Duration // between TERM and KILL
}

func (l limits) wait() time.Duration {
	if l.timeout <= 0 {
		return defaultTimeout
	}
	return l.timeout
}

// supervise waits for the leader's end and forces it when the time is up, or cannot suffice any more (hopeless is closed; nil: it
// always may), or the context ends: TERM to the whole group, the grace, KILL.
func (p *process) supervise(ctx context.Context, l limits, hopeless <-chan struct{}) ending {
	timeout := time.NewTimer(l.wait())
	defer timeout.Stop()
	end := ending{}
	select {
	case <-p.exited:
		return end
	case <-ctx.Done():
		end = ending{forced: true, stopped: true}
	case <-hopeless:
		end = ending{forced: true, timedOut: true}
	case <-timeout.C:
		end = ending{forced: true, timedOut: true}
	}
	return p.terminate(ctx, l, end)
}

// terminate asks the group to end and returns when the leader has, or the grace is over. When the context ends during
// the grace, it may shorten the grace.
func (p *process) terminate(ctx context.Context, l limits, end ending) ending {
	_ = p.group.signal(syscall.SIGTERM) // the leader is unreaped, so the group is there
	_ = p.group.signal(syscall.SIGCONT) // a stopped process could not obey
	grace := time.NewTimer(graceOf(ctx, l))
	defer grace.Stop()
	stopped := ctx.Done()
	if end.stopped {
		stopped = nil
	}
	for {
		select {
		case <-p.exited:
			return end
		case <-grace.C:
			return end
		case <-stopped: // during the grace of a timeout: it may have to be quicker now
			end.stopped, stopped = true, nil
			grace.Reset(graceOf(ctx, l))
		}
	}
}

// graceOf is the grace, or less when the context's cause asks for it.
func graceOf(ctx context.Context, l limits) time.Duration {
	grace := max(l.grace, 0)
	var stop *Stop
	if errors.As(context.Cause(ctx), &stop) {
		grace = min(grace, max(stop.Grace, 0))
	}
	return grace
}

// end kills what is left of the group and collects its last output. Something that left the group may hold the pipes for
// ever, so each wait is bounded; closing our ends then lets the readers go.
func (p *process) end(drain time.Duration, out *output) {
	done := make(chan struct{})
	go func() { p.readers.Wait(); close(done) }()
	select {
	case <-p.exited:
		waitFor(done, drain)
	default: // the grace is over, or it must not live at all
	}
	p.killAll()
	waitFor(p.exited, endLimit)
	if !waitFor(done, drain/4) {
		out.say("output after the command's end was given up: a process that it left behind still holds the pipe")
	}
	p.closeOurs() // which also ends a write or read that still waits
	<-done
	p.writer.Wait()
}

// waitFor reports whether done was closed within d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// awaitGroupEnd waits until a killed group, whose leader has been reaped, has no member left. Members that were handed
// to this process, as happens to the first process of a container, are reaped.
func awaitGroupEnd(g ProcessGroup, deadline time.Time) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		_, _ = syscall.Wait4(-g.PGID, nil, syscall.WNOHANG, nil) // usually ECHILD: none is ours
		if errors.Is(g.signal(0), syscall.ESRCH) {
			return nil
		}
		left, err := remaining(g, true)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of group %d are still there %s after they were killed", left, g.PGID, endLimit)
		}
		time.Sleep(pause) //nolint:forbidigo // the kernel tells nobody when a process that is not our child is gone
	}
}
