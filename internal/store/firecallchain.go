package store

import (
	"context"
	"database/sql"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// causeChain is where a fire stands in a chain of wakes that cause wakes (SPEC S3.10).
type causeChain struct {
	causationID xid.ID
	hops        int
}

// readChains lets deliveries that name the run of the workspace whose agent sent them go on with its chain, in one statement for all.
// One that names another run begins a chain of its own.
func (t *tx) readChains(ctx context.Context, batch []*fireCall) error {
	var runs []xid.ID
	for _, x := range batch {
		if x.delivery != nil && x.delivery.RunID != "" {
			runs = append(runs, x.delivery.RunID)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	type found struct {
		workspaceID xid.ID
		causeChain
	}
	known := map[xid.ID]found{}
	const query = `SELECT id, workspace_id, causation_id, hops FROM runs WHERE id = ANY($1)`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (f found, err error) {
		var id xid.ID
		err = rows.Scan(&id, &f.workspaceID, &f.causationID, &f.hops)
		f.hops = domain.NextHops(f.hops)
		known[id] = f
		return f, err
	}, query, pgtx.IDs(pgtx.Distinct(runs)))
	if err != nil {
		return pgtx.Wrap("read the runs that deliveries name", err)
	}
	for _, x := range batch {
		if x.delivery == nil {
			continue
		}
		if f := known[x.delivery.RunID]; f.workspaceID == x.WorkspaceID {
			x.chain = f.causeChain
		}
	}
	return nil
}
