package webhook

import (
	"net/http"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

func TestWhichRunADeliveryNames(t *testing.T) {
	t.Parallel()
	run := xid.New("run")
	for name, c := range map[string]struct {
		header string
		want   xid.ID
	}{
		"none": {"", ""}, "a run": {run.String(), run}, "something that is no run": {xid.New("agt").String(), ""}, "no id at all": {"run_1'; DROP TABLE runs", ""},
	} {
		h := http.Header{}
		h.Set(RunHeader, c.header)
		if got := callingRun(h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
