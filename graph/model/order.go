package model

import "entgo.io/contrib/entgql"

// RunOrderField is what runs are ordered by.
type RunOrderField string

// The orders of runs.
const (
	RunOrderFieldRequestedAt RunOrderField = "REQUESTED_AT"
	RunOrderFieldFinishedAt  RunOrderField = "FINISHED_AT"
	RunOrderFieldDuration    RunOrderField = "DURATION"
	RunOrderFieldCost        RunOrderField = "COST"
)

// RunOrder is an order of runs.
type RunOrder struct {
	Direction entgql.OrderDirection
	Field     RunOrderField
}

// RoutineOrderField is what routines are ordered by.
type RoutineOrderField string

// The orders of routines.
const (
	RoutineOrderFieldCreatedAt  RoutineOrderField = "CREATED_AT"
	RoutineOrderFieldName       RoutineOrderField = "NAME"
	RoutineOrderFieldNextFireAt RoutineOrderField = "NEXT_FIRE_AT"
	RoutineOrderFieldLastRunAt  RoutineOrderField = "LAST_RUN_AT"
)

// RoutineOrder is an order of routines.
type RoutineOrder struct {
	Direction entgql.OrderDirection
	Field     RoutineOrderField
}

// AgentOrderField is what agents are ordered by.
type AgentOrderField string

// The orders of agents.
const (
	AgentOrderFieldCreatedAt    AgentOrderField = "CREATED_AT"
	AgentOrderFieldName         AgentOrderField = "NAME"
	AgentOrderFieldLastActiveAt AgentOrderField = "LAST_ACTIVE_AT"
)

// AgentOrder is an order of agents.
type AgentOrder struct {
	Direction entgql.OrderDirection
	Field     AgentOrderField
}
