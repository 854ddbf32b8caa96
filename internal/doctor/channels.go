package doctor

import (
	"context"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
)

// channels says of a workspace's notification channels whether their newest attempt was taken.
func (r *Report) channels(ctx context.Context, s *store.Store, w *ent.Workspace) {
	list, err := s.ChannelHealths(ctx, w.ID)
	if err != nil {
		r.Tell(w.Slug, domain.Check{Name: "notifications", Detail: err.Error(), Hint: "see the log of PostgreSQL"})
		return
	}
	for _, h := range list {
		r.Tell(w.Slug, channelCheck(h))
	}
}

// channelCheck is how a channel fares as a finding.
func channelCheck(h reads.ChannelHealth) domain.Check {
	c := domain.Check{Name: "notifications", OK: true}
	switch h.Outcome {
	case "":
		c.Detail, c.Hint = fmt.Sprintf("%s has not been tried", h.Name), "try it with testNotificationChannel"
	case domain.NotificationOutcomeDelivered:
		c.Detail = fmt.Sprintf("%s delivers", h.Name)
	default:
		c.OK = false
		c.Detail = fmt.Sprintf("%s does not deliver: %s", h.Name, h.Detail)
		c.Hint = "mend it with updateNotificationChannel, and look with testNotificationChannel"
	}
	if h.Pending > 0 {
		c.Detail += fmt.Sprintf("; %d notifications wait", h.Pending)
	}
	return c
}
