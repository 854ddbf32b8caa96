// Package archtest holds the import rules of docs/architecture.md as a test: table_test.go is the rules, arch_test.go reads
// the source and compares. It has no code of its own.
package archtest
