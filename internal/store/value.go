package store

import "rouse.dev/rouse/internal/xid"

// btoi is 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keys are the ids of a map, in no order.
func keys[T any](m map[xid.ID]T) []xid.ID {
	list := make([]xid.ID, 0, len(m))
	for id := range m {
		list = append(list, id)
	}
	return list
}
