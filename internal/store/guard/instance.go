package guard

// FactActivation names the instant from which terminal shapes are recorded: written once, by the first boot after the
// migration that brought the columns (SPEC S10.1).
const FactActivation = "activation"

// FactScheduler names when a scheduler last gave a sign of life.
const FactScheduler = "scheduler_seen"
