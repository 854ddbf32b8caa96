package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// tickerURL makes the test program a process that ticks a database until it is killed.
const tickerURL = "ROUSE_TEST_TICKER_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(tickerURL); url != "" {
		if err := tickForever(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

// tickForever does what the cron tick of a server does, again and again.
func tickForever(url string) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	s := New(db, Options{Events: &recorder{}, Counters: metrics.New(), Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }})
	fmt.Println("ticking")
	pause := time.NewTicker(5 * time.Millisecond)
	for {
		due, err := s.DueTriggers(ctx, DueTrigger{}, 100)
		if err != nil {
			return err
		}
		for _, d := range due {
			agents, err := s.FireDue(ctx, d.ID)
			if err != nil {
				return err
			}
			for _, agent := range agents {
				if _, err := s.Route(ctx, agent); err != nil {
					return err
				}
			}
		}
		<-pause.C
	}
}

// simulateClock gives a database's sessions a clock that stands where the table says: a function found before the real one.
func (w *world) simulateClock(start time.Time) {
	w.Helper()
	w.sql(`CREATE SCHEMA sim`)
	w.sql(`CREATE TABLE sim.clock (at timestamptz NOT NULL)`)
	w.sql(`INSERT INTO sim.clock VALUES ($1)`, start)
	w.sql(`CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM sim.clock'`)
	w.sql(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = sim, pg_catalog, public', current_database()); END $$`)
}

// ticker is one process that ticks.
type ticker struct {
	cmd  *osexec.Cmd
	done chan error
}

func (w *world) startTicker(url string) *ticker {
	w.Helper()
	t := &ticker{cmd: osexec.Command(os.Args[0], "-test.run=^$"), done: make(chan error, 1)}
	t.cmd.Env = append(os.Environ(), tickerURL+"="+url)
	t.cmd.Stderr = w.Output()
	out, err := t.cmd.StdoutPipe()
	w.ok(err)
	w.ok(t.cmd.Start())
	if !bufio.NewScanner(out).Scan() {
		w.Fatalf("a ticking process does not begin: %v", t.cmd.Wait())
	}
	go func() { t.done <- t.cmd.Wait() }()
	return t
}

func (t *ticker) kill() error {
	err := t.cmd.Process.Kill()
	if ended := <-t.done; ended == nil {
		return errors.New("the ticking process ended by itself")
	}
	return err
}

// C207, C208, C209: two processes tick one database through a day of a routine that is due every minute, and are killed at
// random moments. The database says what came of it: every slot has one fire, none has two, none is missed.
func TestTwoProcessesThatAreKilledFireEverySlotOfADayOnce(t *testing.T) {
	t.Parallel()
	const slots = 1440
	db, url := pgtest.NewURL(t)
	w := newWorldOn(t, db)
	trigger := w.routine(w.agent("worker"), func(r *CreateRoutine) { r.CatchUpMax, r.Triggers[0].Cron = domain.MaxCatchUpMax, everyMinute })
	start := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	w.sql(`UPDATE routine_triggers SET next_run_at = $2 WHERE id = $1`, trigger, start.Add(time.Minute))
	w.simulateClock(start)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)

	tickers := []*ticker{w.startTicker(url), w.startTicker(url)}
	fires := func() int { return one[int](w, `SELECT count(*) FROM routine_runs`) }
	kills, untilKill := 0, 0
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.Now().Add(4 * time.Minute)
	for minute := 1; minute <= slots; minute++ {
		w.sql(`UPDATE sim.clock SET at = at + interval '1 minute'`)
		for minute-fires() > 40 && time.Now().Before(deadline) { // the processes are behind, as after an outage, but never a day
			<-look.C
		}
		if untilKill--; untilKill < 0 {
			untilKill = 60 + random.IntN(80)
			i := random.IntN(2)
			w.ok(tickers[i].kill())
			kills++
			tickers[i] = w.startTicker(url)
		}
	}
	for fires() < slots && time.Now().Before(deadline) {
		<-look.C
	}
	for _, x := range tickers {
		w.ok(x.kill())
	}
	if kills < 8 {
		t.Errorf("only %d kills", kills)
	}
	for name, query := range map[string]string{
		"slots have no fire, or one beside the day": `SELECT count(*) FROM generate_series($1::timestamptz + interval '1 minute', $1::timestamptz + interval '1 day', interval '1 minute') s (slot)
FULL JOIN routine_runs f ON f.scheduled_for = s.slot WHERE s.slot IS NULL OR f.id IS NULL`,
		"slots fired twice":                 `SELECT count(*) FROM (SELECT 1 FROM routine_runs WHERE $1::timestamptz IS NOT NULL GROUP BY scheduled_for HAVING count(*) > 1) x`,
		"slots are called missed":           `SELECT coalesce(sum(missed_ticks), 0) FROM routine_runs WHERE $1::timestamptz IS NOT NULL`,
		"fires have no request, or several": `SELECT count(*) FROM routine_runs f WHERE $1::timestamptz IS NOT NULL AND (SELECT count(*) FROM wakeup_requests WHERE routine_run_id = f.id) <> 1`,
	} {
		if n := one[int](w, query, start); n != 0 {
			t.Errorf("%d %s", n, name)
		}
	}
	if n := fires(); n != slots {
		t.Errorf("%d fires after %d kills, want %d", n, kills, slots)
	}
}
