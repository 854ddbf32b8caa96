package graph

import (
	"strconv"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/workcopy"
)

// keepMax is the longest that a working copy is kept after its task or run ended.
const keepMax = 365 * 24 * time.Hour

// checkoutSpec turns an input into a spec; folder is the working folder that is given beside it.
func checkoutSpec(r *inputProblems, c *model.CheckoutInput, folder string, path []string) *domain.CheckoutSpec {
	if c == nil {
		return nil
	}
	at := below(path, "checkout")
	if folder != "" {
		r.add(below(path, "workingDirectory"), domain.UserErrorCodeInvalid, "a working copy is the folder that runs work in: leave workingDirectory out, or checkout")
	}
	if _, problem := workcopy.ParseRepository(c.Repository); problem != "" || !plain(c.Repository) {
		r.add(below(at, "repository"), domain.UserErrorCodeInvalid, "%s", problem)
	}
	if problem := workcopy.CheckRef(valueOf(c.Ref)); problem != "" || !plain(valueOf(c.Ref)) {
		r.add(below(at, "ref"), domain.UserErrorCodeInvalid, "%s", problem)
	}
	if len(c.Setup) > 0 {
		checkArguments(r, c.Setup, below(at, "setup"))
	}
	r.duration(below(at, "keep"), c.Keep, 0, keepMax)
	return &domain.CheckoutSpec{Repository: c.Repository, Ref: valueOf(c.Ref), Per: c.Per, Setup: c.Setup, Keep: c.Keep}
}

// checkoutShown shows a spec; nil for a nil spec.
func checkoutShown(c *domain.CheckoutSpec) *model.Checkout {
	if c == nil {
		return nil
	}
	out := &model.Checkout{Repository: c.Repository, Per: c.Per, Setup: append([]string{}, c.Setup...), Keep: c.Keep}
	if c.Ref != "" {
		out.Ref = &c.Ref
	}
	return out
}

// Bounds of what a worker reports of working copies, in bytes.
const (
	copiesMost  = 100
	copyPathMax = 4096
	copyNameMax = 150
	branchMax   = 300
)

// checkCopyReport holds what a worker says of a run's working copy to its bounds.
func checkCopyReport(in model.ReportRunWorkingCopyInput) error {
	p := &inputProblems{}
	for name, text := range map[string]string{"path": in.Path, "repository": in.Repository, "branch": in.Branch, "diff": in.Diff} {
		most := map[string]int{"path": copyPathMax, "repository": copyPathMax, "branch": branchMax, "diff": domain.MaxDiff}[name]
		if len(text) > most || !plain(text) {
			p.add([]string{name}, domain.UserErrorCodeInvalid, "must be UTF-8 text without NUL, at most %d bytes", most)
		}
	}
	for name, commit := range map[string]string{"headBefore": in.HeadBefore, "headAfter": valueOf(in.HeadAfter)} {
		if !isCommit(commit) && (name == "headBefore" || in.HeadAfter != nil) {
			p.add([]string{name}, domain.UserErrorCodeInvalid, "must be the hash of a commit: 40 or 64 hexadecimal digits")
		}
	}
	for name, n := range map[string]int{"commits": in.Commits, "filesChanged": in.FilesChanged, "insertions": in.Insertions, "deletions": in.Deletions, "uncommitted": in.Uncommitted} {
		if n < 0 {
			p.add([]string{name}, domain.UserErrorCodeOutOfRange, "must not be negative")
		}
	}
	return domain.AsUserError(p.list)
}

func isCommit(text string) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == 40 || len(text) == 64
}

// checkCopiesReport holds what a worker says of its machine's working copies to its bounds.
func checkCopiesReport(in model.ReportWorkingCopiesInput) error {
	p := &inputProblems{}
	for name, n := range map[string]int{"owners": len(in.Owners), "kept": len(in.Kept), "removed": len(in.Removed)} {
		if n > copiesMost {
			p.add([]string{name}, domain.UserErrorCodeTooLong, "must be at most %d; send the rest with the next call", copiesMost)
		}
	}
	for i, k := range in.Kept {
		at := []string{"kept", strconv.Itoa(i)}
		checkCopyName(p, k.Name, below(at, "name"))
		if len(k.Path) > copyPathMax || len(k.Reason) > copyPathMax || k.Reason == "" || !plain(k.Path) || !plain(k.Reason) {
			p.add(at, domain.UserErrorCodeInvalid, "path and reason must be text of at most %d bytes, and reason must not be empty", copyPathMax)
		}
	}
	for i, name := range in.Removed {
		checkCopyName(p, name, []string{"removed", strconv.Itoa(i)})
	}
	return domain.AsUserError(p.list)
}

func checkCopyName(p *inputProblems, name string, path []string) {
	if name == "" || len(name) > copyNameMax || !plain(name) {
		p.add(path, domain.UserErrorCodeInvalid, "must be 1 to %d bytes of text", copyNameMax)
	}
}
