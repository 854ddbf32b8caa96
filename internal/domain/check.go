package domain

// Check is one thing that was looked at, for a person: whether an executor works, or an installation.
type Check struct {
	Name   string
	OK     bool
	Detail string // what was found
	Hint   string // what to do; "" when there is nothing
}
