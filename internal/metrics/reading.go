package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// readingsLimit bounds how long a scrape waits for the readings.
const readingsLimit = 5 * time.Second

// Readings are gauges with labels that are read together when somebody asks for them.
type Readings struct {
	Kinds []ReadingKind
	// Read gives what is known by the time that its context ends, and shows nothing of what is not.
	Read func(context.Context) []Reading
}

// ReadingKind is one of the gauges.
type ReadingKind struct {
	Name, Help string
	Labels     []string
}

// Reading is one value of a gauge, with its labels' values in their order.
type Reading struct {
	Name   string
	Labels []string
	Value  float64
}

// Describe names them.
func (r Readings) Describe(to chan<- *prometheus.Desc) {
	for _, kind := range r.Kinds {
		to <- kind.desc()
	}
}

func (k ReadingKind) desc() *prometheus.Desc {
	return prometheus.NewDesc(k.Name, k.Help, k.Labels, nil)
}

// Collect reads them.
func (r Readings) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readingsLimit)
	defer cancel()
	descs := make(map[string]*prometheus.Desc, len(r.Kinds))
	for _, kind := range r.Kinds {
		descs[kind.Name] = kind.desc()
	}
	for _, one := range r.Read(ctx) {
		metric, err := prometheus.NewConstMetric(descs[one.Name], prometheus.GaugeValue, one.Value, one.Labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(descs[one.Name], err)
		}
		to <- metric
	}
}
