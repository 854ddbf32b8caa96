package graph

import (
	"strconv"
	"strings"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/predicate"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/xid"
)

// placed is an order by what is no field of the record, or may be empty: each row is read with its place.
type placed struct {
	ordering
	rows string // which rows the list has, as SQL; {t} stands for the table; "": all
}

// placeColumn is the name under which a row's place is read.
const placeColumn = "place"

// Instants before and behind all others, for rows that have none of their own.
const (
	beforeAll = `timestamptz '0001-01-02 00:00:00+00'`
	behindAll = `timestamptz '9999-12-30 00:00:00+00'`
)

// Orders of runs that have ended. Their expressions and conditions are those of the indexes in internal/schemadiff/beyond.sql.
var runOrders = map[model.RunOrderField]placed{
	model.RunOrderFieldFinishedAt: {ordering{kind: byTime, expr: `{t}."finished_at"`}, `{t}."finished_at" IS NOT NULL`},
	model.RunOrderFieldDuration: {ordering{kind: byNumber, expr: `((extract(epoch FROM {t}."finished_at" - {t}."claimed_at") * 1000000)::bigint)`},
		`{t}."finished_at" - {t}."claimed_at" >= interval '1 second'`},
	model.RunOrderFieldCost: {ordering{kind: byNumber, expr: `{t}."cost_usd"`}, `{t}."cost_usd" > 0`},
}

var routineOrders = map[model.RoutineOrderField]placed{
	model.RoutineOrderFieldNextFireAt: {ordering: ordering{kind: byTime, expr: `coalesce(CASE WHEN {t}."status" = 'ACTIVE' THEN (SELECT min(g.next_run_at) FROM routine_triggers g ` +
		`JOIN agents a ON a.id = {t}."assignee_id" AND a.deleted_at IS NULL WHERE g.routine_id = {t}."id" AND g.enabled AND g.deleted_at IS NULL) END, ` + behindAll + `)`}},
	model.RoutineOrderFieldLastRunAt: {ordering: ordering{kind: byTime, expr: `coalesce({t}."last_run_at", ` + beforeAll + `)`}},
}

var agentOrders = map[model.AgentOrderField]placed{
	model.AgentOrderFieldLastActiveAt: {ordering: ordering{kind: byTime, expr: `coalesce((SELECT CASE WHEN l.running > 0 THEN ` + behindAll + ` ELSE l.last_finished_at END ` +
		`FROM agent_lanes l WHERE l.agent_id = {t}."id"), ` + beforeAll + `)`}},
}

// in is the order in a direction.
func (p placed) in(d entgql.OrderDirection) placed {
	p.desc = d == entgql.OrderDirectionDesc
	return p
}

// isSet says whether rows are read with their places.
func (p placed) isSet() bool { return p.expr != "" }

// listed leaves out the rows that the order does not have.
func (p placed) listed(s *sql.Selector) {
	if p.rows != "" {
		s.Where(sql.P(func(b *sql.Builder) { b.WriteString(ordering{expr: p.rows}.key(s)) }))
	}
}

// shown reads each row's place beside it.
func (p placed) shown(s *sql.Selector) { s.AppendSelectExprAs(sql.Expr(p.key(s)), placeColumn) }

// cursor is the place of a row that was read with it.
func (p placed) cursor(id xid.ID, value func(string) (ent.Value, error)) ent.Cursor {
	v, err := value(placeColumn)
	if err != nil { // it is selected wherever rows are placed
		v = nil
	}
	switch x := v.(type) {
	case []byte:
		v = string(x)
	case int64:
		v = strconv.FormatInt(x, 10)
	case time.Time:
		v = x.UTC()
	}
	return ent.Cursor{ID: id, Value: v}
}

// orderOfRuns is how runs are listed: newest first, unless something else is asked for.
func orderOfRuns(by *model.RunOrder) (ent.RunOrder, placed) {
	if by == nil {
		return newestRuns, placed{}
	}
	if p, ok := runOrders[by.Field]; ok {
		return newestRuns, p.in(by.Direction)
	}
	return ent.RunOrder{Direction: by.Direction, Field: ent.RunOrderFieldRequestedAt}, placed{}
}

func orderOfRoutines(by *model.RoutineOrder) (ent.RoutineOrder, placed) {
	if by == nil {
		return *ent.DefaultRoutineOrder, placed{}
	}
	if p, ok := routineOrders[by.Field]; ok {
		return *ent.DefaultRoutineOrder, p.in(by.Direction)
	}
	if by.Field == model.RoutineOrderFieldName {
		return ent.RoutineOrder{Direction: by.Direction, Field: ent.RoutineOrderFieldName}, placed{}
	}
	return ent.RoutineOrder{Direction: by.Direction, Field: ent.RoutineOrderFieldCreatedAt}, placed{}
}

func orderOfAgents(by *model.AgentOrder) (ent.AgentOrder, placed) {
	if by == nil {
		return *ent.DefaultAgentOrder, placed{}
	}
	if p, ok := agentOrders[by.Field]; ok {
		return *ent.DefaultAgentOrder, p.in(by.Direction)
	}
	if by.Field == model.AgentOrderFieldName {
		return ent.AgentOrder{Direction: by.Direction, Field: ent.AgentOrderFieldName}, placed{}
	}
	return ent.AgentOrder{Direction: by.Direction, Field: ent.AgentOrderFieldCreatedAt}, placed{}
}

// where is a condition in SQL; {t} stands for the table, and a question mark for an argument.
func where(text string, args ...any) func(*sql.Selector) {
	return func(s *sql.Selector) {
		s.Where(branch{ordering{expr: text}.key(s), args}.condition())
	}
}

// whereIn holds of rows for which an expression is one of the values; none lets nothing through.
func whereIn[V any](text string, values []V) func(*sql.Selector) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return where(text+" IN (NULL"+strings.Repeat(", ?", len(values))+")", args...)
}

func runWhere(text string, args ...any) predicate.Run { return where(text, args...) }
