package pgtx

import "context"

// Turn is taken by one at a time, in the order in which they ask. Transactions of one process that need the same rows take
// turns, instead of meeting at the rows' locks with a connection each. It is never taken within a transaction.
type Turn chan struct{}

// NewTurn is a turn that nobody has.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn. Who has it gives it back.
func (t Turn) Take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Give gives the turn to the next.
func (t Turn) Give() { <-t }
