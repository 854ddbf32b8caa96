package graph

import (
	"strings"
	"testing"
	"time"
)

func TestAPreviewRepeatsLittleOfWhatWasSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct{ cron, zone string }{{long + " * * * *", ""}, {"* * * * *", long}, {"@" + long, ""}} {
		shown, err := previewSchedule(c.cron, c.zone, 1, time.Now())
		if err != nil || len(shown.UserErrors) != 1 || strings.Count(shown.UserErrors[0].Message, "x") > 200 {
			t.Errorf("%.20s: %v %+v", c.cron, err, shown)
		}
	}
}
