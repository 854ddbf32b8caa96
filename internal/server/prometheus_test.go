//go:build prometheus

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A real Prometheus takes the rules, scrapes a server, and answers each expression of the rules and of the dashboard.
func TestPrometheusTakesTheRulesAndTheDashboard(t *testing.T) {
	numbers, _ := watched(t)
	served := httptest.NewServer(numbers)
	defer served.Close()
	rules, err := filepath.Abs("../../packaging/prometheus/rouse.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "rules", rules).CombinedOutput(); err != nil {
		t.Fatalf("promtool (Debian: prometheus): %v\n%s", err, out)
	}
	base := runPrometheus(t, strings.TrimPrefix(served.URL, "http://"), rules)
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(expression string) (rows int) {
		expression = strings.NewReplacer("$workspace", ".*", "$__rate_interval", "1m").Replace(expression)
		var answer struct {
			Status, Error string
			Data          struct{ Result []json.RawMessage }
		}
		getJSON(t, base+"/api/v1/query?query="+url.QueryEscape(expression), &answer)
		if answer.Status != "success" {
			t.Errorf("%s: %s", expression, answer.Error)
		}
		return len(answer.Data.Result)
	}
	deadline := time.Now().Add(time.Minute)
	for ask("rouse_workspace_info") == 0 { // Prometheus has no signal for its first scrape
		if time.Now().After(deadline) {
			t.Fatal("Prometheus has not scraped the server in a minute")
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, expression := range ruleExpressions(t, string(text)) {
		ask(expression)
	}
	for _, expression := range dashboardExpressions(t) {
		if rows := ask(expression); rows == 0 && !strings.Contains(expression, "rate(") && !strings.Contains(expression, "increase(") {
			t.Errorf("%s has no row", expression)
		}
	}
}

// runPrometheus runs one until the test ends, and returns its address.
func runPrometheus(t *testing.T, target, rules string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: rouse\n    static_configs: [{targets: [%q]}]\n", rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free := httptest.NewServer(http.NotFoundHandler())
	addr := strings.TrimPrefix(free.URL, "http://")
	free.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatalf("start prometheus (Debian: prometheus): %v", err)
	}
	t.Cleanup(func() {
		_ = c.Wait() // the context's end has ended it
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus said:\n%s", said)
		}
	})
	deadline := time.Now().Add(time.Minute)
	for {
		answer, err := http.Get("http://" + addr + "/-/ready")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus is not ready in a minute: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func getJSON(t *testing.T, address string, into any) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
