package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// ForgetFile gives back the pages of this program's file that the process has mapped. The start reads most of them once: what packages
// make of themselves, the schema, the migrations. The system keeps them where it has room, and maps again what is needed.
func ForgetFile() (err error) {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	defer func() { err = errors.Join(err, maps.Close()) }()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		from, length, is := unwritable(lines.Text(), name)
		if !is {
			continue
		}
		if _, _, failed := syscall.Syscall(syscall.SYS_MADVISE, from, length, syscall.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("give back pages of the program's file: %w", failed)
		}
	}
	return lines.Err()
}

// unwritable reads a line of /proc/self/maps: where a part of the file lies that nobody can have written to.
func unwritable(line, name string) (from, length uintptr, is bool) {
	var to uintptr
	var rights string
	if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil {
		return 0, 0, false
	}
	return from, to - from, strings.HasSuffix(line, " "+name) && rights[1] == '-'
}
