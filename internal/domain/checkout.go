package domain

import (
	"time"

	"rouse.dev/rouse/internal/xid"
)

// CheckoutSpec says of which repository runs get working copies, and for how long those stay.
type CheckoutSpec struct {
	Repository string        `json:"repository"` // absolute path, or address
	Ref        string        `json:"ref,omitempty"`
	Per        CheckoutPer   `json:"per"`
	Setup      []string      `json:"setup,omitempty"` // program and arguments that prepare a new one
	Keep       time.Duration `json:"keep"`            // from the end of its task or run
}

// Checkout is what working copies are made of; nil: the runs of the executor have none.
func (s *ExecutorSpec) Checkout() *CheckoutSpec {
	switch {
	case s == nil:
	case s.Command != nil:
		return s.Command.Checkout
	case s.ACP != nil:
		return s.ACP.Checkout
	case s.Pull != nil && s.Pull.Command != nil:
		return s.Pull.Command.Checkout
	case s.Pull != nil:
		return s.Pull.Checkout
	}
	return nil
}

// MaxDiff is the most bytes of a run's diff that are kept.
const MaxDiff = 128 << 10

// WorkingCopy is what an attempt found in its working copy and, once it has ended, what it left there. Texts are masked.
type WorkingCopy struct {
	Path, Repository, Branch string
	HeadBefore, HeadAfter    string // HeadAfter is "" until the attempt ended
	Commits                  int    // between the two
	FilesChanged             int    // from HeadBefore to what lies in the folder
	Insertions, Deletions    int
	Uncommitted              int // files
	Diff                     string
	DiffCut                  bool
}

// CopyOwner is the task or run that a working copy was made for, as far as the database knows it.
type CopyOwner struct {
	Exists  bool
	EndedAt time.Time // zero while it goes on
}

// KeptCopy is a working copy that is not removed because of the work in it.
type KeptCopy struct {
	Name   string // of its folder
	Owner  xid.ID
	Path   string
	Reason string // why, and what to do
}
