package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/proc"
)

func TestOwnCgroupIsFoundWhereverItIsMounted(t *testing.T) {
	const (
		unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		legacy  = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		part    = "29 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		spaces  = "29 23 0:26 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n"
	)
	for _, test := range []struct {
		name, mounts, own, want string // want begins with ! for what the error says
	}{
		{"a service of systemd", unified, "0::/system.slice/rouse.service\n", "/sys/fs/cgroup/system.slice/rouse.service"},
		{"a server that has moved to a leaf", unified, "0::/system.slice/rouse.service/rouse-server\n", "/sys/fs/cgroup/system.slice/rouse.service"},
		{"the first cgroup", unified, "0::/\n", "/sys/fs/cgroup"},
		{"beside those of version 1", hybrid, "4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified"},
		{"a container that sees its own part", part, "0::/docker/abc\n", "/sys/fs/cgroup"},
		{"a container with a namespace of its own", part, "0::/\n", "/sys/fs/cgroup"},
		{"a mount with a space", spaces, "0::/a\n", "/mnt/my groups/a"},
		{"a cgroup that is not to be seen", part, "0::/elsewhere\n", "!not to be seen"},
		{"version 1 alone", legacy, "4:memory:/x\n", "!no cgroups of version 2"},
		{"a process in none", unified, "4:memory:/x\n", "!in no cgroup"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			mounts, own := filepath.Join(dir, "mountinfo"), filepath.Join(dir, "cgroup")
			for file, text := range map[string]string{mounts: test.mounts, own: test.own} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ownCgroup(mounts, own)
			if says, bad := strings.CutPrefix(test.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %q, %v", got, err)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// TestNamesOfCgroups tell attempts, installations and owners apart.
func TestNamesOfCgroups(t *testing.T) {
	self := os.Getpid()
	name := cgroupName("7-16384/run_1/1/lch_1") + cgroupOwner(self, proc.Started(self))
	for mark, want := range map[string]bool{"7-16384/run_1/1/": true, "7-16384/run_1/1/lch_1": true, "7-16384/run_1/": true, "7-16384/": true,
		"7-16384/run_1/11/": false, "7-1638/": false, "/run_1/1/": false, "7-16384/run_2/1/": false} {
		if got := strings.HasPrefix(name, cgroupName(mark)); got != want {
			t.Errorf("%s is of %s: %v", name, mark, got)
		}
	}
	if !ownerLives(name) || ownerLives(cgroupName("7/run_1/1/x")+cgroupOwner(self, proc.Started(self)+1)) || !ownerLives(cgroupName("7/run_1/1/x")+"~1~1~77") || !ownerLives("rouse~") {
		t.Error("whether the owner lives was judged wrongly")
	}
}

// TestACgroupLimitsProcessesWhereItCan: this machine may not have the means, so the files stand for it.
func TestACgroupLimitsProcessesWhereItCan(t *testing.T) {
	for _, limits := range []bool{true, false} {
		made, err := cgroups{dir: t.TempDir(), limits: limits}.make("7/run_1/1/x", 123)
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(filepath.Join(made.dir, "pids.max")); limits && got != "123" || !limits && got != "" {
			t.Errorf("limits %v: %q", limits, got)
		}
	}
}
