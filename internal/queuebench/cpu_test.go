package queuebench

import (
	"fmt"
	"os"
	"path/filepath"
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
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	h.ok(err)
	for _, name := range children {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		h.ok(err)
		if h.parentOf(pid) == h.cluster.PID() {
			c.server += h.processTime(pid, false)
		}
	}
	var usage syscall.Rusage
	h.ok(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	c.client = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return c
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
