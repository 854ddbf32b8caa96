package workcopy

import (
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// Facts are what is known of a working copy.
type Facts struct {
	InUse  bool // an attempt works in it, or may
	Made   bool // an agent may have worked in it; false when the making of it was broken off
	MadeAt time.Time
	Owner  domain.CopyOwner
	Keep   time.Duration
	Work   *Work // nil: nobody has looked yet
}

// Work is what would be lost with a working copy.
type Work struct {
	Uncommitted int    // files
	Unpushed    int    // commits
	Unreadable  string // why that is not known; "" when it is
}

// Verdict is what becomes of a working copy.
type Verdict string

// What becomes of it.
const (
	Stay   Verdict = "STAY"   // it is needed, or may be again
	Look   Verdict = "LOOK"   // it may go, if no work is in it: look
	Hold   Verdict = "HOLD"   // its time is over, and it stays for the work in it: tell a person, once
	Remove Verdict = "REMOVE" // nothing is lost with it
)

// Decide says what becomes of a working copy. One whose task or run is gone from the database has nobody who needs it; what is in it
// counts all the same.
func Decide(f Facts, now time.Time) Verdict {
	if f.InUse || f.Owner.Exists && (f.Owner.EndedAt.IsZero() || now.Before(f.Owner.EndedAt.Add(f.Keep))) {
		return Stay
	}
	if !f.Owner.Exists && now.Before(f.MadeAt.Add(f.Keep)) {
		return Stay
	}
	switch {
	case !f.Made:
		return Remove
	case f.Work == nil:
		return Look
	case f.Work.Unreadable != "" || f.Work.Uncommitted > 0 || f.Work.Unpushed > 0:
		return Hold
	}
	return Remove
}

// Reason says why a working copy is held, and what to do.
func (w Work) Reason(path, branch string) string {
	if w.Unreadable != "" {
		return fmt.Sprintf("The working copy %s is kept, because git does not tell what is in it: %s. Look at it, save what you need, and remove the folder.", path, strings.TrimRight(w.Unreadable, ". \n"))
	}
	var has, do []string
	if w.Uncommitted > 0 {
		has = append(has, plural(w.Uncommitted, "file with changes that are not committed", "files with changes that are not committed"))
		do = append(do, "commit the changes or discard them")
	}
	if w.Unpushed > 0 {
		has = append(has, plural(w.Unpushed, "commit that is not pushed", "commits that are not pushed"))
		if branch == "" {
			branch = "HEAD"
		}
		do = append(do, "push or merge "+branch)
	}
	return fmt.Sprintf("The working copy %s is kept, because it has %s. To let it go, %s; it is then removed by itself.", path, strings.Join(has, " and "), strings.Join(do, ", and "))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
