//go:build unix

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// copyFolders are the folders of a workspace's working copies. Agents own those that they work in, and cannot change the notes.
type copyFolders struct {
	notes   string // what rouse knows of each working copy
	trees   string // the working copies
	mirrors string // of repositories at other addresses
}

func (o Options) copyFolders(workspace xid.ID) copyFolders {
	root := filepath.Join(o.WorkRoot, "copies", workspace.String())
	return copyFolders{filepath.Join(root, "notes"), filepath.Join(root, "trees"), filepath.Join(root, "mirrors")}
}

// make makes them, and gives those of the agents to their account.
func (f copyFolders) make(o Options) error {
	for _, dir := range []string{filepath.Dir(f.notes), f.notes, f.trees, f.mirrors} {
		mode := os.FileMode(0o700)
		if dir == filepath.Dir(f.notes) {
			mode = 0o711
		}
		if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
			return err
		}
		if err := os.Mkdir(dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.Join(o.own(f.trees), o.own(f.mirrors))
}

// copyNote is what rouse knows of a working copy, in a file of its own. It is written before the folder is made, so that one whose
// making was broken off is known as such.
type copyNote struct {
	Name       string        `json:"name"`
	Owner      xid.ID        `json:"owner"` // task or run
	Repository string        `json:"repository"`
	Common     string        `json:"common"` // where its commits are: a mirror, or a person's repository
	Own        bool          `json:"own"`    // a person's
	Branch     string        `json:"branch"`
	Base       string        `json:"base"` // commit that it began at
	Keep       time.Duration `json:"keep"`
	MadeAt     time.Time     `json:"made_at"`
	Made       bool          `json:"made"`  // an agent may have worked in it
	Ready      bool          `json:"ready"` // it was set up
	Run        xid.ID        `json:"run"`   // the last one, and
	HeadBefore string        `json:"head_before"`
	Told       bool          `json:"told"` // the inbox knows that it is kept
	LookedAt   time.Time     `json:"looked_at"`

	unknown bool // its note was lost
}

func (f copyFolders) note(name string) string { return filepath.Join(f.notes, name+".json") }
func (f copyFolders) tree(name string) string { return filepath.Join(f.trees, name) }

// read reads the note of a working copy; nil: there is none.
func (f copyFolders) read(name string) (*copyNote, error) {
	text, err := os.ReadFile(f.note(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &copyNote{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.note(name), err)
	}
	return n, nil
}

// write replaces a note, whole or not at all.
func (f copyFolders) write(n *copyNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(f.notes, ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.note(n.Name))
	}
	if err != nil {
		_ = os.Remove(file.Name()) // it may not be there
	}
	return err
}

// all lists the notes, and of folders whose note was lost what their names tell.
func (f copyFolders) all() ([]*copyNote, error) {
	known := map[string]bool{}
	var notes []*copyNote
	entries, err := os.ReadDir(f.notes)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, entry := range entries {
		name, isNote := strings.CutSuffix(entry.Name(), ".json")
		if !isNote {
			continue
		}
		known[name] = true
		n, err := f.read(name)
		if err != nil {
			problems = append(problems, err)
		} else if n != nil {
			notes = append(notes, n)
		}
	}
	trees, err := os.ReadDir(f.trees)
	problems = append(problems, err)
	for _, entry := range trees {
		if n := foundCopy(entry); n != nil && !known[n.Name] {
			notes = append(notes, n)
		}
	}
	return notes, errors.Join(problems...)
}

// foundCopy is what the name of a folder tells of a working copy.
func foundCopy(entry fs.DirEntry) *copyNote {
	owner, _, ok := strings.Cut(entry.Name(), "-")
	id, err := xid.Parse(owner)
	info, gone := entry.Info()
	if !ok || err != nil || gone != nil || !entry.IsDir() {
		return nil
	}
	return &copyNote{Name: entry.Name(), Owner: id, Branch: "", MadeAt: info.ModTime(), Made: true, Ready: true, unknown: true}
}

// keyed are locks by name.
type keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits for a name until ctx ends.
func (k *keyed) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		unlock, busy := k.tryLock(name)
		if busy == nil {
			return unlock, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryLock takes a name, or returns what is closed when its holder lets go.
func (k *keyed) tryLock(name string) (unlock func(), busy <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held := k.held[name]; held != nil {
		return nil, held
	}
	if k.held == nil {
		k.held = map[string]chan struct{}{}
	}
	mine := make(chan struct{})
	k.held[name] = mine
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.held, name)
		close(mine)
	}, nil
}
