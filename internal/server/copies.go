package server

import (
	"context"
	"time"

	"rouse.dev/rouse/internal/executor"
)

// copies sweeps the working copies below this server's work folder.
type copies struct {
	command *executor.Command
	keeper  executor.CopyKeeper
}

// SweepCopies is one pass.
func (c copies) SweepCopies(ctx context.Context) error {
	return c.command.SweepCopies(ctx, c.keeper, time.Now())
}
