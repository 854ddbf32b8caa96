//go:build race

package modeltest

const raced = true // by the race detector
