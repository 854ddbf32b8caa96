// Package queuebench measures what docs/performance.md says of the queue, on a cluster of its own that is as durable as
// the program's: `make bench-queue`. Machines differ and are shared, so figures are ratios to what PostgreSQL's own
// pgbench did on the same cluster in the same minute.
package queuebench
