//go:build ignore

// Command hash writes atlas.sum anew after a migration was written by hand: go run -mod=mod hash.go
package main

import (
	"log"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
)

func main() {
	dir, err := sqltool.NewGooseDir("../internal/store/migrations")
	if err != nil {
		log.Fatalf("open migrations: %v", err)
	}
	sum, err := dir.Checksum()
	if err != nil {
		log.Fatalf("sum migrations: %v", err)
	}
	if err := migrate.WriteSumFile(dir, sum); err != nil {
		log.Fatalf("write atlas.sum: %v", err)
	}
}
