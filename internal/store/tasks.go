package store

// Tasks is the board: tasks, their steps, blockers, comments and approvals, and the wakes that follow from a change.
type Tasks struct{ *Queue }
