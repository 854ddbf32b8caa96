package scheduler

import (
	"fmt"
	"os"

	"rouse.dev/rouse/internal/proc"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// ThisProcess describes this process as the owner of leases, so that another process of this host can tell whether it is
// dead. Where the system tells no boot id or start time they stay empty, and its leases end by running out alone.
func ThisProcess() (store.Owner, error) {
	host, err := os.Hostname()
	if err != nil {
		return store.Owner{}, fmt.Errorf("read the name of this host: %w", err)
	}
	return store.Owner{ID: xid.New("prc"), Host: host, BootID: proc.BootID(), PID: os.Getpid(), Started: int64(proc.Started(os.Getpid()))}, nil
}
