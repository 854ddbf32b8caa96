package metrics

import (
	"expvar"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"rouse.dev/rouse/internal/xid"
)

// Bounds of the histograms' buckets, rising; what is above the last is counted in +Inf.
var (
	waitBounds     = []float64{0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3600, 6 * 3600} // seconds
	durationBounds = []float64{0.1, 1, 5, 30, 120, 600, 1800, 3600, 4 * 3600}        // seconds
	costBounds     = []float64{0.001, 0.01, 0.05, 0.25, 1, 5, 25, 100}               // US dollars
	lateBounds     = []float64{0.5, 2, 5, 15, 60, 300, 3600, 24 * 3600}              // seconds
)

// histogram counts values of each workspace in buckets. Workspaces beyond the bound share one, as those of families do.
type histogram struct {
	name, help string
	bounds     []float64

	mu     sync.Mutex
	values map[xid.ID]*spread
}

// spread is what one workspace's values add up to.
type spread struct {
	counts []uint64 // one for each bound: values up to it and above the one before
	count  uint64
	sum    float64
}

func newHistogram(name, help string, bounds []float64) *histogram {
	return &histogram{name: name, help: help, bounds: bounds, values: make(map[xid.ID]*spread)}
}

func (h *histogram) observe(ws xid.ID, value float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.values[ws]
	if s == nil {
		s = &spread{counts: make([]uint64, len(h.bounds))}
		h.values[ws] = s
	}
	s.count++
	s.sum += value
	if i, _ := slices.BinarySearch(h.bounds, value); i < len(h.bounds) {
		s.counts[i]++
	}
}

// shown is the histogram as it is published, by the label of the workspace.
func (h *histogram) shown(workspaces *labels) map[string]*spread {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]*spread, len(h.values))
	for ws, s := range h.values {
		label := unattributed
		if ws != "" {
			label = workspaces.show(ws.String(), MaxWorkspaces)
		}
		sum := out[label]
		if sum == nil {
			sum = &spread{counts: make([]uint64, len(h.bounds))}
			out[label] = sum
		}
		sum.count += s.count
		sum.sum += s.sum
		for i, n := range s.counts {
			sum.counts[i] += n
		}
	}
	return out
}

// upTo counts the values up to each bound.
func (h *histogram) upTo(s *spread) map[float64]uint64 {
	out, sum := make(map[float64]uint64, len(h.bounds)), uint64(0)
	for i, bound := range h.bounds {
		sum += s.counts[i]
		out[bound] = sum
	}
	return out
}

func (h *histogram) desc() *prometheus.Desc {
	return prometheus.NewDesc(h.name, h.help, []string{"workspace"}, nil)
}

func (h *histogram) collect(workspaces *labels, to chan<- prometheus.Metric) {
	for label, s := range h.shown(workspaces) {
		to <- prometheus.MustNewConstHistogram(h.desc(), s.count, s.sum, h.upTo(s), label)
	}
}

// flat is the histogram as expvar shows it, under the names that Prometheus gives its parts.
func (h *histogram) flat(workspaces *labels) map[string]map[string]any {
	parts := map[string]map[string]any{h.name + "_bucket": {}, h.name + "_sum": {}, h.name + "_count": {}}
	for label, s := range h.shown(workspaces) {
		of := join([]string{"workspace"}, []string{label})
		parts[h.name+"_sum"][of], parts[h.name+"_count"][of] = s.sum, s.count
		up := h.upTo(s)
		for _, bound := range slices.Sorted(maps.Keys(up)) {
			le := strconv.FormatFloat(bound, 'g', -1, 64)
			parts[h.name+"_bucket"][join([]string{"workspace", "le"}, []string{label, le})] = up[bound]
		}
		parts[h.name+"_bucket"][join([]string{"workspace", "le"}, []string{label, "+Inf"})] = s.count
	}
	return parts
}

// publish shows the i-th histogram of whichever Counters are the newest.
func (h *histogram) publish(i int) {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		expvar.Publish(h.name+part, expvar.Func(func() any {
			c := shownCounters.Load()
			newest := c.histograms()[i]
			return newest.flat(&c.workspace)[newest.name+part]
		}))
	}
}
