// Package migrations holds the versioned SQL that leads from an empty database to ent/schema, embedded in the program
// and applied at start.
package migrations

import "embed"

// FS holds one goose file for each migration, in order of its name.
//
//go:embed *.sql
var FS embed.FS
