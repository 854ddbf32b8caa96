//go:build unix && !linux

package account

// Without /proc nobody's processes can be told apart by their owner here: an id in use is only known from the list.

func uidsOfProcesses() (map[uint32]bool, error) { return nil, nil }

func endProcessesOf(uint32, uint32) error { return nil }
