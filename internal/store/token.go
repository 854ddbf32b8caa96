package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// NewToken is a bearer token to store: its digest, never itself. WorkspaceID "" makes an instance token.
type NewToken struct {
	WorkspaceID    xid.ID
	Name           string
	Prefix, Digest string
	Scopes         []domain.TokenScope
	ExpiresAt      *time.Time
	Idempotency
}

// Token is a live bearer token.
type Token struct {
	ID          xid.ID
	WorkspaceID xid.ID // "": instance
	Name        string
	Scopes      []domain.TokenScope
	ExpiresAt   *time.Time
}

// CreateToken stores a token. A digest that exists already is left as it is and its id returned, so that a bootstrap
// token may be given at every start.
func (s *Records) CreateToken(ctx context.Context, in NewToken) (xid.ID, error) {
	made, err := s.CreateTokenOnce(ctx, in)
	return made.ID, err
}

// CreateTokenOnce is CreateToken for callers with a key: a call that is made again finds the token of the first one, whose value
// nobody knows any more but whoever heard the first answer. What it brought in stands for nothing.
func (s *Records) CreateTokenOnce(ctx context.Context, in NewToken) (made Made, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, cmp.Or(in.WorkspaceID, instanceOwner), "createApiToken", in.Idempotency, func() (Made, error) {
			id, err := t.createToken(ctx, in)
			return Made{ID: id}, err
		})
		return err
	})
	return made, pgtx.Wrap("create token", err)
}

func (t *tx) createToken(ctx context.Context, in NewToken) (xid.ID, error) {
	var problems []domain.FieldError
	in.Name, problems = domain.CheckName(in.Name, nil)
	if len(in.Scopes) == 0 {
		problems = append(problems, domain.FieldError{Field: []string{"scopes"}, Code: domain.UserErrorCodeRequired, Message: "a token needs at least one scope"})
	}
	if err := domain.AsUserError(problems); err != nil {
		return "", err
	}
	scopes, err := json.Marshal(in.Scopes)
	if err != nil {
		return "", err
	}
	const query = `
INSERT INTO api_tokens (id, workspace_id, name, prefix, digest, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING id, id = $1`
	var id xid.ID
	var isNew bool
	if err := pgtx.QueryRow(ctx, t, []any{&id, &isNew}, query, xid.New("tok"), in.WorkspaceID, in.Name, in.Prefix, in.Digest, scopes, in.ExpiresAt); err != nil || !isNew {
		return id, err
	}
	told := toldToken{id, in.WorkspaceID, in.Name, in.Prefix, scopes}
	return id, t.noteToken(ctx, told, domain.ActivityCodeTokenCreated, "A token was made: "+in.Name+".", withExpiry(told.data(), in.ExpiresAt))
}

// toldToken is what the feed and the log show of a token: never the secret, nor its digest.
type toldToken struct {
	id, workspaceID xid.ID
	name, prefix    string
	scopes          json.RawMessage
}

func (k toldToken) data() map[string]any {
	return map[string]any{"tokenId": k.id, "name": k.name, "prefix": k.prefix, "scopes": k.scopes}
}

func withExpiry(data map[string]any, at *time.Time) map[string]any {
	if at != nil {
		data["expiresAt"] = *at
	}
	return data
}

// noteToken notes that a token was made or revoked, and by whom, in its workspace's feed and in the log. A token of the
// whole instance is in no feed, since it belongs to no workspace.
func (t *tx) noteToken(ctx context.Context, k toldToken, code domain.ActivityCode, summary string, data map[string]any) error {
	by := callerOr(ctx, "tokens")
	t.onCommit(func(s *base) {
		s.log.Info(strings.ToLower(string(code)), "token_id", k.id, "workspace_id", k.workspaceID, "name", k.name, "scopes", strings.ToLower(string(k.scopes)),
			"actor_kind", strings.ToLower(string(by.kind)), "actor", by.name)
	})
	if k.workspaceID == "" {
		return nil
	}
	return t.note(ctx, entry{workspaceID: k.workspaceID, code: code, by: by, summary: summary, subjectID: k.id, data: data})
}

// TokenByDigest finds a token that is neither revoked nor expired; nil when the digest has no such token.
func (s *Records) TokenByDigest(ctx context.Context, digest string) (*Token, error) {
	found, err := s.TokensByDigest(ctx, []string{digest})
	return found[digest], err
}

// TokensByDigest finds many tokens at once; those that there are not are left out.
func (s *Records) TokensByDigest(ctx context.Context, digests []string) (map[string]*Token, error) {
	const query = `
SELECT digest, id, workspace_id, name, scopes, expires_at FROM api_tokens
WHERE digest = ANY($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())`
	found := map[string]*Token{}
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var digest string
		var scopes []byte
		var t Token
		if err := rows.Scan(&digest, &t.ID, &t.WorkspaceID, &t.Name, &scopes, &t.ExpiresAt); err != nil {
			return struct{}{}, err
		}
		found[digest] = &t
		return struct{}{}, pgtx.Wrap("read the token's scopes", json.Unmarshal(scopes, &t.Scopes))
	}, query, pq.Array(digests))
	return found, pgtx.Wrap("find tokens", err)
}

// lastUsedStep is how exact last_used_at is: a busy token rewrites its row once a minute, not on every request.
const lastUsedStep = "1 minute"

// TokenUsed notes that somebody came with a token. It does not wait for the token's row. When it fails, that is logged,
// and the caller is let in all the same.
func (s *Records) TokenUsed(ctx context.Context, id xid.ID) {
	const touch = `
UPDATE api_tokens SET last_used_at = clock_timestamp() WHERE id = (
  SELECT id
  FROM api_tokens
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '` + lastUsedStep + `')
  FOR NO KEY UPDATE SKIP LOCKED)`
	if _, err := pgtx.Exec(ctx, s.db, touch, id); err != nil && ctx.Err() == nil {
		s.limitedLog.Warn(s.log, "the use of a token could not be noted: its lastUsedAt is too old", fmt.Errorf("token %s: %w", id, err))
	}
}

// RunToken is what a run token stands for while its attempt is live (SPEC S7.4).
type RunToken struct {
	WorkspaceID, AgentID, RunID, TaskID xid.ID
	Attempt                             int
	Ended                               bool // the attempt is not live any more
}

// RunTokenByDigest finds the attempt behind a run token; nil when the digest is not one of a run token.
func (s *Records) RunTokenByDigest(ctx context.Context, digest string) (*RunToken, error) {
	found, err := s.RunTokensByDigest(ctx, []string{digest})
	return found[digest], err
}

// RunTokensByDigest finds the attempts behind many run tokens at once.
func (s *Records) RunTokensByDigest(ctx context.Context, digests []string) (map[string]*RunToken, error) {
	const query = `
SELECT a.token_digest, r.workspace_id, r.agent_id, r.id, r.task_id, a.number,
  NOT (a.finished_at IS NULL AND r.status = 'CLAIMED' AND r.attempt = a.number)
FROM run_attempts a JOIN runs r ON r.id = a.run_id WHERE a.token_digest = ANY($1)`
	found := map[string]*RunToken{}
	_, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (struct{}, error) {
		var digest string
		var t RunToken
		if err := rows.Scan(&digest, &t.WorkspaceID, &t.AgentID, &t.RunID, &t.TaskID, &t.Attempt, &t.Ended); err != nil {
			return struct{}{}, err
		}
		found[digest] = &t
		return struct{}{}, nil
	}, query, pq.Array(digests))
	return found, pgtx.Wrap("find run tokens", err)
}

// RevokeToken ends a token now. workspaceID "" may revoke any token, else only one of that workspace.
func (s *Records) RevokeToken(ctx context.Context, workspaceID, id xid.ID) error {
	const query = `
WITH asked AS (
  SELECT id, revoked_at
  FROM api_tokens
  WHERE id = $1 AND ($2::text IS NULL OR workspace_id = $2)
  FOR NO KEY UPDATE)
UPDATE api_tokens k SET revoked_at = coalesce(k.revoked_at, clock_timestamp()) FROM asked WHERE k.id = asked.id
RETURNING k.id, k.workspace_id, k.name, k.prefix, k.scopes, asked.revoked_at IS NULL`
	err := s.inTx(ctx, func(t *tx) error {
		var k toldToken
		var now bool
		if err := pgtx.QueryRow(ctx, t, []any{&k.id, &k.workspaceID, &k.name, &k.prefix, (*[]byte)(&k.scopes), &now}, query, id, workspaceID); err != nil {
			return pgtx.NotFound(err, []string{"apiTokenId"}, "token", id)
		}
		if !now {
			return nil
		}
		return t.noteRevoked(ctx, k)
	})
	return pgtx.Wrap("revoke token", err)
}

func (t *tx) noteRevoked(ctx context.Context, k toldToken) error {
	return t.noteToken(ctx, k, domain.ActivityCodeTokenRevoked, "A token was revoked: "+k.name+".", k.data())
}

// RevokeTokensBefore ends the tokens that a new token of a data folder replaces: those of the instance with its name,
// and the one with the digest, if there is one.
func (s *Records) RevokeTokensBefore(ctx context.Context, id xid.ID, name, digest string) error {
	const query = `
UPDATE api_tokens SET revoked_at = clock_timestamp()
WHERE revoked_at IS NULL AND id <> $1 AND (digest = $3 OR workspace_id IS NULL AND name = $2)
RETURNING id, workspace_id, name, prefix, scopes`
	err := s.inTx(ctx, func(t *tx) error {
		revoked, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (k toldToken, err error) {
			return k, rows.Scan(&k.id, &k.workspaceID, &k.name, &k.prefix, (*[]byte)(&k.scopes))
		}, query, id, name, digest)
		for _, k := range revoked {
			err = errors.Join(err, t.noteRevoked(ctx, k))
		}
		return err
	})
	return pgtx.Wrap("revoke the token before", err)
}
