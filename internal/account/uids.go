package account

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Range is a range of user ids, both ends included. Its last one is never given away: processes of the others are ended by
// it, since it is nobody's.
type Range struct{ First, Last uint32 }

// Ranges that no list of users knows by default: between those of systemd's dynamic users and those that useradd lends to
// containers; and, where a container knows no id above 65535, that of dynamic users.
var (
	usualRange = Range{70000, 74095}
	smallRange = Range{61184, 65519}
)

// least is the first id that may be in a range: those below are of the system and its people.
const least = 1000

// DefaultRange is the range when nobody names one.
func DefaultRange() Range {
	if isMapped("/proc/self/uid_map", usualRange) && isMapped("/proc/self/gid_map", usualRange) {
		return usualRange
	}
	return smallRange
}

// ParseRange reads FIRST-LAST.
func ParseRange(text string) (Range, error) {
	from, to, found := strings.Cut(text, "-")
	first, err1 := strconv.ParseUint(strings.TrimSpace(from), 10, 32)
	last, err2 := strconv.ParseUint(strings.TrimSpace(to), 10, 32)
	switch {
	case !found || err1 != nil || err2 != nil:
		return Range{}, fmt.Errorf("%q is no range of user ids; write such as 70000-74095", text)
	case first < least:
		return Range{}, fmt.Errorf("%q begins below %d, where the ids of the system and its people are; write such as 70000-74095", text, least)
	case last <= first || last > 4294967293:
		return Range{}, fmt.Errorf("%q has to rise, to 4294967293 at most, and to hold two ids or more, since the last is rouse's own; write such as 70000-74095", text)
	case first <= 65535 && last >= 65534:
		return Range{}, fmt.Errorf("%q holds 65534 or 65535, which are nobody and no id; write such as 70000-74095", text)
	}
	return Range{uint32(first), uint32(last)}, nil
}

// String is FIRST-LAST.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Holds says whether an id may be a workspace's.
func (r Range) Holds(uid uint32) bool { return r.First <= uid && uid < r.Last }

// reaper is the id by which processes of the others are ended.
func (r Range) reaper() uint32 { return r.Last }

// isMapped says whether this user namespace knows all ids of a range; where no map can be read there is one namespace.
func isMapped(file string, r Range) bool {
	f, err := os.Open(file)
	if err != nil {
		return true
	}
	defer f.Close() // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &count); err == nil && inside <= uint64(r.First) && uint64(r.Last) < inside+count {
			return true
		}
	}
	return false
}

// lent says whether /etc/subuid or /etc/subgid gives the id to somebody's containers.
func lent(uid uint32) bool {
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) != 3 {
				continue
			}
			start, err1 := strconv.ParseUint(fields[1], 10, 32)
			count, err2 := strconv.ParseUint(fields[2], 10, 32)
			if err1 == nil && err2 == nil && start <= uint64(uid) && uint64(uid) < start+count {
				return true
			}
		}
	}
	return false
}

// listLimit bounds a question to the system's lists of users, which may be on other machines.
const listLimit = 10 * time.Second

// listed says whether the system's lists of users or groups have an id under another name than the one that Rouse would
// give it. An image may list Rouse's own accounts. getent asks all lists; without getent only the files are read.
func listed(uid uint32) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listLimit)
	defer cancel()
	for list, file := range map[string]string{"passwd": "/etc/passwd", "group": "/etc/group"} {
		line, err := exec.CommandContext(ctx, "getent", list, strconv.FormatUint(uint64(uid), 10)).Output()
		exit, answered := errors.AsType[*exec.ExitError](err)
		switch {
		case err == nil:
			if name, _, _ := strings.Cut(string(line), ":"); name != nameOf(uid) {
				return true, nil
			}
		case answered && exit.ExitCode() == 2: // the list does not know it
		case ctx.Err() != nil:
			return false, fmt.Errorf("the system's list of users does not say within %s whether the id %d is somebody's: see /etc/nsswitch.conf and getent passwd %d", listLimit, uid, uid)
		default:
			if inFile(file, uid) {
				return true, nil
			}
		}
	}
	return false, nil
}

// inFile says whether the third field of a line is the id.
func inFile(file string, uid uint32) bool {
	text, _ := os.ReadFile(file) // a list that is missing knows nobody
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == strconv.FormatUint(uint64(uid), 10) && fields[0] != nameOf(uid) {
			return true
		}
	}
	return false
}
