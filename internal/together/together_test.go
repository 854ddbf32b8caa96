package together

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// askedVariable makes this test program say how many tests it would run at a time.
const askedVariable = "ROUSE_TEST_TOGETHER"

func TestMain(m *testing.M) {
	if os.Getenv(askedVariable) == "" {
		os.Exit(m.Run())
	}
	if err := Run(7); err != nil {
		panic(err)
	}
	fmt.Print(flag.Lookup("test.parallel").Value)
}

func TestTheCommandLineWins(t *testing.T) {
	for args, want := range map[string]string{"": "7", "-test.v": "7", "-test.parallel=3": "3"} {
		cmd := exec.Command(os.Args[0], strings.Fields(args)...)
		cmd.Env = append(os.Environ(), askedVariable+"=1")
		got, err := cmd.Output()
		if err != nil || string(got) != want {
			t.Errorf("with %q it runs %s tests at a time, want %s: %v", args, got, want, err)
		}
	}
}
