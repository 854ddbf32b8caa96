package migrations_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/migrations"
)

// lastRelease is the newest migration of the last release, whose databases must be led to today's schema with every row.
const lastRelease = 20261130110000

// TestADatabaseOfTheLastReleaseKeepsEveryRow fills the tables that each run writes with every value that they can hold.
func TestADatabaseOfTheLastReleaseKeepsEveryRow(t *testing.T) {
	db, _ := pgtest.Empty(t)
	old := releasedFiles(t)
	if err := postgres.Migrate(t.Context(), db, os.DirFS(old), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	fillReleased(t, db)
	before := rowsOf(t, db)
	if err := postgres.Migrate(t.Context(), db, migrations.FS, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	compare(t, "after the migration", before, rowsOf(t, db))
	all, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.DownTo(t.Context(), lastRelease); err != nil {
		t.Fatal(err)
	}
	compare(t, "after the way back", before, rowsOf(t, db))
}

// releasedFiles is a folder of the migrations that the last release has.
func releasedFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	names, err := filepath.Glob("*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if version, _, _ := strings.Cut(name, "_"); version > fmt.Sprint(lastRelease) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fillReleased writes rows into a database of the last release. Row i holds the i-th value of each closed set.
func fillReleased(t *testing.T, db *sql.DB) {
	t.Helper()
	pairs := []string{}
	for name, values := range map[string][]string{
		"source": domain.WakeupSource("").Values(), "class": domain.WakeClass("").Values(), "parked": without(domain.ParkedReason("").Values(), domain.ParkedReasonLoopBreaker),
		"reason": without(domain.EndReason("").Values(), domain.EndReasonWorkspaceHeld), "error": without(domain.RunErrorCode("").Values(), domain.RunErrorCodeAuth, domain.RunErrorCodeBilling), "retry": domain.RetrySource("").Values(),
		"basis": domain.WakeBasis("").Values(), "wakeup": domain.WakeupStatus("").Values(), "attempt": domain.RunAttemptStatus("").Values(),
		"event": without(domain.RunEventKind("").Values(), domain.RunEventKindActed), "stream": domain.LogStream("").Values(), "agent": domain.AgentStatus("").Values(),
		"pause": domain.AgentPauseReason("").Values(), "code": without(domain.ActivityCode("").Values(), domain.ActivityCodeNotificationChannelChanged, domain.ActivityCodeNotificationChannelTested, domain.ActivityCodeWorkspaceHeld, domain.ActivityCodeWorkspaceReleased, domain.ActivityCodeWorkspaceChanged), "author": domain.AuthorKind("").Values(),
		"hold": domain.BudgetHoldStatus("").Values(), "fire": domain.RoutineRunStatus("").Values(), "by": domain.RoutineRunSource("").Values(),
	} {
		pairs = append(pairs, "{"+name+"}", fmt.Sprintf("(ARRAY['%s'])[1 + i %% %d]", strings.Join(values, "', '"), len(values)))
	}
	text := strings.NewReplacer(pairs...).Replace(`
INSERT INTO workspaces (id, name, slug, default_time_zone, recovery_lookback_hours, coalescing_window_ms) VALUES ('wsp_1', 'One', 'one', 'UTC', 24, 0);
INSERT INTO agents (id, workspace_id, name, role, skip_idle_wakeups) SELECT 'agt_' || i, 'wsp_1', 'agent ' || i, 'WORKER', false FROM generate_series(0, 59) i;
INSERT INTO agent_lanes (agent_id, workspace_id, status, pause_reason) SELECT 'agt_' || i, 'wsp_1', {agent}, {pause} FROM generate_series(0, 59) i;
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, parked_reason)
SELECT 'run_' || i, 'wsp_1', 'agt_' || i, 'cau', 'scope', {source}, {class}, 'QUEUED', CASE WHEN i % 2 = 0 THEN {parked} END FROM generate_series(0, 59) i;
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, claimed_at)
SELECT 'run_claimed_' || i, 'wsp_1', 'agt_' || i, 'cau', 'scope', {source}, {class}, 'CLAIMED', now() FROM generate_series(0, 59) i;
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, end_reason, error_code, retry_source, outcome, finished_at)
SELECT 'run_ended_' || i, 'wsp_1', 'agt_' || i, 'cau', 'scope', {source}, {class}, (ARRAY['FINISHED', 'FAILED', 'CANCELLED'])[1 + i % 3], {reason}, {error}, {retry}, 'processed', now() FROM generate_series(0, 59) i;
INSERT INTO run_attempts (id, workspace_id, run_id, number, status, owner, error_code, started_at)
SELECT 'att_' || i, 'wsp_1', 'run_' || i, 1, {attempt}, 'prc_1', {error}, now() FROM generate_series(0, 59) i;
INSERT INTO run_events (workspace_id, run_id, seq, kind, data) SELECT 'wsp_1', 'run_' || i, 1, {event}, '{"n": 1}' FROM generate_series(0, 59) i;
INSERT INTO run_contents (id, workspace_id, run_id, assembled_prompt, summary_injected, context_snapshot) SELECT 'rct_' || i, 'wsp_1', 'run_' || i, 'prompt', '', '{}' FROM generate_series(0, 59) i;
INSERT INTO run_log_lines (workspace_id, run_id, attempt, seq, stream, text) SELECT 'wsp_1', 'run_' || i, 1, 1, {stream}, 'line' FROM generate_series(0, 59) i;
INSERT INTO run_log_lines (workspace_id, run_id, attempt, seq, stream, text) SELECT 'wsp_1', 'run_1', 2, i, {stream}, 'line ' || i FROM generate_series(1, 700) i WHERE i % 300 > 0;
INSERT INTO routines (id, workspace_id, name, assignee_id, variables) VALUES ('rtn_1', 'wsp_1', 'Routine', 'agt_1', '[]');
INSERT INTO routine_runs (id, workspace_id, routine_id, causation_id, source, status, skip_reason, variables, dispatch_fingerprint, started_at)
SELECT 'rrn_' || i, 'wsp_1', 'rtn_1', 'cau', {by}, {fire}, CASE WHEN i % 2 = 0 THEN {reason} END, '{}', 'x', now() FROM generate_series(0, 59) i;
INSERT INTO wakeup_requests (id, workspace_id, agent_id, run_id, causation_id, scope, source, basis, wake_class, reason, payload, status, end_reason, hops, recovered, retry_source)
SELECT 'wkp_' || i, 'wsp_1', 'agt_' || i, 'run_' || i, 'cau', 'scope', {source}, {basis}, {class}, 'test', '{}', {wakeup}, CASE WHEN i % 3 > 0 THEN {reason} END, 0, false, {retry} FROM generate_series(0, 59) i;
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, data) SELECT 'act_' || i, 'wsp_1', {code}, 'test', {author}, '{}' FROM generate_series(0, 59) i;
INSERT INTO budget_policies (id, workspace_id, subject_kind, subject_id, limit_usd, period, alert_thresholds, on_exceed, period_start, spent_usd, reserved_usd)
VALUES ('bud_1', 'wsp_1', 'WORKSPACE', 'wsp_1', 1, 'MONTH', '[80]', 'PAUSE_AGENT', now(), 0, 0);
INSERT INTO budget_holds (id, workspace_id, policy_id, run_id, attempt, amount_usd, status) SELECT 'hld_' || i, 'wsp_1', 'bud_1', 'run_' || i, 1, 0.5, {hold} FROM generate_series(0, 59) i;`)
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// without leaves out of a closed set what is newer than the last release.
func without[T ~string](values []string, newer ...T) []string {
	return slices.DeleteFunc(values, func(v string) bool { return slices.Contains(newer, T(v)) })
}

// rowsOf is all rows of all tables as JSON, by the table's name, in order.
func rowsOf(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, table := range texts(t, db, `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('goose_db_version', 'run_log_lines', 'run_log_pieces')`) {
		// what the database derives from the other columns is no part of a row that is kept, nor is a newer column that is
		// empty, or has its default
		derived := `(ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = '` + table + `'::regclass AND attgenerated <> '') || ARRAY['backfilled', 'unattended', 'launches', 'launch_limit_ms', 'max_hops'])`
		if rows := texts(t, db, `SELECT jsonb_strip_nulls(to_jsonb(x) - `+derived+`)::text FROM `+table+` x ORDER BY 1`); len(rows) > 0 {
			out[table] = rows
		}
	}
	// a row each, or many in a row that a view shows as before
	out["run_log_lines"] = texts(t, db, `SELECT jsonb_build_array(workspace_id, run_id, attempt, seq, stream, text, at)::text FROM run_log_lines ORDER BY 1`)
	return out
}

func texts(t *testing.T, db *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t *testing.T, when string, before, now map[string][]string) {
	t.Helper()
	if len(before) < 12 {
		t.Errorf("only %d tables were filled", len(before))
	}
	for table, rows := range before {
		if !slices.Equal(rows, now[table]) {
			t.Errorf("%s: the %d rows of %s became %d others, such as\n%s\n%s", when, len(rows), table, len(now[table]), rows[0], strings.Join(now[table][:min(1, len(now[table]))], ""))
		}
	}
}
