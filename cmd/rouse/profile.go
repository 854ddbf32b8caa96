//go:build profile

package main

import (
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
)

// A program that is built with -tags profile shows at an address of this machine where its time goes and what it waits for. The
// benchmarks build it so when ROUSE_BENCH_PPROF names a folder; a program that people get has none of this.
func init() {
	address := os.Getenv("ROUSE_PROFILE_ADDR")
	if address == "" {
		return
	}
	runtime.SetBlockProfileRate(10_000) // ns: shorter waits are sampled
	runtime.SetMutexProfileFraction(10)
	mux := http.NewServeMux()
	mux.HandleFunc("/", pprof.Index)
	mux.HandleFunc("/profile", pprof.Profile)
	mux.HandleFunc("/trace", pprof.Trace)
	go func() { panic(http.ListenAndServe(address, mux)) }() //nolint:gosec // for a benchmark on this machine, and ended with it
}
