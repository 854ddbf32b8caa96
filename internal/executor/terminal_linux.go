package executor

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is a pair of pseudo terminals between a person's terminal and a program that runs as another account. On the
// person's own terminal the program could type for the person, and could not open the terminal by name.
type terminal struct {
	shell         Shell
	master, slave *os.File
	before        *unix.Termios
	resized       chan os.Signal
	output        sync.WaitGroup
}

// openTerminal gives the files of a shell: those that it was given, or one terminal that stands before them.
func openTerminal(s Shell) ([]*os.File, *terminal, error) {
	before, err := unix.IoctlGetTermios(int(s.In.Fd()), unix.TCGETS)
	if err != nil { // no terminal
		return []*os.File{s.In, s.Out, s.Errors}, nil, nil
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	t := &terminal{shell: s, master: master, before: before, resized: make(chan os.Signal, 1)}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		t.slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		closeFiles(master)
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	t.resize()
	return []*os.File{t.slave, t.slave, t.slave}, t, nil
}

// begin passes on what is typed and shown.
func (t *terminal) begin() {
	if t == nil {
		return
	}
	closeFiles(t.slave) // the program holds its own
	raw := *t.before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(int(t.shell.In.Fd()), unix.TCSETS, &raw) // without it each line is echoed twice, no more
	signal.Notify(t.resized, syscall.SIGWINCH)
	go func() {
		for range t.resized {
			t.resize()
		}
	}()
	go func() { _, _ = io.Copy(t.master, t.shell.In) }()          // until the process ends: a read of a terminal cannot be broken off
	t.output.Go(func() { _, _ = io.Copy(t.shell.Out, t.master) }) // an error is the end of the program
}

// resize gives the program's terminal the size of the person's.
func (t *terminal) resize() {
	if size, err := unix.IoctlGetWinsize(int(t.shell.In.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size) // the size is a comfort
	}
}

// close shows what came last, and gives the person's terminal back as it was.
func (t *terminal) close() {
	if t == nil {
		return
	}
	closeFiles(t.slave)
	t.output.Wait()
	signal.Stop(t.resized)
	close(t.resized)
	_ = unix.IoctlSetTermios(int(t.shell.In.Fd()), unix.TCSETS, t.before) // nothing else can be done for it
	closeFiles(t.master)
}
