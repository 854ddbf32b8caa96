package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// gauges are numbers of the database that are read when somebody asks for them.
func (s *Server) gauges() []prometheus.Collector {
	read := func(of func(store.Snapshot) float64) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			oldest, err := s.store.OldestSnapshot(ctx)
			return of(oldest), err
		}
	}
	workspaces := &workspaceGauges{of: s.store.WorkspaceGauges, list: s.store.GaugedWorkspaces, known: map[xid.ID]gauged{}}
	return []prometheus.Collector{
		metrics.Gauge{Name: "rouse_oldest_snapshot_age_seconds", Help: "Age of the session that holds the oldest snapshot of the database, as far as it is seen.",
			Read: read(func(s store.Snapshot) float64 { return s.Age.Seconds() })},
		metrics.Gauge{Name: "rouse_feed_held_seconds", Help: "For how long an open transaction has held the feed back: entries that were written since it began are not shown.",
			Read: func(ctx context.Context) (float64, error) {
				h, err := s.store.FeedHolder(ctx)
				return h.Age.Seconds(), err
			}},
		metrics.Gauge{Name: "rouse_oldest_snapshot_age_transactions", Help: "Transactions since the oldest snapshot of the database; rows that died since slow every claim.",
			Read: read(func(s store.Snapshot) float64 { return float64(s.Transactions) })},
		metrics.Readings{Kinds: workspaceKinds, Read: workspaces.read},
	}
}

// Names of the workspaces' gauges.
const (
	gaugeInfo      = "rouse_workspace_info"
	gaugeAge       = "rouse_workspace_read_age_seconds"
	gaugeVerdict   = "rouse_loop_verdict"
	gaugeClaimable = "rouse_queue_claimable"
	gaugeHeld      = "rouse_queue_held"
	gaugeOldest    = "rouse_queue_oldest_claimable_age_seconds"
	gaugeLive      = "rouse_queue_live"
	gaugeInbox     = "rouse_inbox_open"
	gaugeBudget    = "rouse_budget_used_ratio"
)

var workspaceKinds = []metrics.ReadingKind{
	{Name: gaugeInfo, Help: "1 for each workspace that is shown, with its slug.", Labels: []string{"workspace", "slug"}},
	{Name: gaugeAge, Help: "How old the numbers of the workspace are: those that a scrape has no time for are shown as they were.", Labels: []string{"workspace"}},
	{Name: gaugeVerdict, Help: "1 for the verdict on the workspace's loop, 0 for the others. All are missing when it cannot be told.", Labels: []string{"workspace", "verdict"}},
	{Name: gaugeClaimable, Help: "Runs that wait and that the next pass would take.", Labels: []string{"workspace"}},
	{Name: gaugeHeld, Help: "Runs that wait and are held, by reason. PLACE: for a place at their agent or workspace, or because the agent rests or is paused.",
		Labels: []string{"workspace", "hold"}},
	{Name: gaugeOldest, Help: "Age of the oldest run that waits and could be taken; 0: none waits.", Labels: []string{"workspace"}},
	{Name: gaugeLive, Help: "Runs that are claimed.", Labels: []string{"workspace"}},
	{Name: gaugeInbox, Help: "Inbox items that wait for a person, by kind.", Labels: []string{"workspace", "kind"}},
	{Name: gaugeBudget, Help: "What is spent of a budget in its period, 1 for all of it.", Labels: []string{"workspace", "budget", "subject_kind", "subject"}},
}

// Bounds of what a scrape reads.
const (
	gaugeFresh = 5 * time.Second // numbers so young serve the next scrape, too
	gaugeStale = 5 * time.Minute // older ones are not shown
	gaugeWork  = 2 * time.Second // how long one scrape reads
)

// workspaceGauges reads the numbers of all workspaces, those first that were read the longest ago. One scrape reads at a time.
type workspaceGauges struct {
	of   func(context.Context, xid.ID) (*reads.WorkspaceGauges, error)
	list func(context.Context) ([]xid.ID, map[xid.ID]string, error)

	mu    sync.Mutex
	known map[xid.ID]gauged
}

type gauged struct {
	*reads.WorkspaceGauges
	at time.Time
}

// read shows what it could read in time, and of other workspaces what was read before.
func (g *workspaceGauges) read(ctx context.Context) []metrics.Reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, gaugeWork)
	defer cancel()
	ids, slugs, err := g.list(ctx)
	if err != nil {
		return nil // the gauges are missing then, which alerts see
	}
	slices.SortStableFunc(ids, func(a, b xid.ID) int { return g.known[a].at.Compare(g.known[b].at) })
	fresh := make(map[xid.ID]gauged, len(ids))
	var out []metrics.Reading
	for _, id := range ids {
		one := g.known[id]
		if time.Since(one.at) > gaugeFresh && ctx.Err() == nil {
			if numbers, err := g.of(ctx, id); err == nil {
				one = gauged{numbers, time.Now()}
			}
		}
		if age := time.Since(one.at); one.WorkspaceGauges != nil && age < gaugeStale {
			fresh[id] = one
			out = append(out, one.readings(string(id), slugs[id], age)...)
		}
	}
	g.known = fresh
	return out
}

func (g gauged) readings(workspace, slug string, age time.Duration) []metrics.Reading {
	var out []metrics.Reading
	show := func(name string, value float64, labels ...string) {
		out = append(out, metrics.Reading{Name: name, Labels: append([]string{workspace}, labels...), Value: value})
	}
	show(gaugeInfo, 1, slug)
	show(gaugeAge, age.Seconds())
	for _, verdict := range domain.LoopVerdict("").Values() {
		if g.Verdict != "" {
			show(gaugeVerdict, boolean(verdict == string(g.Verdict)), verdict)
		}
	}
	show(gaugeClaimable, float64(g.Queue.Claimable))
	show(gaugeLive, float64(g.Queue.Claimed))
	oldest := time.Duration(0)
	if g.Queue.OldestClaimableAge != nil {
		oldest = *g.Queue.OldestClaimableAge
	}
	show(gaugeOldest, oldest.Seconds())
	show(gaugeHeld, float64(g.Unparked()), "PLACE")
	for _, reason := range domain.ParkedReason("").Values() {
		show(gaugeHeld, float64(g.Parked[domain.ParkedReason(reason)]), reason)
	}
	for _, kind := range domain.InboxKind("").Values() {
		show(gaugeInbox, float64(g.OpenInbox[domain.InboxKind(kind)]), kind)
	}
	for _, b := range g.Budgets {
		show(gaugeBudget, b.Spent.Percent(b.Limit)/100, b.ID, string(b.SubjectKind), b.SubjectID)
	}
	return out
}

func boolean(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
