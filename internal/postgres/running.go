package postgres

import (
	"path/filepath"
)

// RunningURL is the address of a database of the cluster in dir while its server runs, for programs beside the one that
// started it. ok is false when no server runs there, or when this account may not look. "" means the database rouse.
func RunningURL(dir, database string) (address string, ok bool) {
	c, err := newCluster(Options{Dir: dir, Database: database})
	if err != nil {
		return "", false
	}
	p, ok := left(filepath.Join(c.dir, "data"))
	if !ok || p.socket == "" {
		return "", false
	}
	c.socket.path = p.socket
	return c.URL(c.options.Database), true
}
