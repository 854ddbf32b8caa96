// Package ent is the generated, typed access to PostgreSQL. Only schema/, template/, entc.go, migrate.go and this file are
// written by hand.
package ent

//go:generate go run -mod=mod entc.go
