package doctor

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/reads"
)

func TestTheDoctorSaysWhichChannelsDeliver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		health reads.ChannelHealth
		ok     bool
		detail string
		hint   string
	}{
		{"a new one", reads.ChannelHealth{Name: "Phone"}, true, "Phone has not been tried", "testNotificationChannel"},
		{"one that delivers", reads.ChannelHealth{Name: "Phone", Outcome: domain.NotificationOutcomeDelivered}, true, "Phone delivers", ""},
		{"one whose newest attempt failed", reads.ChannelHealth{Name: "Phone", Outcome: domain.NotificationOutcomeRetried, Detail: "no", Pending: 3}, false, "Phone does not deliver: no; 3 notifications wait", "updateNotificationChannel"},
		{"one that gave up", reads.ChannelHealth{Name: "Phone", Outcome: domain.NotificationOutcomeGaveUp, Detail: "no"}, false, "Phone does not deliver: no", "updateNotificationChannel"},
	} {
		if got := channelCheck(c.health); got.OK != c.ok || got.Detail != c.detail || !strings.Contains(got.Hint, c.hint) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
