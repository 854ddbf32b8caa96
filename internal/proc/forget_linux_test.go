package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// mappedKB is how much of the part that is mapped from an address on is in memory, in KB.
func mappedKB(t *testing.T, from uintptr) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut("\n"+string(raw), fmt.Sprintf("\n%x-", from))
	_, rest, has := strings.Cut(part, "\nRss:")
	var kb int
	if _, err := fmt.Sscan(rest, &kb); !found || !has || err != nil {
		t.Fatalf("nothing is mapped at %x: %v", from, err)
	}
	return kb
}

// A part of the program's file that nobody but this test reads is given back, and mapped again when it is read.
func TestTheProgramsFileIsGivenBackAndReadAgain(t *testing.T) {
	want, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	part, err := syscall.Mmap(int(file.Fd()), 0, len(want), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(part); err != nil {
			t.Error(err)
		}
	}()
	from := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if !bytes.Equal(part, want) {
		t.Fatal("the file is mapped wrong")
	}
	if before := mappedKB(t, from); before < len(want)>>10 {
		t.Fatalf("%d KB of a file of %d KB are mapped", before, len(want)>>10)
	}
	if err := ForgetFile(); err != nil {
		t.Fatal(err)
	}
	if after := mappedKB(t, from); after != 0 {
		t.Errorf("%d KB are still mapped", after)
	}
	if !bytes.Equal(part, want) {
		t.Error("what is mapped again is not the file")
	}
}

func TestOnlyWhatNobodyCanHaveWrittenToIsGivenBack(t *testing.T) {
	const name = "/usr/bin/rouse"
	for _, x := range []struct {
		what, line   string
		from, length uintptr
		is           bool
	}{
		{"code", "00400000-00e0b000 r-xp 00000000 fe:01 1234 /usr/bin/rouse", 0x400000, 0xa0b000, true},
		{"constants", "00e0b000-01a00000 r--p 00a0b000 fe:01 1234 /usr/bin/rouse", 0xe0b000, 0xbf5000, true},
		{"variables, which may have been written to", "01a00000-01b00000 rw-p 01600000 fe:01 1234 /usr/bin/rouse", 0, 0, false},
		{"another file", "7f0000000000-7f0000001000 r--p 00000000 fe:01 99 /usr/lib/libc.so.6", 0, 0, false},
		{"a file whose name ends like the program's", "7f0000000000-7f0000001000 r--p 00000000 fe:01 99 /tmp/usr/bin/rouse", 0, 0, false},
		{"memory without a file", "c000000000-c000400000 rw-p 00000000 00:00 0", 0, 0, false},
		{"nothing", "", 0, 0, false},
	} {
		from, length, is := unwritable(x.line, name)
		if is != x.is || is && (from != x.from || length != x.length) {
			t.Errorf("%s: %x %x %t", x.what, from, length, is)
		}
	}
}
