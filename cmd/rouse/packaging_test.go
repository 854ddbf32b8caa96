package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"rouse.dev/rouse/internal/config"
)

const unitFile = "../../packaging/rouse.service"

// unit is the settings of the service's file; a name may have several values.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			settings[name] = append(settings[name], value)
		}
	}
	return settings
}

func TestTheServiceNamesOnlyWhatTheProgramKnows(t *testing.T) {
	parser, err := kong.New(&cli{}, defaults())
	if err != nil {
		t.Fatal(err)
	}
	var flags, variables []string
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			flags, variables = append(flags, "--"+flag.Name), append(variables, flag.Envs...)
		}
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return !strings.ContainsRune("_ABCDEFGHIJKLMNOPQRSTUVWXYZ", r) }) {
		if strings.HasPrefix(word, "ROUSE_") && !slices.Contains(variables, word) {
			t.Errorf("it names %s, which serve does not know", word)
		}
	}
	start := strings.Fields(unit(t)["ExecStart"][0])
	if len(start) < 2 || start[1] != "serve" {
		t.Errorf("it starts %v", start)
	}
	for _, word := range start {
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "--") && !slices.Contains(flags, flag) {
			t.Errorf("it gives %s, which serve does not know", flag)
		}
	}
}

func TestTheServiceLeavesRoomForAShutdown(t *testing.T) {
	settings := unit(t)
	seconds, err := strconv.Atoi(settings["TimeoutStopSec"][0])
	if rest := 2 * time.Minute; err != nil || time.Duration(seconds)*time.Second < config.Default().Drain+rest {
		t.Errorf("it is killed after %v s, %v", settings["TimeoutStopSec"], err)
	}
	if settings["KillMode"][0] != "mixed" {
		t.Errorf("KillMode is %v: the agents would be ended with the server", settings["KillMode"])
	}
}

func TestTheServiceIsOneThatSystemdUnderstands(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd-analyze here")
		return
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(t.TempDir(), "rouse.service")
	if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/rouse", binary)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(analyze, "verify", here).CombinedOutput(); err != nil || strings.Contains(string(said), "rouse.service:") {
		t.Errorf("%v: %s", err, said)
	}
}
