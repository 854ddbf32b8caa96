package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

const (
	// noticesPerClaim is how many notifications a pass takes at a time, noticeSenders how many it sends at once.
	noticesPerClaim = 16
	noticeSenders   = 4
)

// notices is what the loop that tells people asks of the store.
type notices interface {
	ClaimNotices(ctx context.Context, most int) ([]store.DueNotice, error)
	NoticeSent(ctx context.Context, d store.DueNotice, sent store.Sent) error
}

// Sender makes one attempt to deliver a notice to a channel. It takes no longer than the lease of a claim allows.
type Sender interface {
	Send(ctx context.Context, channelID xid.ID, target domain.NotificationTarget, n domain.Notice) store.Sent
}

// notifier delivers what is noted in the outbox.
type notifier struct {
	store  notices
	sender Sender
	log    *slog.Logger
}

// runOnce claims and sends until nothing is due. What a kill leaves between the two is due again when its lease ends, and the
// receiver knows it by its id.
func (n *notifier) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	var problems failures
	for !closed(enough) {
		due, err := n.store.ClaimNotices(ctx, noticesPerClaim)
		if err != nil || len(due) == 0 {
			problems.add(err)
			return 0, problems.err()
		}
		problems.add(n.sendAll(ctx, due))
	}
	return soonest, problems.err()
}

func (n *notifier) sendAll(ctx context.Context, due []store.DueNotice) error {
	waiting := make(chan store.DueNotice, len(due))
	for _, d := range due {
		waiting <- d
	}
	close(waiting)
	var all sync.WaitGroup
	var mu sync.Mutex
	var problems failures
	for range min(noticeSenders, len(due)) {
		all.Go(func() {
			for d := range waiting {
				sent := n.sender.Send(ctx, d.ChannelID, d.Target, d.Notice)
				if !sent.OK {
					n.log.Warn("a notification was not delivered", "notification_id", d.ID, "channel_id", d.ChannelID, "workspace_id", d.WorkspaceID, "attempt", d.Attempt, "status", sent.Status, "detail", sent.Detail)
				}
				if err := n.store.NoticeSent(ctx, d, sent); err != nil {
					mu.Lock()
					problems.add(fmt.Errorf("notification %s: %w", d.ID, err))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return problems.err()
}

// verdictTeller notes changes of the verdict for channels that tell of them.
type verdictTeller struct {
	store interface {
		VerdictWatchers(ctx context.Context) ([]xid.ID, error)
		TellVerdict(ctx context.Context, seen store.VerdictSeen) (told int, err error)
	}
	judge Judge
	wake  func() // lets the notifier look
}

// Judge reads the verdict on a workspace's loop.
type Judge interface {
	Liveness(ctx context.Context, workspaceID xid.ID) (*reads.Liveness, error)
}

func (v *verdictTeller) runOnce(ctx context.Context, enough <-chan struct{}) (time.Duration, error) {
	var problems failures
	watched, err := v.store.VerdictWatchers(ctx)
	problems.add(err)
	for _, workspaceID := range watched {
		if closed(enough) {
			break
		}
		problems.add(v.look(ctx, workspaceID))
	}
	return 0, problems.err()
}

func (v *verdictTeller) look(ctx context.Context, workspaceID xid.ID) error {
	l, err := v.judge.Liveness(ctx, workspaceID)
	if err != nil {
		return fmt.Errorf("judge the loop of %s: %w", workspaceID, err)
	}
	told, err := v.store.TellVerdict(ctx, store.VerdictSeen{WorkspaceID: workspaceID, Verdict: l.Verdict, At: l.EvaluatedAt})
	if told > 0 {
		v.wake()
	}
	return err
}
