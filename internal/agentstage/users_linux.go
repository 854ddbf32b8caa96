package agentstage

import (
	"os"

	"golang.org/x/sys/unix"
)

// staging is the folder that a file system in memory is put over for a moment; any folder that every system has will do.
const staging = "/tmp"

// showAccount lets this process and its children see the system's lists of users and groups with one more line each, in a mount
// namespace of their own. Programs that ask who they are (ssh, git, whoami, node) do not start under an id without a name.
func (o Order) showAccount() error {
	if o.Passwd == "" {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	// What the machine mounts later is seen here, too; what is mounted here is not seen there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := unix.Mount("rouse", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=16m,mode=0755"); err != nil {
		return err
	}
	for file, line := range map[string]string{"passwd": o.Passwd, "group": o.Group} {
		if err := cover("/etc/"+file, staging+"/"+file, line); err != nil {
			return err
		}
	}
	if err := unix.Unmount(staging, unix.MNT_DETACH); err != nil {
		return err
	}
	return hideCache()
}

// cover puts a list with one more line over a list of the system.
func cover(list, with, line string) error {
	text, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if err := os.WriteFile(with, append(text, line+"\n"...), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(with, 0o644); err != nil { // whatever the umask
		return err
	}
	return unix.Mount(with, list, "", unix.MS_BIND, "")
}

// hideCache covers the socket of nscd, which would answer from the system's lists before the C library looks into these.
func hideCache() error {
	for _, socket := range []string{"/run/nscd/socket", "/var/run/nscd/socket"} {
		if _, err := os.Stat(socket); err == nil {
			return unix.Mount("/dev/null", socket, "", unix.MS_BIND, "")
		}
	}
	return nil
}
