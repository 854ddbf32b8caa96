// Package archtest compares the repository with its own pages: who may import whom (table_test.go), which tests show which
// criteria, scenarios and rows of docs/security.md, and that everything cited by number exists. Its exported functions find
// the facts, and its tests judge them.
package archtest
