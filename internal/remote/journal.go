//go:build unix

package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// journal remembers on disk which agents run, so that the next worker of the folder ends what one that was killed left.
type journal struct {
	dir  string
	lock *os.File
}

// openJournal takes the folder for this worker alone, and ends what is left of agents of an earlier one.
func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the worker's folder: %w; choose another with --data-dir", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the worker's folder: %w; choose another with --data-dir", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another worker uses the folder %s: end it, or choose another folder with --data-dir", filepath.Dir(dir)), lock.Close())
	}
	j := &journal{dir, lock}
	if err := j.endLeftovers(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

func (j *journal) close() error { return j.lock.Close() }

func (j *journal) file(a store.Attempt) string {
	return filepath.Join(j.dir, fmt.Sprintf("%s.%d.json", a.RunID, a.Number))
}

// note remembers an agent's group.
func (j *journal) note(a store.Attempt, g store.ProcessGroup) error {
	text, err := json.Marshal(executor.ProcessGroup{PGID: g.PGID, Host: g.Host, BootID: g.BootID, StartTime: uint64(g.Started),
		Launch: executor.LaunchesOf("", a.RunID, a.Number)})
	if err == nil {
		err = os.WriteFile(j.file(a), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note the agent's process group: %w", err)
	}
	return nil
}

// forget is for an attempt that has ended. A file that stays is of no harm: it names what is not there any more.
func (j *journal) forget(a store.Attempt) { _ = os.Remove(j.file(a)) }

// endLeftovers ends what a killed worker left, and its processes that left their group too.
func (j *journal) endLeftovers() error {
	files, err := filepath.Glob(filepath.Join(j.dir, "*.json"))
	if err != nil {
		return fmt.Errorf("list agents of an earlier worker: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read what an earlier worker noted: %w", err)
		}
		var g executor.ProcessGroup
		if json.Unmarshal(text, &g) == nil && g.Launch != "" { // a note that broke off names nobody
			if _, err := executor.EndLeftover("", g); err != nil {
				return fmt.Errorf("end an agent of an earlier worker: %w", err)
			}
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("forget an agent of an earlier worker: %w", err)
		}
	}
	return nil
}
