package graph

import (
	"context"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// linksShown bounds the links of a run and of a task.
const linksShown = 100

// reportWorkingCopy notes where a worker's agent works, and what it left there.
func (r *Resolver) reportWorkingCopy(ctx context.Context, in model.ReportRunWorkingCopyInput) (*ent.Run, error) {
	if err := checkCopyReport(in); err != nil {
		return nil, err
	}
	a, err := r.attemptOf(ctx, in.Lease)
	if err != nil {
		return nil, err
	}
	mask, err := r.maskOf(ctx, a.run.ID)
	if err != nil {
		return nil, err
	}
	diff := domain.CutText(mask(in.Diff), domain.MaxDiff, "")
	w := domain.WorkingCopy{Path: mask(in.Path), Repository: mask(in.Repository), Branch: mask(in.Branch), HeadBefore: in.HeadBefore, HeadAfter: valueOf(in.HeadAfter), Commits: in.Commits,
		FilesChanged: in.FilesChanged, Insertions: in.Insertions, Deletions: in.Deletions, Uncommitted: in.Uncommitted, Diff: diff, DiffCut: in.DiffCut}
	if err := r.Store.RecordWorkingCopy(ctx, a.Attempt, w); err != nil {
		return nil, fenced(err)
	}
	return r.Reader.Run.Get(ctx, a.RunID)
}

// reportCopies answers which tasks and runs have ended, and tells the inbox of the working copies that are kept.
func (r *Resolver) reportCopies(ctx context.Context, in model.ReportWorkingCopiesInput) ([]*model.WorkingCopyOwner, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return nil, err
	}
	if err := checkCopiesReport(in); err != nil {
		return nil, err
	}
	for _, k := range in.Kept {
		if err := r.Store.CopyKept(ctx, in.WorkspaceID, domain.KeptCopy{Name: k.Name, Owner: k.OwnerID, Path: k.Path, Reason: k.Reason}); err != nil {
			return nil, err
		}
	}
	for _, name := range in.Removed {
		if err := r.Store.CopyRemoved(ctx, in.WorkspaceID, name); err != nil {
			return nil, err
		}
	}
	return r.copyOwners(ctx, in.WorkspaceID, in.Owners)
}

func (r *Resolver) copyOwners(ctx context.Context, workspace xid.ID, owners []xid.ID) ([]*model.WorkingCopyOwner, error) {
	out := make([]*model.WorkingCopyOwner, len(owners))
	if len(owners) == 0 {
		return out, nil
	}
	known, err := r.Store.CopyOwners(ctx, workspace, owners)
	for i, id := range owners {
		out[i] = &model.WorkingCopyOwner{ID: id, Exists: known[id].Exists, EndedAt: instant(known[id].EndedAt)}
	}
	return out, err
}

// linksOf are the newest links, oldest first; of several with an address the newest counts.
func linksOf(all []*ent.Link) []*ent.Link {
	seen, out := map[string]int{}, []*ent.Link{}
	for _, l := range all {
		if i, again := seen[l.URL]; again {
			out[i] = l
			continue
		}
		seen[l.URL] = len(out)
		out = append(out, l)
	}
	return out[max(0, len(out)-linksShown):]
}
