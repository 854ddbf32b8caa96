package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// Workspaces in which nothing happens cost a scrape little: what alarms are made on is shown of them, and nothing else.
func TestAScrapeOfEmptyWorkspacesIsSmall(t *testing.T) {
	c := metrics.New()
	const workspaces, most = 500, 8
	for i := range workspaces {
		c.Know(xid.ID(fmt.Sprintf("wsp_%026d", i)))
	}
	began, w := time.Now(), httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	t.Logf("%d bytes in %s", w.Body.Len(), time.Since(began))
	if n := len(scrape(t, c)); n > workspaces*most+20 {
		t.Errorf("%d series for %d empty workspaces, want %d for each at most", n, workspaces, most)
	}
	if w.Body.Len() > 600_000 {
		t.Errorf("the scrape has %d bytes", w.Body.Len())
	}
}
