package store

// Routines is schedules and webhooks, and the fires they lead to.
type Routines struct{ *Tasks }
