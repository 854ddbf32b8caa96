package domain

import "fmt"

// WorkerFacts are what is known of the workers of a queue. Waits nil: it is not known here whether one waits for a run.
type WorkerFacts struct {
	WorkspaceID, Queue string
	AtWork             int // runs that workers of the queue hold now
	Waits              *bool
}

// CheckWorkers says whether a run of the queue would be taken, as far as is known.
func CheckWorkers(f WorkerFacts) Check {
	c := Check{Name: "workers", OK: true}
	switch {
	case f.Waits != nil && *f.Waits:
		c.Detail = fmt.Sprintf("a worker waits for runs of the queue %q; whether its agent works is seen in its log", f.Queue)
	case f.AtWork > 0:
		c.Detail = fmt.Sprintf("workers of the queue %q are at work on %d runs; none waits for another one", f.Queue, f.AtWork)
	case f.Waits == nil:
		c.Detail = fmt.Sprintf("no worker of the queue %q is at work; whether one waits, the server knows that it asks", f.Queue)
		c.Hint = "ask testExecutor of that server, or look whether `rouse worker` runs"
	default:
		c.OK = false
		c.Detail = fmt.Sprintf("no worker of the queue %q is connected to this server: its runs wait", f.Queue)
		c.Hint = fmt.Sprintf("start one where the agent is to run: ROUSE_TOKEN=… rouse worker --server URL --workspace %s --queue %s -- COMMAND; the token is made with "+
			"`rouse token create --scope EXECUTE --workspace %s`", f.WorkspaceID, f.Queue, f.WorkspaceID)
	}
	return c
}
