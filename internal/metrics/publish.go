package metrics

import (
	"expvar"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The instants of the process, published in seconds since 1970.
const (
	startedName  = "rouse_process_start_timestamp_seconds"
	lastTickName = "rouse_last_cron_tick_timestamp_seconds"
	lastPassName = "rouse_last_queue_pass_timestamp_seconds"
)

// instants lists them with their values; 0: not yet.
func (c *Counters) instants() []struct {
	name, help string
	at         float64
} {
	return []struct {
		name, help string
		at         float64
	}{
		{startedName, "When the process started.", seconds(&c.startedAt)},
		{lastTickName, "When cron triggers were last evaluated; 0: not yet.", seconds(c.lastTick.at())},
		{lastPassName, "When the dispatcher last looked at the queue; 0: not yet.", seconds(c.lastPass.at())},
	}
}

func seconds(at *time.Time) float64 {
	if at == nil {
		return 0
	}
	return float64(at.UnixNano()) / 1e9
}

// shownCounters is what expvar reads. Its names are process-wide and can be published only once, while tests make
// Counters again and again.
var (
	shownCounters atomic.Pointer[Counters]
	publishOnce   sync.Once
)

func showInExpvar(c *Counters) {
	shownCounters.Store(c)
	publishOnce.Do(func() {
		for i, f := range c.families() {
			expvar.Publish(f.name, expvar.Func(func() any {
				c := shownCounters.Load()
				return c.families()[i].flat(&c.workspace)
			}))
		}
		for i, h := range c.histograms() {
			h.publish(i)
		}
		for i, one := range c.instants() {
			expvar.Publish(one.name, expvar.Func(func() any { return shownCounters.Load().instants()[i].at }))
		}
	})
}

// flat is a family as expvar shows it: a number when it has no labels, else a number by labels, as
// `workspace="wsp_1",source="USER"`.
func (f *family) flat(workspaces *labels) any {
	if len(f.labelNames()) == 0 {
		return f.sum("")
	}
	out := make(map[string]int64)
	for key, n := range f.shown(workspaces) {
		out[join(f.labelNames(), f.labelValues(key))] = n
	}
	return out
}

func join(names, values []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + `="` + values[i] + `"`
	}
	return strings.Join(parts, ",")
}

// Handler serves /metrics for Prometheus, with the figures of the Go runtime and the process. A gauge that cannot be read
// hides no other.
func (c *Counters) Handler(gauges ...prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	for _, g := range gauges {
		r.MustRegister(g)
	}
	r.MustRegister(collector{c}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// collector lets Prometheus read the counters.
type collector struct{ counters *Counters }

// Describe names every family.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range c.counters.families() {
		to <- f.desc()
	}
	for _, h := range c.counters.histograms() {
		to <- h.desc()
	}
	for _, one := range c.counters.instants() {
		to <- prometheus.NewDesc(one.name, one.help, nil, nil)
	}
}

func (f *family) desc() *prometheus.Desc {
	return prometheus.NewDesc(f.name, f.help, f.labelNames(), nil)
}

// Collect reads every series.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.counters.families() {
		desc := f.desc()
		for key, n := range f.shown(&c.counters.workspace) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), f.labelValues(key)...)
		}
	}
	for _, h := range c.counters.histograms() {
		h.collect(&c.counters.workspace, to)
	}
	for _, one := range c.counters.instants() {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(one.name, one.help, nil, nil), prometheus.GaugeValue, one.at)
	}
}
