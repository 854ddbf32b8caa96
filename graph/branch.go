package graph

import (
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// Branches are the conditions that a filter is made of where an index serves each of them in the list's order, but none
// serves all at once: a row is in the list when one of them holds. A page is read from each of them and no further, so that
// few rows are found among a million as fast as many. Their values are written out, because PostgreSQL uses an index of
// some rows only where it sees while planning that the condition is within it.

// branch is one of them, in SQL; a question mark stands for an argument.
type branch struct {
	text string
	args []any
}

// oneOf is a branch for each value of a closed set, and what must hold beside it.
func oneOf[T ~string](column string, values []T, beside string) []branch {
	out := make([]branch, len(values))
	for i, v := range values {
		out[i].text = column + ` = '` + strings.ReplaceAll(string(v), `'`, `''`) + `'` + beside
	}
	return out
}

// branchesOfRuns are those of a filter of runs.
func branchesOfRuns(f *model.RunFilter) []branch {
	switch {
	case f == nil:
		return nil
	case f.Retrying != nil && *f.Retrying:
		return oneOf("parked_reason", retryReasons, "")
	case f.Hold != nil:
		reasons, _ := parkedBy(f.Hold) // filterRuns refuses others
		return oneOf("parked_reason", reasons, "")
	case f.ErrorCode != nil:
		return oneOf("error_code", f.ErrorCode, "")
	case f.Outcome != nil && !slices.Contains(f.Outcome, domain.OutcomeProcessed):
		return oneOf("outcome", f.Outcome, ` AND outcome IS NOT NULL AND outcome <> 'processed'`)
	case f.Status != nil:
		return oneOf("status", f.Status, "")
	case f.AgentIds != nil:
		return oneOf("agent_id", f.AgentIds, "")
	case f.Source != nil || f.WakeClass != nil:
		return branchesOfCauses(f.Source, f.WakeClass)
	}
	return branchesOfShapes(f.TerminalShape)
}

// branchesOfCauses are those of runs by source and class: the live ones, and each pair of the two among those that have ended.
// A periodic run is always one of a routine.
func branchesOfCauses(sources []domain.WakeupSource, class *domain.WakeClass) []branch {
	out := oneOf("status", []domain.RunStatus{domain.RunStatusQueued, domain.RunStatusClaimed}, "")
	if sources == nil {
		for _, source := range domain.WakeupSource("").Values() {
			sources = append(sources, domain.WakeupSource(source))
		}
	}
	for _, c := range []domain.WakeClass{domain.WakeClassEvent, domain.WakeClassPeriodic} {
		if class != nil && *class != c {
			continue
		}
		among := sources
		if c == domain.WakeClassPeriodic {
			among = slices.DeleteFunc(slices.Clone(sources), func(s domain.WakeupSource) bool { return s != domain.WakeupSourceRoutine })
		}
		out = append(out, oneOf("source", among, ` AND wake_class = '`+string(c)+`' AND finished_at IS NOT NULL`)...)
	}
	return out
}

// branchesOfShapes are those of the runs that ended in one of these ways. The usual way, and runs from before the shapes were
// recorded, need none: the list itself has them.
func branchesOfShapes(shapes []domain.TerminalShape) (out []branch) {
	const (
		failed      = `status = 'FAILED'`
		cancelled   = `status = 'CANCELLED'`
		unprocessed = `status = 'FINISHED' AND outcome IS DISTINCT FROM 'processed'`
		silent      = `silent`
	)
	seen := map[string]bool{}
	for _, shape := range shapes {
		among := map[domain.TerminalShape][]string{
			domain.TerminalShapeLaunchedFailed:    {failed, cancelled},
			domain.TerminalShapeUnlaunchedFailed:  {failed},
			domain.TerminalShapeUnlaunchedSkipped: {unprocessed, cancelled},
			domain.TerminalShapeUnclassified:      {unprocessed, cancelled},
			domain.TerminalShapeSilentSuccess:     {silent},
		}[shape]
		if among == nil {
			return nil
		}
		for _, b := range among {
			if !seen[b] {
				seen[b], out = true, append(out, branch{text: b})
			}
		}
	}
	return out
}

// branchesOfWakeups are those of a filter of a workspace's wakeup requests. One that waits or is served is found by its run,
// because an index of such requests would be written at each step of each run.
func branchesOfWakeups(workspaceID xid.ID, f *model.WakeupFilter) (out []branch) {
	switch {
	case f == nil:
		return nil
	case f.EndReason != nil:
		return oneOf("end_reason", f.EndReason, "")
	case f.Recovered != nil && *f.Recovered:
		return []branch{{text: "recovered"}}
	case f.Source != nil:
		return oneOf("source", f.Source, "")
	}
	for _, status := range f.Status {
		switch status {
		case domain.WakeupStatusQueued:
			out = append(out, branch{text: reads.UnroutedRequest}, branch{reads.RequestOfLiveRun(status), []any{workspaceID}})
		case domain.WakeupStatusClaimed:
			out = append(out, branch{reads.RequestOfLiveRun(status), []any{workspaceID}})
		case domain.WakeupStatusFinished:
			out = append(out, oneOf("status", []domain.WakeupStatus{status}, "")...)
		default:
			out = append(out, oneOf("apart", []domain.WakeupStatus{status}, "")...)
		}
	}
	return out
}

// branchesOfActivity are those of a filter of the feed.
func branchesOfActivity(f *model.ActivityFilter) []branch {
	if f == nil {
		return nil
	}
	return oneOf("code", f.Code, "")
}

// branchesOfInbox are those of a filter of the inbox.
func branchesOfInbox(f *model.InboxFilter) []branch {
	switch {
	case f == nil:
		return nil
	case f.Open == nil || *f.Open:
		return oneOf("kind", f.Kind, ` AND resolved_at IS NULL`)
	}
	return oneOf("kind", f.Kind, "")
}

// branchesOfFires are those of a filter of fires.
func branchesOfFires(f *model.RoutineRunFilter) []branch {
	switch {
	case f == nil:
		return nil
	case f.Status != nil:
		return oneOf("status", f.Status, "")
	}
	return oneOf("source", f.Source, "")
}

// anyBranch is the condition that one of the branches holds, for statements that read all rows of the list, or one.
func anyBranch(branches []branch) func(*sql.Selector) {
	return func(s *sql.Selector) {
		if len(branches) == 0 {
			return
		}
		conditions := make([]*sql.Predicate, len(branches))
		for i, b := range branches {
			conditions[i] = b.condition()
		}
		s.Where(sql.Or(conditions...))
	}
}

// condition writes the branch with its arguments in their places.
func (b branch) condition() *sql.Predicate {
	return sql.P(func(into *sql.Builder) {
		into.Wrap(func(into *sql.Builder) {
			for i, part := range strings.Split(b.text, "?") {
				if i > 0 {
					into.Arg(b.args[i-1])
				}
				into.WriteString(part)
			}
		})
	})
}

// branched limits a page to the first rows of each branch, as they are read. Its conditions come last of the page's.
func (o ordering) branched(branches []branch, reach int, backwards bool) func(*sql.Selector) {
	return func(s *sql.Selector) {
		if len(branches) < 2 {
			anyBranch(branches)(s)
			return
		}
		all := s.P()
		s.Where(sql.P(func(b *sql.Builder) {
			// An array is read once. PostgreSQL would join with rows, and now and then read them anew for each row of the page.
			b.Ident(s.C("id")).WriteString(" = ANY(ARRAY").Wrap(func(b *sql.Builder) {
				for i, one := range branches {
					if i > 0 {
						b.WriteString(" UNION ALL ")
					}
					b.Wrap(func(b *sql.Builder) { b.Join(o.rowsOf(one, s.TableName(), all, reach, backwards)) })
				}
			}).WriteString(")")
		}))
	}
}

// rowsOf is the ids of the first rows that one branch has, among those of the list.
func (o ordering) rowsOf(one branch, table string, all *sql.Predicate, reach int, backwards bool) *sql.Selector {
	from := sql.Table(table)
	rows := sql.Select(from.C("id")).From(from).Where(one.condition()).Limit(reach)
	if all != nil {
		rows.Where(all)
	}
	for _, term := range o.terms(backwards) {
		term(rows)
	}
	return rows
}
