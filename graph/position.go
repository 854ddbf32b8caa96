package graph

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/run"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// position is a place in the stream of a run: the newest event and the newest log line that were sent. It is the cursor of
// events and log lines alike, so that a reader may go on from either. A list of events alone, or of lines alone, knows one half
// of it; the other is found by the instants once somebody goes on from there.
type position struct {
	run   xid.ID
	event int64 // sequence of the newest event; 0: none, unknown: as many as the line says
	line  reads.LogPosition
}

// unknown stands for the half of a position that a list did not know.
const unknown = -1

var unknownLine = reads.LogPosition{Attempt: unknown}

// UpTo says whether neither half is after the other position's.
func (p position) UpTo(other position) bool { return p.event <= other.event && p.line.UpTo(other.line) }

// eventPlace is the position of an event in a list of events.
func eventPlace(runID xid.ID, seq int64) position { return position{runID, seq, unknownLine} }

// linePlace is the position of a line in a list of lines.
func linePlace(runID xid.ID, at reads.LogPosition) position { return position{runID, unknown, at} }

// cursor writes the position; what is not known is a dash.
func (p position) cursor() ent.Cursor {
	event, line := "-", "-.-"
	if p.event != unknown {
		event = strconv.FormatInt(p.event, 10)
	}
	if p.line != unknownLine {
		line = fmt.Sprintf("%d.%d", p.line.Attempt, p.line.Seq)
	}
	return ent.Cursor{ID: p.run, Value: event + "." + line}
}

// start is the position as the cursor that a page begins after; nil at the beginning.
func (p position) start() *ent.Cursor {
	if p.event <= 0 && p.line.Attempt <= 0 {
		return nil
	}
	return new(p.cursor())
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
		if part == "-" {
			n, err = unknown, nil
		} else if n < 0 || strconv.FormatInt(n, 10) != part || i == 1 && n > 1<<31-1 {
			err = strconv.ErrSyntax
		}
		if err != nil {
			return position{}, damaged()
		}
		numbers[i] = n
	}
	p.event, p.line = numbers[0], reads.LogPosition{Attempt: int(numbers[1]), Seq: numbers[2]}
	switch {
	case p.line.Attempt == unknown && p.line.Seq == unknown:
		p.line = unknownLine
	case p.line.Attempt == unknown || p.line.Seq == unknown:
		return position{}, damaged()
	}
	if p.event == unknown && p.line.Attempt < 1 || p.line == unknownLine && p.event < 1 {
		return position{}, damaged() // a list knows the half of it that it shows
	}
	if p.event == 0 && p.line.Attempt > 0 {
		p.event = unknown // no run's log begins before its events: a list of lines wrote this before dashes were
	}
	return p, nil
}

func damaged() error {
	return badInput("the cursor is damaged; take one of this run's events or log lines as it was sent, or begin without one")
}

// found is a position with both halves.
func (r *Resolver) found(ctx context.Context, p position) (position, error) {
	var err error
	switch {
	case p.event == unknown:
		p.event, err = r.Store.EventBeside(ctx, p.run, p.line)
	case p.line == unknownLine:
		p.line, err = r.Store.LineBeside(ctx, p.run, p.event)
	}
	return p, err
}

// withEvent is the position after an event was sent.
func (p position) withEvent(e reads.RunEvent) position {
	p.event = e.Seq
	return p
}

// withLine is the position after a log line was sent.
func (p position) withLine(l reads.LogRow) position {
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
				b.WriteString("COALESCE((SELECT l." + column + " FROM run_log_pieces AS l WHERE l.run_id = ").Ident(s.C(run.FieldID)).
					WriteString(" ORDER BY l.attempt DESC, l.last_seq DESC LIMIT 1), 0)")
			})
		}
		s.Select(s.C(run.FieldID), s.C(run.FieldEventSeq)).AppendSelectExprAs(newest("attempt"), "line_attempt").AppendSelectExprAs(newest("last_seq"), "line_seq")
	}).Scan(ctx, &found)
	if err != nil {
		return nil, err
	}
	out := make(map[xid.ID]position, len(found))
	for _, row := range found {
		out[row.ID] = position{row.ID, row.EventSeq, reads.LogPosition{Attempt: row.Attempt, Seq: row.Seq}}
	}
	return out, nil
}
