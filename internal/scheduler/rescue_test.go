package scheduler

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

const deadPID, livePID = 111, 222

func newRescuer(leftovers ...store.Leftover) (*rescuer, *fakeStore, *fakeGroups) {
	f := &fakeStore{leftovers: leftovers, uptime: time.Hour}
	groups := &fakeGroups{record: &f.record, bad: -1}
	return &rescuer{store: f, groups: groups, owner: store.Owner{ID: "prc_self", Host: "here", BootID: "boot"}, lease: 20 * time.Second,
		log: slog.New(slog.DiscardHandler), alive: func(pid int, _ uint64) bool { return pid == livePID }}, f, groups
}

// leftover is a lease of a process of this host and boot.
func leftover(run xid.ID, pid, group int, expired bool) store.Leftover {
	return store.Leftover{Attempt: store.Attempt{RunID: run, Number: 1, Owner: "prc_other"}, OwnerHost: "here", OwnerBootID: "boot",
		OwnerPID: pid, OwnerStarted: 1, Group: store.ProcessGroup{Host: "here", BootID: "boot", PGID: group}, Expired: expired}
}

// offer is a run that waited for a worker for too long.
func offer(run xid.ID) store.Leftover {
	return store.Leftover{Attempt: store.Attempt{RunID: run, Number: 1}, Expired: true}
}

// accepted is a run that an agent service has.
func accepted(run xid.ID, expired bool) store.Leftover {
	return store.Leftover{Attempt: store.Attempt{RunID: run, Number: 1, Owner: "prc_other"}, Accepted: true, Expired: expired}
}

func elsewhere(l store.Leftover, host, boot string) store.Leftover {
	l.OwnerHost, l.OwnerBootID, l.Group.Host, l.Group.BootID = host, boot, host, boot
	return l
}

// settle sweeps until the rescuer has been connected for a whole lease.
func settle(t *testing.T, r *rescuer) {
	t.Helper()
	for range int(r.lease/rescueBeat) + 1 {
		if _, err := r.runOnce(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rescueBeat)
	}
}

func TestWhichLeasesAreRescued(t *testing.T) {
	tests := []struct {
		name    string
		lease   store.Leftover
		atOnce  []string // by the first sweep of a process that has just started
		settled []string // once database and sweep were up for a lease
	}{
		{"owner of this host and boot is dead: at once, its agent ended first", leftover("run_1", deadPID, 7, false),
			[]string{"end group 7", "abandon run_1 dead=true"}, nil},
		{"dead owner that recorded no process: what carries the attempt's mark is ended all the same", leftover("run_1", deadPID, 0, false),
			[]string{"end group 0", "abandon run_1 dead=true"}, nil},
		{"owner lives and renews", leftover("run_1", livePID, 7, false), nil, nil},
		{"owner lives but its lease ran out: its agent is ended first", leftover("run_1", livePID, 7, true),
			nil, []string{"end group 7", "abandon run_1 dead=false"}},
		{"owner of an earlier boot or another container: process ids say nothing", elsewhere(leftover("run_1", deadPID, 7, false), "here", "earlier"), nil, nil},
		{"the same, when its lease ran out", elsewhere(leftover("run_1", deadPID, 7, true), "here", "earlier"),
			nil, []string{"end group 7", "abandon run_1 dead=false"}},
		{"owner of another host whose lease ran out", elsewhere(leftover("run_1", deadPID, 7, true), "there", "boot"),
			nil, []string{"abandon run_1 dead=false"}},
		{"owner of another host that renews", elsewhere(leftover("run_1", deadPID, 7, false), "there", "boot"), nil, nil},
		{"an offer that no worker took in time: it is taken back, and nothing is looked for", offer("run_1"), []string{"withdraw run_1"}, nil},
		{"an agent service has it, and its process is gone: it goes on", accepted("run_1", false), nil, nil},
		{"an agent service has it for too long: nothing is looked for here", accepted("run_1", true), nil, []string{"end accepted run_1"}},
		{"no boot id is known: only the lease counts", elsewhere(leftover("run_1", deadPID, 0, false), "here", ""), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f, _ := newRescuer(tt.lease)
				if tt.lease.OwnerBootID == "" {
					r.owner.BootID = ""
				}
				if _, err := r.runOnce(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if got := f.take(); !slices.Equal(got, tt.atOnce) {
					t.Errorf("at once: %q, want %q", got, tt.atOnce)
				}
				settle(t, r)
				if got := f.take(); !slices.Equal(got, tt.settled) {
					t.Errorf("later: %q, want %q", got, tt.settled)
				}
			})
		})
	}
}

// C308: an outage longer than the lease.
func TestAnOutageRescuesNobody(t *testing.T) {
	expired := elsewhere(leftover("run_1", deadPID, 0, true), "there", "boot")
	tests := []struct {
		name   string
		outage func(t *testing.T, r *rescuer, f *fakeStore)
	}{
		{"the database has just been started", func(_ *testing.T, _ *rescuer, f *fakeStore) { f.uptime = 19 * time.Second }},
		{"a sweep could not read", func(t *testing.T, r *rescuer, f *fakeStore) {
			f.away = true
			if _, err := r.runOnce(t.Context(), nil); err == nil {
				t.Error("the sweep did not fail")
			}
			f.away = false
		}},
		{"this process was stopped meanwhile", func(*testing.T, *rescuer, *fakeStore) { time.Sleep(time.Minute) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f, _ := newRescuer()
				settle(t, r)
				f.leftovers = []store.Leftover{expired}
				tt.outage(t, r, f)
				if _, err := r.runOnce(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if got := f.take(); len(got) != 0 {
					t.Errorf("right after the outage: %q", got)
				}
				f.uptime = time.Hour
				settle(t, r)
				if got := f.take(); !slices.Equal(got, []string{"abandon run_1 dead=false"}) {
					t.Errorf("a lease later: %q", got)
				}
			})
		})
	}
}

func TestAGroupThatDoesNotEndKeepsItsRunAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f, groups := newRescuer(leftover("run_1", deadPID, 7, false), leftover("run_2", deadPID, 8, false), leftover("run_3", deadPID, 0, false))
		groups.bad, f.badRun = 7, "run_2"
		for range 2 {
			_, err := r.runOnce(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), "rescue run run_1 attempt 1: end the agent's processes (group 7)") || !strings.Contains(err.Error(), "bad run") {
				t.Errorf("error %v", err)
			}
		}
		want := []string{"end group 7", "end group 8", "abandon run_2 dead=true", "end group 0", "abandon run_3 dead=true",
			"end group 7", "end group 8", "abandon run_2 dead=true"}
		if got := f.take(); !slices.Equal(got, want) {
			t.Errorf("done: %q, want %q", got, want)
		}
		if r.connectedSince.IsZero() {
			t.Error("a run that cannot be rescued counts as an outage, and would keep every other lease from being rescued")
		}
	})
}
