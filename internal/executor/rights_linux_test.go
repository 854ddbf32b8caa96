package executor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAShutFolderIsShutThroughRouseToo: what lies in a folder that the agent's account may not enter, such as the home of another
// workspace's agents, is open to everybody by its own permissions more often than not.
func TestAShutFolderIsShutThroughRouseToo(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can take the rights of another account
	}
	agent := &syscall.Credential{Uid: 54321, Gid: 54321}
	dir := passableFolder(t)
	home, shared, secret := filepath.Join(dir, "home"), filepath.Join(dir, "home", "shared"), filepath.Join(dir, "home", "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(home, 0o700))
	must(os.Mkdir(shared, 0o777))
	must(os.Chmod(shared, 0o777)) // whatever the umask
	must(os.WriteFile(secret, []byte("text"), 0o666))
	must(os.Chmod(secret, 0o666)) // as above
	f, err := openFolder(dir, agent)
	must(err)
	defer f.close()

	if got, err := f.read(secret, 0, 0); err == nil || !strings.Contains(err.Error(), "account") {
		t.Errorf("a file in a shut folder was read: %q, %v", got, err)
	}
	for _, name := range []string{secret, filepath.Join(shared, "new"), filepath.Join(shared, "folder", "new")} {
		if err := f.write(name, "x"); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "text" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) != 0 {
		t.Errorf("made %v, %v", left, err)
	}
	if f, err := openFolder(shared, agent); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the agent got a folder below a shut one: %v, %v", f, err)
	}
}

// TestTheRightsOfAnAccountAreNotRoots: neither over what the kernel tells of others' processes, nor after the call.
func TestTheRightsOfAnAccountAreNotRoots(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can take the rights of another account
	}
	agent := &syscall.Credential{Uid: 54321, Gid: 54321}
	f, err := openFolder("/proc", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if _, err := f.read(fmt.Sprintf("/proc/%d/maps", os.Getpid()), 1, 1); err == nil {
		t.Error("an agent read where rouse's memory is")
	}
	other := exec.Command("/bin/cat")
	input, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	maps := fmt.Sprintf("/proc/%d/maps", other.Process.Pid)
	look := func() error {
		_, err := os.ReadFile(maps)
		return err
	}
	if err := withRightsOf(agent, look); err == nil {
		t.Error("an agent's rights open what the kernel tells of root's processes")
	}
	if err := look(); err != nil {
		t.Errorf("rouse kept the agent's rights: %v", err)
	}
	if err := errors.Join(input.Close(), other.Wait()); err != nil {
		t.Fatal(err)
	}

	dir := passableFolder(t)
	if err := os.Chown(dir, 54321, 54321); err != nil {
		t.Fatal(err)
	}
	own, err := openFolder(dir, agent)
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	name := filepath.Join(dir, "a", "b", "new")
	if err := own.write(name, "text"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(filepath.Dir(name)), filepath.Dir(name), name} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 54321 || stat.Gid != 54321 {
			t.Errorf("%s belongs to %d:%d", path, stat.Uid, stat.Gid)
		}
	}
}

// TestWhatIsInAShutFolderIsNotTold: neither whether it is there nor what it is, also by way of a link.
func TestWhatIsInAShutFolderIsNotTold(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can take the rights of another account
	}
	dir := passableFolder(t)
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Mkdir(filepath.Join(home, "folder"), 0o755), os.WriteFile(filepath.Join(home, "program"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	o := Options{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	said := map[string]string{}
	for _, name := range []string{"folder", "program", "nothing"} {
		link := filepath.Join(dir, "to-"+name)
		if err := os.Symlink(filepath.Join(home, name), link); err != nil {
			t.Fatal(err)
		}
		for way, path := range map[string]string{"directly": filepath.Join(home, name), "by a link": link} {
			_, asFolder := o.directory(path, "")
			_, asProgram := o.findProgram(path, "/", "")
			if asFolder == nil || asProgram == nil {
				t.Fatalf("%s, %s: it was accepted", name, way)
			}
			answer := strings.ReplaceAll(asFolder.Message+"; "+asProgram.Message, name, "NAME")
			if first := said[way]; first != "" && first != answer {
				t.Errorf("%s, %s: %s; of others it is said: %s", name, way, answer, first)
			}
			said[way] = answer
		}
	}
	if want := home + " (chmod o+x)"; !strings.Contains(said["directly"], want) {
		t.Errorf("%q does not name what is shut: %s", said["directly"], want)
	}
}

// TestAnAccessListCounts: it is what the doctor's hint makes with setfacl.
func TestAnAccessListCounts(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can take the rights of another account
	}
	dir := passableFolder(t)
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	const uid = 54321
	o := Options{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if o.mayWrite(dir) {
		t.Error("the account may write before it is let")
	}
	grant(t, dir, uid, 7)
	grant(t, name, uid, 6)
	if !o.mayWrite(dir) {
		t.Error("the account may not write, though the folder's list lets it")
	}
	f, err := openFolder(dir, o.Credential)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := errors.Join(f.write(name, "other"), f.write(filepath.Join(dir, "new"), "x")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "other" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// grant gives a file an access list that lets one account do more than others.
func grant(t *testing.T, path string, uid uint32, bits uint16) {
	t.Helper()
	const none = 1<<32 - 1
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, bits uint16
		id        uint32
	}{{1, bits, none}, {2, bits, uid}, {4, bits &^ 2, none}, {16, bits, none}, {32, bits &^ 2, none}} {
		list = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(list, e.tag), e.bits), e.id)
	}
	if err := unix.Setxattr(path, "system.posix_acl_access", list, 0); err != nil {
		t.Fatal(err)
	}
}

// The first thread of a process never ends, and /proc tells its ids for those of the whole process. When it had taken an account's
// rights, the server counted as a process of that account for ever, and each end of an attempt waited ten seconds for it to go.
func TestTheServerNeverCountsAsAProcessOfAnAgent(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can take the rights of another account
	}
	const uid = 54321
	agent := &syscall.Credential{Uid: uid, Gid: uid}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if err := withRightsOf(agent, func() error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Uid:") && strings.Contains(line, strconv.Itoa(uid)) {
			t.Errorf("the ids of this process are %q", line)
		}
	}
}
