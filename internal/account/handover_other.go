//go:build unix && !linux

package account

import "os"

// Handed counts what a handover did.
type Handed struct{ Entries, Left int }

// HandOver gives a folder to another account. What is in it stays: here no handle tells what a name stands for meanwhile.
func HandOver(path string, uid, gid uint32) (Handed, error) {
	return Handed{Entries: 1}, os.Lchown(path, int(uid), int(gid))
}
