package model

import "rouse.dev/rouse/ent"

// Activity is a row of the feed.
type Activity struct{ *ent.Activity }

// InboxItem is a row of the inbox.
type InboxItem struct{ *ent.InboxItem }

// IsNode marks a member of interface Node.
func (*Activity) IsNode() {}

// IsNode marks a member of interface Node.
func (*InboxItem) IsNode() {}

// Actor is who did something: an *ent.Agent, a *UserActor or a *SystemActor.
type Actor any
