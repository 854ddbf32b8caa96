//go:build unix

package remote

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// copiesBeat is how often a worker looks at the working copies of its machine.
const copiesBeat = time.Minute

// copiesAtOnce is how many working copies one call asks about.
const copiesAtOnce = 100

// maxDiffSent bounds a diff, encoded.
const maxDiffSent = 160 << 10

// CopySweeper removes the working copies of a machine that nobody needs any more.
type CopySweeper interface {
	SweepCopies(ctx context.Context, keeper executor.CopyKeeper, now time.Time) error
}

// sweepCopies looks at once and then at each beat, until ctx ends.
func (w *Worker) sweepCopies(ctx context.Context) {
	if w.copies == nil {
		return
	}
	beat := time.NewTicker(copiesBeat)
	defer beat.Stop()
	for {
		if err := w.copies.SweepCopies(ctx, w.store, time.Now()); err != nil && ctx.Err() == nil {
			w.log.Warn("working copies could not all be looked at; the next look is in a minute", "error", err)
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
	}
}

// RecordWorkingCopy tells the server where the agent works, and what it left there.
func (s *Store) RecordWorkingCopy(ctx context.Context, a store.Attempt, w domain.WorkingCopy) error {
	diff, cut := fittingDiff(w.Diff)
	more := map[string]any{"path": w.Path, "repository": w.Repository, "branch": w.Branch, "headBefore": w.HeadBefore, "commits": w.Commits, "filesChanged": w.FilesChanged,
		"insertions": w.Insertions, "deletions": w.Deletions, "uncommitted": w.Uncommitted, "diff": diff, "diffCut": w.DiffCut || cut}
	if w.HeadAfter != "" {
		more["headAfter"] = w.HeadAfter
	}
	return s.report(ctx, a, "reportRunWorkingCopy", more)
}

// fittingDiff is as much of a diff as fits into a request.
func fittingDiff(diff string) (fits string, cut bool) {
	for fits = diff; ; fits, cut = domain.CutText(fits, len(fits)*3/4, ""), true {
		if encoded, err := json.Marshal(fits); err != nil || len(encoded) <= maxDiffSent {
			return fits, cut
		}
	}
}

// copiesReport is one call of reportWorkingCopies.
func (s *Store) copiesReport(ctx context.Context, workspace xid.ID, more map[string]any) (known map[xid.ID]domain.CopyOwner, err error) {
	more["workspaceId"] = workspace
	var out struct {
		Answer struct {
			Owners []struct {
				ID      xid.ID
				Exists  bool
				EndedAt *time.Time
			}
			UserErrors userErrors
		}
	}
	const query = `mutation($input: ReportWorkingCopiesInput!) { answer: reportWorkingCopies(input: $input) { owners { id exists endedAt } userErrors { code message } } }`
	if err := s.client.do(ctx, callLimit, query, map[string]any{"input": more}, &out); err != nil {
		return nil, err
	}
	known = map[xid.ID]domain.CopyOwner{}
	for _, o := range out.Answer.Owners {
		owner := domain.CopyOwner{Exists: o.Exists}
		if o.EndedAt != nil {
			owner.EndedAt = *o.EndedAt
		}
		known[o.ID] = owner
	}
	return known, out.Answer.UserErrors.err()
}

// CopyOwners asks the server which tasks and runs have ended. Those of other workspaces, of which an earlier worker of the folder had
// working copies, are taken to go on: the server would not know them.
func (s *Store) CopyOwners(ctx context.Context, workspace xid.ID, owners []xid.ID) (map[xid.ID]domain.CopyOwner, error) {
	all := map[xid.ID]domain.CopyOwner{}
	if workspace != s.workspace {
		for _, id := range owners {
			all[id] = domain.CopyOwner{Exists: true}
		}
		return all, nil
	}
	for some := range slices.Chunk(owners, copiesAtOnce) {
		known, err := s.copiesReport(ctx, workspace, map[string]any{"owners": some})
		if err != nil {
			return nil, err
		}
		for id, owner := range known {
			all[id] = owner
		}
	}
	return all, nil
}

// CopyKept lets the server's inbox tell of a working copy.
func (s *Store) CopyKept(ctx context.Context, workspace xid.ID, kept domain.KeptCopy) error {
	one := map[string]any{"name": kept.Name, "ownerId": kept.Owner, "path": kept.Path, "reason": kept.Reason}
	_, err := s.copiesReport(ctx, workspace, map[string]any{"kept": []any{one}})
	return err
}

// CopyRemoved lets the server's inbox forget it.
func (s *Store) CopyRemoved(ctx context.Context, workspace xid.ID, name string) error {
	_, err := s.copiesReport(ctx, workspace, map[string]any{"removed": []string{name}})
	return err
}
