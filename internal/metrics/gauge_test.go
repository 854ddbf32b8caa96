package metrics

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAGaugeThatCannotBeReadHidesNoOther(t *testing.T) {
	c := New()
	c.CronTick(time.Unix(1, 0))
	w := httptest.NewRecorder()
	c.Handler(
		Gauge{Name: "rouse_good", Help: "Good.", Read: func(context.Context) (float64, error) { return 7, nil }},
		Gauge{Name: "rouse_bad", Help: "Bad.", Read: func(context.Context) (float64, error) { return 0, errors.New("away") }},
	).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "\nrouse_good 7\n") || strings.Contains(body, "rouse_bad") || !strings.Contains(body, "rouse_cron_ticks_total 1") {
		t.Errorf("%d\n%s", w.Code, body)
	}
}
