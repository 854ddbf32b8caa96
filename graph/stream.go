package graph

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// position is a place in the stream of a run: the newest event and the newest log line that were sent. It is the cursor of
// events and log lines alike, so that a reader may go on from either.
type position struct {
	run   xid.ID
	event int64 // sequence of the newest event; 0: none
	line  store.LogPosition
}

// cursor writes the position.
func (p position) cursor() ent.Cursor {
	return ent.Cursor{ID: p.run, Value: fmt.Sprintf("%d.%d.%d", p.event, p.line.Attempt, p.line.Seq)}
}

// start is the position as the cursor that a page begins after; nil at the beginning.
func (p position) start() *ent.Cursor {
	if p == (position{run: p.run}) {
		return nil
	}
	return new(p.cursor())
}

// cursorText is a cursor as clients see it.
func cursorText(c ent.Cursor) string {
	var b strings.Builder
	c.MarshalGQL(&b)
	return strings.Trim(b.String(), `"`)
}

// positionOf reads a cursor of the run; nil is the beginning.
func positionOf(c *ent.Cursor, runID xid.ID) (position, error) {
	p := position{run: runID}
	if c == nil {
		return p, nil
	}
	value, _ := c.Value.(string)
	parts := strings.Split(value, ".")
	if c.ID != runID || len(parts) != 3 {
		return position{}, badInput("the cursor is none of this run's events or log lines; take one of them, or begin without one")
	}
	var numbers [3]int64
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != part || i == 1 && n > 1<<31-1 {
			return position{}, badInput("the cursor is damaged; take one of this run's events or log lines as it was sent, or begin without one")
		}
		numbers[i] = n
	}
	p.event, p.line = numbers[0], store.LogPosition{Attempt: int(numbers[1]), Seq: numbers[2]}
	return p, nil
}

// withEvent is the position after an event was sent.
func (p position) withEvent(e store.RunEvent) position {
	p.event = e.Seq
	return p
}

// withLine is the position after a log line was sent.
func (p position) withLine(l store.LogRow) position {
	p.line = l.LogPosition
	return p
}

// heads reads the newest position of each run, event and line in one snapshot.
func (r *Resolver) heads(ctx context.Context, ids []xid.ID) (map[xid.ID]position, error) {
	var found []struct {
		ID       xid.ID `sql:"id"`
		EventSeq int64  `sql:"event_seq"`
		Attempt  int    `sql:"line_attempt"`
		Seq      int64  `sql:"line_seq"`
	}
	err := r.Reader.Run.Query().Where(run.IDIn(ids...)).Modify(func(s *sql.Selector) {
		newest := func(column string) sql.Querier {
			return sql.ExprFunc(func(b *sql.Builder) {
				b.WriteString("COALESCE((SELECT l." + column + " FROM run_log_lines AS l WHERE l.run_id = ").Ident(s.C(run.FieldID)).
					WriteString(" ORDER BY l.attempt DESC, l.seq DESC LIMIT 1), 0)")
			})
		}
		s.Select(s.C(run.FieldID), s.C(run.FieldEventSeq)).AppendSelectExprAs(newest("attempt"), "line_attempt").AppendSelectExprAs(newest("seq"), "line_seq")
	}).Scan(ctx, &found)
	if err != nil {
		return nil, err
	}
	out := make(map[xid.ID]position, len(found))
	for _, row := range found {
		out[row.ID] = position{row.ID, row.EventSeq, store.LogPosition{Attempt: row.Attempt, Seq: row.Seq}}
	}
	return out, nil
}

// eventOf shows an event that ends at a position.
func eventOf(e store.RunEvent, at position) (*model.RunEvent, error) {
	data, err := objectOrEmpty(e.Data)
	if err != nil {
		return nil, fmt.Errorf("read data of event %d of run %s: %w", e.Seq, at.run, err)
	}
	out := &model.RunEvent{Cursor: at.cursor(), Kind: e.Kind, Data: data, OccurredAt: e.OccurredAt}
	if e.Attempt != 0 {
		out.Attempt = &e.Attempt
	}
	return out, nil
}

func lineOf(l store.LogRow, at position) *model.RunLogLine {
	return &model.RunLogLine{Cursor: at.cursor(), Stream: l.Stream, Text: l.Text, At: l.At}
}
