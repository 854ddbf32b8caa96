package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"unicode/utf8"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Idempotency makes a repeated mutation return its first result. Key is 1..255 characters, remembered for 24 hours
// within (workspace, mutation); the zero value means "not idempotent". InputDigest is a digest of the whole input.
type Idempotency struct {
	Key         string
	InputDigest string
}

// Made is the answer of a creating method: the record's id, whether an earlier call with the same key made it, and the
// fields (in the API's spelling) whose value was clamped.
type Made struct {
	ID       xid.ID
	Replayed bool
	Clamped  []string
	Routed   bool // what it woke has its run already
}

// instanceOwner is the owner of mutation keys above workspaces.
const instanceOwner = xid.ID("instance")

// keyOwner tells an agent's keys by its task: what it makes is forced to that task, so the same key means something else on
// another one. All attempts of the task's runs share their keys.
func keyOwner(ctx context.Context, owner xid.ID) xid.ID {
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun {
		return owner + "/" + caller.AgentID + "/" + caller.TaskID
	}
	return owner
}

// stored is the key as it is kept: an agent may put a secret into it, so that only its digest is (SPEC S7.6).
func (k Idempotency) stored(ctx context.Context) string {
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(k.Key)))
	}
	return k.Key
}

// keyClaim is a key to take for a mutation of an owner.
type keyClaim struct {
	ctx   context.Context // of its caller
	owner xid.ID
	Idempotency
	result xid.ID // of the call, as far as it is known already
}

// check refuses a key that is too long.
func (k Idempotency) check() error {
	if utf8.RuneCountInString(k.Key) > 255 {
		return domain.RefuseField([]string{"idempotencyKey"}, domain.UserErrorCodeTooLong, "an idempotency key has at most 255 characters")
	}
	return nil
}

// claimKey takes a mutation's key, or finds who took it. earlier is the first call's result, empty when this call is the
// first. Two calls at once: the second waits here for the first to commit.
func (t *tx) claimKey(ctx context.Context, owner xid.ID, mutation string, k Idempotency) (earlier xid.ID, err error) {
	if k.Key == "" {
		return "", nil
	}
	if err := k.check(); err != nil {
		return "", err
	}
	taken, err := t.claimKeys(ctx, mutation, []keyClaim{{ctx: ctx, owner: owner, Idempotency: k}})
	if err != nil || taken[0] {
		return "", err
	}
	return t.earlierResult(ctx, keyOwner(ctx, owner), mutation, k)
}

// claimKeys takes keys, each of which is there once, in the order of the list, and says which it got. A key that is older than
// calls are remembered is taken as if nobody had it.
func (t *tx) claimKeys(ctx context.Context, mutation string, keys []keyClaim) (taken []bool, err error) {
	const query = `
-- $1 ids of the rows, $2 owners, $3 mutation, $4 keys, $5 digests of the inputs, $6 results, $7 how long keys live, in seconds
INSERT INTO mutation_keys AS k (id, owner, mutation, key, input_digest, result_id)
SELECT id, owner, $3, key, digest, NULLIF(result, '')
FROM unnest($1::text[], $2::text[], $4::text[], $5::text[], $6::text[]) AS n (id, owner, key, digest, result)
ON CONFLICT (owner, mutation, key) DO UPDATE
SET id = excluded.id, input_digest = excluded.input_digest, result_id = excluded.result_id, result = NULL,
  created_at = clock_timestamp()
WHERE k.created_at < clock_timestamp() - make_interval(secs => $7)
RETURNING id`
	ids := newIDs("mky", len(keys))
	owners, results := make([]xid.ID, len(keys)), make([]xid.ID, len(keys))
	stored, digests := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		owners[i], results[i], stored[i], digests[i] = keyOwner(k.ctx, k.owner), k.result, k.stored(k.ctx), k.InputDigest
	}
	mine, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, pgtx.IDs(ids), pgtx.IDs(owners), mutation, pgtx.TextArray(stored), pgtx.TextArray(digests),
		pgtx.IDs(results), domain.MutationKeyLives.Seconds())
	if err != nil {
		return nil, fmt.Errorf("take mutation keys: %w", err)
	}
	taken = make([]bool, len(keys))
	for i, id := range ids {
		taken[i] = slices.Contains(mine, id)
	}
	return taken, nil
}

func (t *tx) earlierResult(ctx context.Context, owner xid.ID, mutation string, k Idempotency) (xid.ID, error) {
	var digest string
	var result xid.ID
	const find = `SELECT input_digest, result_id FROM mutation_keys WHERE owner = $1 AND mutation = $2 AND key = $3`
	if err := pgtx.QueryRow(ctx, t, []any{&digest, &result}, find, owner, mutation, k.stored(ctx)); err != nil {
		return "", fmt.Errorf("read the mutation key: %w", err)
	}
	if digest != k.InputDigest {
		return "", domain.RefuseField([]string{"idempotencyKey"}, domain.UserErrorCodeIdempotencyKeyReused,
			"this idempotency key was used with another input; send the first input again, or a new key")
	}
	return result, nil
}

// keepResult remembers the record that the keyed mutation made.
func (t *tx) keepResult(ctx context.Context, owner xid.ID, mutation string, k Idempotency, result xid.ID) error {
	if k.Key == "" {
		return nil
	}
	owner = keyOwner(ctx, owner)
	const keep = `UPDATE mutation_keys SET result_id = $4 WHERE owner = $1 AND mutation = $2 AND key = $3`
	if err := pgtx.ExecOne(ctx, t, keep, owner, mutation, k.stored(ctx), result); err != nil {
		return fmt.Errorf("keep the mutation's result: %w", err)
	}
	return nil
}

// forgetKey gives back a key that this transaction took, for a call that was refused.
func (t *tx) forgetKey(ctx context.Context, owner xid.ID, mutation string, k Idempotency) error {
	if k.Key == "" {
		return nil
	}
	const forget = `DELETE FROM mutation_keys WHERE owner = $1 AND mutation = $2 AND key = $3`
	_, err := pgtx.Exec(ctx, t, forget, keyOwner(ctx, owner), mutation, k.stored(ctx))
	return pgtx.Wrap("give back the mutation key", err)
}

// idempotent runs make unless the key was used before, and remembers what it made; all in the transaction t.
func (t *tx) idempotent(ctx context.Context, owner xid.ID, mutation string, k Idempotency, make func() (Made, error)) (Made, error) {
	earlier, err := t.claimKey(ctx, owner, mutation, k)
	if err != nil {
		return Made{}, err
	}
	if earlier != "" {
		return Made{ID: earlier, Replayed: true}, nil
	}
	made, err := make()
	if err != nil {
		return Made{}, err
	}
	return made, t.keepResult(ctx, owner, mutation, k, made.ID)
}
