package scheduler

import (
	"os"
	"testing"

	"rouse.dev/rouse/internal/proc"
)

func TestThisProcessIsAlive(t *testing.T) {
	me, err := ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	if me.ID.Prefix() != "prc" || me.Host == "" || me.PID != os.Getpid() {
		t.Errorf("this process is %+v", me)
	}
	if !proc.Lives(me.PID, uint64(me.Started)) {
		t.Error("this process counts as dead")
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && (me.BootID == "" || me.Started == 0 || proc.Lives(me.PID, uint64(me.Started)+1)) {
		t.Errorf("a process that took over the id counts as this one: %+v", me)
	}
}
