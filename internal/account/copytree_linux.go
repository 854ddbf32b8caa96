package account

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// CopyTree copies what is in a folder of one account into one of another. Each side is done under its own account, so that neither
// gets at what it could not get at by itself, whatever links there are. It needs tar.
func CopyTree(ctx context.Context, from string, reader uint32, to string, writer uint32) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	pack := tar(ctx, reader, "-C", from, "--one-file-system", "-cf", "-", ".")
	unpack := tar(ctx, writer, "-C", to, "--no-same-owner", "-xf", "-")
	pack.Stdout, unpack.Stdin = write, read
	var saidPacking, saidUnpacking strings.Builder
	pack.Stderr, unpack.Stderr = &saidPacking, &saidUnpacking
	began := errors.Join(pack.Start(), unpack.Start())
	_ = read.Close()  // theirs
	_ = write.Close() // theirs
	if pack.Process != nil {
		err = errors.Join(err, said(pack.Wait(), &saidPacking))
	}
	if unpack.Process != nil {
		err = errors.Join(err, said(unpack.Wait(), &saidUnpacking))
	}
	return errors.Join(began, err)
}

func tar(ctx context.Context, uid uint32, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "tar", arguments...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{}}}
	return cmd
}

func said(err error, text *strings.Builder) error {
	if err == nil {
		return nil
	}
	first, _, _ := strings.Cut(text.String(), "\n")
	return fmt.Errorf("tar: %w: %s", err, first)
}
