package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// profilesVariable names a folder: benchmarks of the program then build it with -tags profile and leave there what `go tool pprof`
// reads. It costs some time, so that the figures of such a run are no figures.
const profilesVariable = "ROUSE_BENCH_PPROF"

// profileFlags are what the program is built with beside.
func profileFlags() []string {
	if os.Getenv(profilesVariable) == "" {
		return nil
	}
	return []string{"-tags", "profile"}
}

// profileEnv lets a program show its profiles at an address of its own; "" and nothing when they are not wanted.
func profileEnv(b *testing.B) (address string, env []string) {
	b.Helper()
	if os.Getenv(profilesVariable) == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	address = l.Addr().String()
	return address, []string{"ROUSE_PROFILE_ADDR=" + address}
}

// profile takes the profile of the processor's time from now on for as long, and those of waits when what it returns is called.
func profile(b *testing.B, address, name string, length time.Duration) (end func()) {
	b.Helper()
	if address == "" {
		return func() {}
	}
	get := func(path, kind string) error {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		file, err := os.Create(filepath.Join(os.Getenv(profilesVariable), name+"."+kind))
		if err != nil {
			return err
		}
		_, err = io.Copy(file, resp.Body)
		return cmp.Or(err, file.Close())
	}
	var processor error
	var taking sync.WaitGroup
	taking.Go(func() { processor = get(fmt.Sprintf("/profile?seconds=%d", int(length.Seconds())), "cpu") })
	return func() {
		taking.Wait()
		for _, kind := range []string{"block", "mutex", "heap", "allocs"} {
			if err := cmp.Or(processor, get("/debug/pprof/"+kind, kind)); err != nil {
				b.Error(err)
			}
		}
	}
}
