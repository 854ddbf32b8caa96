//go:build race

package main

func init() { buildFlags = append(buildFlags, "-race") } // the program under test is watched, too
