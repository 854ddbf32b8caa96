package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/agent"
	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/xid"
)

// handoverBatch is how many agents are looked up at once.
const handoverBatch = 500

// handOver gives the folders of agents to the accounts of their workspaces: those of an earlier version, or of a backup, belong to
// others. First what an earlier server left under these accounts is ended.
func (s *Server) handOver(ctx context.Context) error {
	if err := s.agents.sweep(); err != nil {
		return err
	}
	workspaces, err := s.workspacesOfFolders(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(workspaces)) {
		if err := s.handOverWork(id, workspaces[id]); err != nil {
			return err
		}
	}
	return s.shareHome(ctx, slices.Compact(slices.Sorted(maps.Values(workspaces))))
}

// takeFolders makes root the owner of a data folder that a server under another account made, and lets agents pass it. They pass
// the folder of their work, too, and do not list it: its names are those of other workspaces' agents.
func (s *Server) takeFolders() error {
	for _, dir := range []string{s.files.dir, s.files.work()} {
		const mode = 0o711
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at the folder %s: %w", dir, err)
		}
		owner := account.OwnerOf(dir)
		if owner == 0 {
			if shown := dir == s.files.work() && info.IsDir() && info.Mode().Perm()&^mode != 0; !shown {
				continue
			}
			if err := os.Chmod(dir, info.Mode().Perm()&mode); err != nil {
				return fmt.Errorf("keep agents from listing the folder %s: %w", dir, err)
			}
			continue
		}
		if err := errors.Join(os.Lchown(dir, 0, 0), os.Chmod(dir, mode)); err != nil {
			return fmt.Errorf("take over the folder %s from uid %d: %w", dir, owner, err)
		}
		s.log.Info("a folder that another account's server made is root's now", "folder", dir, "from_uid", owner)
	}
	return nil
}

// sweep ends what is left under the accounts of a data folder's workspaces.
func (a agentAccount) sweep() error {
	if a.claims == nil {
		return nil
	}
	ids, err := a.claims.Of(a.dir)
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(ids)) {
		if err := a.claims.Sweep(uid); err != nil {
			return fmt.Errorf("end what agents of an earlier server left: %w", err)
		}
	}
	return nil
}

// workspacesOfFolders finds the workspace of each agent that has a folder.
func (s *Server) workspacesOfFolders(ctx context.Context) (map[xid.ID]xid.ID, error) {
	entries, err := os.ReadDir(s.files.work())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for agents' folders: %w", err)
	}
	var ids []xid.ID
	for _, entry := range entries {
		if id, err := xid.Parse(entry.Name()); err == nil && entry.IsDir() {
			ids = append(ids, id)
		}
	}
	of := map[xid.ID]xid.ID{}
	for some := range slices.Chunk(ids, handoverBatch) {
		var rows []*ent.Agent
		if rows, err = s.reader.Agent.Query().Where(agent.IDIn(some...)).Select(agent.FieldID, agent.FieldWorkspaceID).All(auth.WithPrincipal(ctx, auth.Local())); err != nil {
			return nil, fmt.Errorf("find the workspaces of agents' folders: %w", err)
		}
		for _, a := range rows {
			of[a.ID] = a.WorkspaceID
		}
	}
	return of, nil
}

// handOverWork gives an agent's folder to its workspace's account. A workspace for which no account is left is reported
// when one of its agents runs.
func (s *Server) handOverWork(agent, workspace xid.ID) error {
	uid, err := s.agents.claim(workspace)
	if errors.Is(err, account.ErrExhausted) {
		s.log.Error("a workspace's agents have no account to run as", "workspace_id", workspace, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	folder := filepath.Join(s.files.work(), agent.String())
	if account.OwnerOf(folder) == uid {
		return nil
	}
	done, err := account.HandOver(folder, uid, uid)
	if err != nil {
		return err
	}
	s.log.Info("an agent's folder was handed over", "agent_id", agent, "workspace_id", workspace, "uid", uid, "entries", done.Entries, "left", done.Left)
	return nil
}

// shareHome gives each workspace a copy of the home that an earlier version lent to all agents, with the logins in it,
// which each of them had. It puts the old home aside, because a workspace that is made later has no right to it.
func (s *Server) shareHome(ctx context.Context, workspaces []xid.ID) error {
	old := filepath.Join(s.files.dir, "home")
	owner := account.OwnerOf(old)
	if owner == 0 || len(workspaces) == 0 {
		return nil
	}
	for _, workspace := range workspaces {
		uid, err := s.agents.claim(workspace)
		if errors.Is(err, account.ErrExhausted) {
			continue
		}
		if err != nil {
			return err
		}
		home := filepath.Join(homes(s.files.dir), workspace.String())
		if _, err := os.Lstat(home); err == nil {
			continue
		}
		if _, err := s.agents.of(workspace); err != nil {
			return err
		}
		if err := account.CopyTree(ctx, old, owner, home, uid); err != nil {
			s.log.Warn("the agents' old home could not be copied: log their programs in again with rouse agent-shell, or copy it by hand",
				"workspace_id", workspace, "from", old, "to", home, "error", err)
		}
	}
	if err := os.Rename(old, old+".shared"); err != nil {
		return fmt.Errorf("put the agents' old home aside: %w", err)
	}
	s.log.Info("each workspace's agents have a home of their own now, with a copy of the old one", "homes", homes(s.files.dir), "old", old+".shared")
	return nil
}
