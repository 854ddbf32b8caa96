package store

// Records is what people set up (workspaces, agents, projects, tokens), and the upkeep of the rows.
type Records struct {
	*Attempts
	orphans orphanWalk
	costs   costWalk
}
