package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/xid"
)

// channel makes a webhook channel that tells of failed runs; change adjusts it.
func (w *world) channel(name string, change ...func(*CreateNotificationChannel)) xid.ID {
	w.Helper()
	in := CreateNotificationChannel{WorkspaceID: w.workspace, ID: xid.New("nch"), Name: name, Enabled: true, Wishes: domain.NotificationWishes{RunFailures: true},
		Target: domain.NotificationTarget{Webhook: &domain.WebhookTarget{URL: "https://example.com", Secret: "s1.old", Hint: "abcd"}}}
	for _, f := range change {
		f(&in)
	}
	made, err := w.CreateNotificationChannel(w.Context(), in)
	return must(w, made, err).ID
}

func telling(wishes domain.NotificationWishes) func(*CreateNotificationChannel) {
	return func(in *CreateNotificationChannel) { in.Wishes = wishes }
}

// failedRun makes a run of an agent fail for good.
func (w *world) failedRun(agent xid.ID) xid.ID {
	w.Helper()
	w.wake(agent)
	c := w.claimOne()
	w.start(c)
	w.ok(w.Fail(w.Context(), c.Attempt, Failure{Code: domain.RunErrorCodeCrash, Message: "no way", Permanent: true}))
	return c.RunID
}

// noted are the notifications of a channel, oldest first, as "event kind subject status".
func (w *world) noted(channel xid.ID) []string {
	return w.texts(`SELECT concat_ws(' ', event, NULLIF(inbox_kind, ''), subject_id, status) FROM notifications WHERE channel_id = $1 ORDER BY created_at, id`, channel)
}

func (w *world) claimNotices() []DueNotice {
	w.Helper()
	due, err := w.ClaimNotices(w.Context(), 16)
	return must(w, due, err)
}

func (w *world) noticesDue() {
	w.sql(`UPDATE notifications SET due_at = clock_timestamp() - interval '1 second'`)
}

func TestAFailedRunIsNotedForWhoAsksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	both := w.channel("both", telling(domain.NotificationWishes{RunFailures: true, InboxKinds: []domain.InboxKind{domain.InboxKindAgentError}}))
	items := w.channel("items", telling(domain.NotificationWishes{InboxKinds: []domain.InboxKind{domain.InboxKindAgentError}}))
	others := w.channel("others", telling(domain.NotificationWishes{InboxKinds: []domain.InboxKind{domain.InboxKindBudgetAlert}, VerdictChanges: true}))
	off := w.channel("off", func(in *CreateNotificationChannel) { in.Enabled = false })
	gone := w.channel("gone")
	w.ok(w.DeleteNotificationChannel(t.Context(), w.workspace, gone))
	run := w.failedRun(agent)
	for channel, want := range map[xid.ID][]string{both: {"RUN_FAILED AGENT_ERROR " + string(run) + " PENDING"}, items: {"INBOX_ITEM AGENT_ERROR " + string(run) + " PENDING"}, others: nil, off: nil, gone: nil} {
		if got := w.noted(channel); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", one[string](w, `SELECT name FROM notification_channels WHERE id = $1`, channel), got, want)
		}
	}
	due := w.claimNotices()
	if len(due) != 2 || due[0].Title != "agent.error: a run of Ada gave up" || due[0].Body != "no way" || due[0].WorkspaceName != "Test" || due[0].SubjectID != run || due[0].Attempt != 1 || due[0].Target.Webhook == nil {
		t.Errorf("claimed %+v", due)
	}
	if _, err := xid.Parse(string(due[0].ID)); err != nil || due[0].ID.Prefix() != "ntf" {
		t.Errorf("the id %s: %v", due[0].ID, err)
	}
}

// The statement that notes items agrees with the rule, for each kind and all wishes.
func TestWhatIsNotedIsWhatTheRuleSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wishes := map[xid.ID]domain.NotificationWishes{}
	for i, list := range [][]domain.InboxKind{nil, {domain.InboxKindAgentError, domain.InboxKindNotificationFailed}, {domain.InboxKindBudgetAlert}} {
		for _, failures := range []bool{false, true} {
			wish := domain.NotificationWishes{InboxKinds: list, RunFailures: failures, VerdictChanges: true}
			wishes[w.channel(fmt.Sprint(i, failures), telling(wish))] = wish
		}
	}
	for _, kind := range domain.InboxKind("").Values() {
		for channel := range wishes {
			w.ok(w.Records.inTx(t.Context(), func(t *tx) error {
				return t.inbox(w.Context(), item{workspaceID: w.workspace, kind: domain.InboxKind(kind), title: kind, dedupe: kind + string(channel), subject: channel, causationID: "cau"})
			}))
		}
	}
	for channel, wish := range wishes {
		var want []string
		for _, kind := range domain.InboxKind("").Values() {
			for about := range wishes {
				if event, wants := wish.Wants(domain.InboxKind(kind), channel, about); wants {
					want = append(want, strings.Join([]string{string(event), kind, string(about), "PENDING"}, " "))
				}
			}
		}
		got := w.noted(channel)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: noted\n%v\nthe rule says\n%v", wish, got, want)
		}
	}
}

// A cause that is rolled back is not told; one that commits is, in the same transaction.
func TestTheOutboxGoesWithItsCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.channel("all", telling(domain.NotificationWishes{InboxKinds: []domain.InboxKind{domain.InboxKindBudgetAlert}}))
	undone := errors.New("undone")
	tell := func(end error) error {
		return w.Records.inTx(t.Context(), func(t *tx) error {
			if err := t.inbox(w.Context(), item{workspaceID: w.workspace, kind: domain.InboxKindBudgetAlert, title: "spent", dedupe: "key", causationID: "cau"}); err != nil {
				return err
			}
			return end
		})
	}
	if err := tell(undone); !errors.Is(err, undone) || len(w.noted(channel)) != 0 {
		t.Errorf("%v; noted %v", err, w.noted(channel))
	}
	w.ok(tell(nil))
	w.ok(tell(nil)) // the item is open: nothing happened
	if got := w.noted(channel); len(got) != 1 {
		t.Errorf("noted %v", got)
	}
}

// Several processes claim at once: each notification is one process's, and few of a channel at a time.
func TestANotificationIsOneProcesssAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy, quiet := w.channel("busy"), w.channel("quiet")
	w.sql(`INSERT INTO notifications (id, workspace_id, channel_id, cause, event, title) SELECT 'ntf_' || i, $1, $2, i::text, 'RUN_FAILED', 'x' FROM generate_series(1, 30) i`, w.workspace, busy)
	w.sql(`INSERT INTO notifications (id, workspace_id, channel_id, cause, event, title) VALUES ('ntf_quiet', $1, $2, 'q', 'RUN_FAILED', 'x')`, w.workspace, quiet)
	if due := w.claimNotices(); len(due) != noticesPerChannel+1 {
		t.Errorf("claimed %d of a busy channel and a quiet one", len(due))
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[xid.ID]int{}
	for range 4 {
		all.Go(func() {
			for range 10 {
				due, err := w.ClaimNotices(t.Context(), 16)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, d := range due {
					seen[d.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != 30-noticesPerChannel {
		t.Errorf("%d notifications were claimed, want the other %d", len(seen), 30-noticesPerChannel)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

func TestANotificationIsTriedAgainAndGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.channel("broken")
	other := w.channel("other", telling(domain.NotificationWishes{InboxKinds: []domain.InboxKind{domain.InboxKindNotificationFailed}}))
	w.failedRun(w.agent("Ada"))
	for attempt := 1; attempt <= retry.MaxDeliveries; attempt++ {
		due := w.claimNotices()
		if len(due) != 1 || due[0].Attempt != attempt {
			t.Fatalf("attempt %d: claimed %+v", attempt, due)
		}
		if more := w.claimNotices(); len(more) != 0 {
			t.Errorf("attempt %d: claimed twice: %+v", attempt, more)
		}
		w.ok(w.NoticeSent(t.Context(), due[0], Sent{Status: 500, Detail: "the receiver answered 500", Took: time.Second}))
		if more := w.claimNotices(); attempt < retry.MaxDeliveries && len(more) != 0 {
			t.Errorf("attempt %d: tried again at once", attempt)
		}
		if attempt < retry.MaxDeliveries {
			w.noticesDue()
		}
	}
	if got := w.noted(channel); len(got) != 1 || !strings.HasSuffix(got[0], "FAILED") {
		t.Errorf("noted %v", got)
	}
	log := w.texts(`SELECT concat_ws(' ', attempt, outcome, status, detail, took_ms, next_attempt_at IS NOT NULL) FROM notification_deliveries WHERE channel_id = $1 ORDER BY created_at, id`, channel)
	if len(log) != retry.MaxDeliveries || log[0] != "1 RETRIED 500 the receiver answered 500 1000 t" || log[len(log)-1] != fmt.Sprintf("%d GAVE_UP 500 the receiver answered 500 1000 f", retry.MaxDeliveries) {
		t.Errorf("the log has %q", log)
	}
	if items := w.texts(`SELECT title FROM inbox_items WHERE kind = 'NOTIFICATION_FAILED' AND subject_id = $1`, channel); len(items) != 1 || items[0] != "The notification channel broken does not deliver" {
		t.Errorf("the inbox has %q", items)
	}
	if got := w.noted(other); len(got) != 1 || got[0] != "INBOX_ITEM NOTIFICATION_FAILED "+string(channel)+" PENDING" {
		t.Errorf("the other channel is told %v", got)
	}
	w.ok(w.NotificationChannelTested(t.Context(), channel, domain.TestNotice("ndl_x", w.workspace, "Test", "broken", time.Now()), Sent{Delivered: retry.Delivered{OK: true}, Status: 200}))
	if open := one[int](w, `SELECT count(*) FROM inbox_items WHERE subject_id = $1 AND resolved_at IS NULL`, channel); open != 0 {
		t.Error("a channel that delivers again is still in the inbox")
	}
}

// A process that is killed between the sending and the record leaves the notification to the next, under the same id; what it
// says late changes nothing but the log.
func TestAKillBetweenSendAndRecordRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.channel("hook")
	w.failedRun(w.agent("Ada"))
	lost := w.claimNotices()
	if more := w.claimNotices(); len(lost) != 1 || len(more) != 0 {
		t.Fatalf("claimed %d and %d", len(lost), len(more))
	}
	w.noticesDue() // its lease has run out
	again := w.claimNotices()
	if len(again) != 1 || again[0].ID != lost[0].ID || again[0].Attempt != 2 {
		t.Fatalf("claimed again %+v", again)
	}
	w.ok(w.NoticeSent(t.Context(), lost[0], Sent{Status: 500, Detail: "late"}))
	w.ok(w.NoticeSent(t.Context(), again[0], Sent{Delivered: retry.Delivered{OK: true}, Status: 204}))
	if got := w.noted(channel); !strings.HasSuffix(got[0], "DELIVERED") {
		t.Errorf("noted %v", got)
	}
	w.noticesDue()
	if more := w.claimNotices(); len(more) != 0 {
		t.Errorf("delivered, and claimed again: %+v", more)
	}
}

func TestAVerdictIsToldOnceWhenItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.channel("verdicts", telling(domain.NotificationWishes{VerdictChanges: true}))
	w.channel("others")
	began := time.Now()
	see := func(verdict domain.LoopVerdict, after time.Duration) (told int) {
		told, err := w.TellVerdict(context.WithoutCancel(t.Context()), VerdictSeen{w.workspace, verdict, began.Add(after)})
		return must(w, told, err)
	}
	if told := see(domain.LoopVerdictHealthy, 0); told != 0 {
		t.Error("the first verdict that it learns is told")
	}
	var all sync.WaitGroup
	counts := make([]int, 4)
	for i := range counts { // as many processes, which judged at about the same time
		all.Go(func() { counts[i] = see(domain.LoopVerdictDead, time.Minute+time.Duration(i)*time.Millisecond) })
	}
	all.Wait()
	if slices.Max(counts) != 1 || counts[0]+counts[1]+counts[2]+counts[3] != 1 {
		t.Errorf("told %v times", counts)
	}
	if told := see(domain.LoopVerdictHealthy, time.Second); told != 0 {
		t.Error("an older verdict is told")
	}
	if told := see(domain.LoopVerdictHealthy, 2*time.Minute); told != 1 {
		t.Error("the next change is not told")
	}
	if got := w.texts(`SELECT title FROM notifications WHERE channel_id = $1 ORDER BY created_at`, channel); !slices.Equal(got, []string{"The loop of workspace Test is DEAD, it was HEALTHY", "The loop of workspace Test is HEALTHY, it was DEAD"}) {
		t.Errorf("told %q", got)
	}
	if watchers, err := w.VerdictWatchers(t.Context()); err != nil || !slices.Equal(watchers, []xid.ID{w.workspace}) {
		t.Errorf("watchers %v, %v", watchers, err)
	}
	w.ok(w.UpdateNotificationChannel(t.Context(), UpdateNotificationChannel{WorkspaceID: w.workspace, ChannelID: channel, Enabled: domain.To(false)}))
	if told := see(domain.LoopVerdictDead, 3*time.Minute); told != 0 {
		t.Error("a channel that is switched off is told")
	}
	w.ok(w.UpdateNotificationChannel(t.Context(), UpdateNotificationChannel{WorkspaceID: w.workspace, ChannelID: channel, Enabled: domain.To(true)}))
	if told := see(domain.LoopVerdictDead, 4*time.Minute); told != 0 {
		t.Error("a channel that is switched on again is told of what it missed")
	}
}

func TestChannelsAreChangedAndRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.channel("hook")
	code := func(err error) domain.UserErrorCode {
		problem, ok := errors.AsType[*domain.UserError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		return problem.Problems[0].Code
	}
	update := func(change func(*UpdateNotificationChannel)) error {
		in := UpdateNotificationChannel{WorkspaceID: w.workspace, ChannelID: id}
		change(&in)
		return w.UpdateNotificationChannel(t.Context(), in)
	}
	for name, c := range map[string]struct {
		err  error
		want domain.UserErrorCode
	}{
		"another revision":   {update(func(u *UpdateNotificationChannel) { u.ExpectedRevision = new(7) }), domain.UserErrorCodeConflict},
		"nothing to tell of": {update(func(u *UpdateNotificationChannel) { u.RunFailures = domain.To(false) }), domain.UserErrorCodeRequired},
		"no target":          {update(func(u *UpdateNotificationChannel) { u.Target.Set = true }), domain.UserErrorCodeRequired},
		"another kind": {update(func(u *UpdateNotificationChannel) {
			u.Target = domain.To(domain.NotificationTarget{Slack: &domain.PostTarget{URL: "s1.x"}})
		}), domain.UserErrorCodeInvalid},
		"a channel that is not there": {update(func(u *UpdateNotificationChannel) { u.ChannelID = "nch_none" }), domain.UserErrorCodeNotFound},
		"a foreign channel":           {update(func(u *UpdateNotificationChannel) { u.WorkspaceID = "wsp_other" }), domain.UserErrorCodeNotFound},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	w.ok(update(func(*UpdateNotificationChannel) {}))
	if revision := one[int](w, `SELECT revision FROM notification_channels WHERE id = $1`, id); revision != 1 {
		t.Errorf("a change of nothing made revision %d", revision)
	}
	w.ok(update(func(u *UpdateNotificationChannel) {
		u.Name = domain.To("other")
		u.Target = domain.To(domain.NotificationTarget{Webhook: &domain.WebhookTarget{URL: "https://b.example.com"}})
	}))
	if got := one[string](w, `SELECT concat_ws(' ', name, target->'webhook'->>'url', target->'webhook'->>'secret', revision) FROM notification_channels WHERE id = $1`, id); got != "other https://b.example.com s1.old 2" {
		t.Errorf("changed to %s", got)
	}
	w.failedRun(w.agent("Ada"))
	w.ok(w.DeleteNotificationChannel(t.Context(), w.workspace, id))
	if got := one[string](w, `SELECT concat_ws(' ', c.target, n.status) FROM notification_channels c JOIN notifications n ON n.channel_id = c.id WHERE c.id = $1`, id); got != "{} FAILED" {
		t.Errorf("a deleted channel has %s", got)
	}
	if err := w.DeleteNotificationChannel(t.Context(), w.workspace, id); code(err) != domain.UserErrorCodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
	for i := range domain.MaxNotificationChannels {
		w.channel(fmt.Sprint("n", i))
	}
	in := CreateNotificationChannel{WorkspaceID: w.workspace, ID: xid.New("nch"), Name: "one too many", Wishes: domain.NotificationWishes{RunFailures: true}, Target: domain.NotificationTarget{Webhook: &domain.WebhookTarget{}}}
	if _, err := w.CreateNotificationChannel(t.Context(), in); code(err) != domain.UserErrorCodeTooLong {
		t.Errorf("one too many: %v", err)
	}
}

func TestOldNotificationsAreRemovedWithTheirLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	channel := w.channel("hook")
	w.sql(`INSERT INTO notifications (id, workspace_id, channel_id, cause, event, title, status, ended_at, created_at)
SELECT 'ntf_' || i, $1, $2, i::text, 'RUN_FAILED', 'x', CASE WHEN i > 300 THEN 'PENDING' ELSE 'DELIVERED' END, CASE WHEN i <= 300 THEN now() - interval '40 days' - i * interval '1 minute' END, now() - interval '40 days' FROM generate_series(1, 310) i`, w.workspace, channel)
	w.sql(`INSERT INTO notification_deliveries (id, workspace_id, channel_id, notification_id, event, title, attempt, outcome, created_at)
SELECT 'ndl_' || id, workspace_id, channel_id, id, event, title, 1, 'DELIVERED', created_at FROM notifications`)
	w.sql(`INSERT INTO notification_deliveries (id, workspace_id, channel_id, event, title, attempt, outcome, created_at)
SELECT 'ndl_test' || i, $1, $2, 'TEST', 'x', 1, 'DELIVERED', now() - interval '50 days' - i * interval '1 minute' FROM generate_series(1, 5) i`, w.workspace, channel)
	removed := w.prune(keepAMonth)
	if removed.Notifications != 250 || removed.NotificationTests != 5 {
		t.Errorf("removed %+v", removed)
	}
	if left := one[string](w, `SELECT (SELECT count(*) FROM notifications) || ' ' || (SELECT count(*) FROM notification_deliveries)`); left != "60 60" {
		t.Errorf("left %s", left)
	}
}
