package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gaugeLimit bounds how long a scrape waits for one gauge.
const gaugeLimit = 2 * time.Second

// Gauge is a number that is read when somebody asks for it. One that cannot be read then is not shown.
type Gauge struct {
	Name, Help string
	Read       func(context.Context) (float64, error)
}

func (g Gauge) desc() *prometheus.Desc { return prometheus.NewDesc(g.Name, g.Help, nil, nil) }

// Describe names it.
func (g Gauge) Describe(to chan<- *prometheus.Desc) { to <- g.desc() }

// Collect reads it.
func (g Gauge) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), gaugeLimit)
	defer cancel()
	if n, err := g.Read(ctx); err == nil {
		to <- prometheus.MustNewConstMetric(g.desc(), prometheus.GaugeValue, n)
	}
}
