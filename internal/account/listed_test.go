package account

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestSystemdIsToldOfAnAccount: by name and by number, in the words of systemd's user records.
func TestSystemdIsToldOfAnAccount(t *testing.T) {
	a, dir := OfWorkspace(39990000, "wsp_1", "/data/homes/wsp_1"), filepath.Join(t.TempDir(), "userdb")
	for range 2 { // each launch does so
		if err := a.showIn(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"rouse-39990000.user": "userName", "39990000.user": "userName", "rouse-39990000.group": "groupName", "39990000.group": "groupName"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		var record map[string]any
		if err != nil || json.Unmarshal(text, &record) != nil || record[want] != "rouse-39990000" || record["gid"] != float64(39990000) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// TestAnAccountHasALineInTheListsOfUsersAndGroups: with its home, since ssh looks there and not at HOME.
func TestAnAccountHasALineInTheListsOfUsersAndGroups(t *testing.T) {
	a := OfWorkspace(39990000, "wsp_1", "/data/homes/wsp_1")
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	if got, want := a.Passwd(), "rouse-39990000:x:39990000:39990000:agents of wsp_1:/data/homes/wsp_1:"+shell; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.Group(), "rouse-39990000:x:39990000:"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
