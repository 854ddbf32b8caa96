package store

// Attempts is the life of one claimed run: its start, its reports, its end, and its rescue.
type Attempts struct {
	*Routines
	finishers finishers
}
