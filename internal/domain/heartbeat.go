package domain

// The routine that is installed with a coordinator (SPEC S4.11).
const (
	HeartbeatCron = "*/5 * * * *"
	HeartbeatText = "Wakes the coordinator every 5 minutes to check workspace activity, react to errors and budget signals, and decide what to do next."
	heartbeatName = "Coordinator heartbeat"
)

// HeartbeatName is what the routine is called; with the agent's name where another routine has the plain one.
func HeartbeatName(agent string) string {
	if agent == "" {
		return heartbeatName
	}
	return FirstRunes(heartbeatName+" of "+agent, maxName)
}
