package queuebench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu is processor time used so far: what a shared machine does not distort as it does elapsed time.
type cpu struct{ server, client time.Duration }

func (c cpu) sub(before cpu) cpu { return cpu{c.server - before.server, c.client - before.client} }

// tick is the kernel's unit of processor times in /proc, the same on all Linux machines.
const tick = 10 * time.Millisecond

// cpu reads the time of the database server, its children included, and of this process.
func (h *house) cpu() (c cpu) {
	h.Helper()
	c.server = h.processTime(h.cluster.PID(), true)
	for _, pid := range h.backends() {
		c.server += h.processTime(pid, false)
	}
	c.client = h.usage(syscall.RUSAGE_SELF)
	return c
}

// backends are the processes of the database server that run now.
func (h *house) backends() (pids []int) {
	h.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	h.ok(err)
	for _, name := range names {
		pid := h.int(filepath.Base(filepath.Dir(name)))
		if h.parentOf(pid) == h.cluster.PID() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// usage is the processor time of this process, or of its children that have ended.
func (h *house) usage(who int) time.Duration {
	h.Helper()
	var used syscall.Rusage
	h.ok(syscall.Getrusage(who, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// pgbenchCPU runs pgbench for some seconds with eight clients, and returns its transactions in a second and the processor time of
// each. Its backends end after it: their time is counted once the server has none of them any more, because a process that ends
// while they are looked through is in nobody's time.
func (h *house) pgbenchCPU(seconds int) (rate float64, each cpu) {
	h.Helper()
	there := h.backends()
	client, before := h.usage(syscall.RUSAGE_CHILDREN), h.cpu()
	rate, _ = h.pgbench(seconds, 8)
	h.awaitGone(there)
	n := time.Duration(rate * float64(seconds))
	return rate, cpu{h.cpu().sub(before).server / n, (h.usage(syscall.RUSAGE_CHILDREN) - client) / n}
}

// awaitGone waits until the server's sessions are those that were there.
func (h *house) awaitGone(there []int) {
	h.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(h.backends(), func(pid int) bool { return !slices.Contains(there, pid) }) {
			return
		}
		if time.Now().After(deadline) {
			h.Fatal("sessions of pgbench have not ended within a minute")
		}
	}
}

// serverCPU is the database server's processor time in f, in milliseconds.
func (h *house) serverCPU(f func()) float64 {
	h.Helper()
	before := h.cpu()
	f()
	return h.cpu().sub(before).server.Seconds() * 1000
}

// stat is the fields of /proc/<pid>/stat after the name; nil for a process that has ended.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

func (h *house) parentOf(pid int) int {
	if fields := stat(pid); len(fields) > 1 {
		return h.int(fields[1])
	}
	return 0
}

// processTime is user and system time, with that of children who have ended when all is asked for.
func (h *house) processTime(pid int, all bool) time.Duration {
	fields := stat(pid)
	if len(fields) < 15 {
		return 0
	}
	n := h.int(fields[11]) + h.int(fields[12])
	if all {
		n += h.int(fields[13]) + h.int(fields[14])
	}
	return time.Duration(n) * tick
}

func (h *house) int(text string) int {
	n, err := strconv.Atoi(text)
	h.ok(err)
	return n
}
