// Package postgres looks after the database itself: it finds the server's programs, runs a private cluster in a data
// folder, opens connections and applies migrations. It knows nothing of what the tables mean.
package postgres
