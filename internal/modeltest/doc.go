// Package modeltest compares the queue, tasks and budgets with a model of them: random sequences of transitions on real PostgreSQL. One after
// another they must leave the rows that the model says, step by step; eight at a time they must keep what always holds.
// A failure prints its seed: ROUSE_MODEL_SEED repeats it.
package modeltest
