package domain

// ScopeTaskless is the scope of wakes that are neither about a task nor a lightweight fire (SPEC S3.4).
const ScopeTaskless = "taskless"

// TaskScope is the scope of wakes about one task. A scope says what may be merged with what for one agent; it is set
// when a row is inserted and kept by re-sends.
func TaskScope(taskID string) string { return "task:" + taskID }

// RoutineScope is the scope of the lightweight fires of one routine.
func RoutineScope(routineID string) string { return "routine:" + routineID }

// FireScope is the scope of one lightweight fire under ALWAYS_ENQUEUE, which is never merged with another.
func FireScope(routineRunID string) string { return "fire:" + routineRunID }

// WakeScope is the scope of every wake that is not a lightweight fire: its task's scope when the source is task-bound,
// else the common taskless one.
func WakeScope(source WakeupSource, taskID string) string {
	if source.TaskBound() {
		return TaskScope(taskID)
	}
	return ScopeTaskless
}

// TaskBound says whether wakes of this source are about a task (SPEC S3.1).
func (v WakeupSource) TaskBound() bool {
	switch v {
	case WakeupSourceComment, WakeupSourceTaskAssigned, WakeupSourceTaskBlockersResolved, WakeupSourceTaskChildrenCompleted:
		return true
	}
	return false
}
