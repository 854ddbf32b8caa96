package webhook

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type deaf struct{}

func (deaf) Publish(...event.Event) {}

// world is the endpoint on a database of its own, with one agent.
type world struct {
	t                *testing.T
	db               *sql.DB
	store            *store.Store
	box              *secret.Box
	url              string
	workspace, agent xid.ID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	key, err := secret.LoadKey("", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	box, err := secret.NewBox(key)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	w := &world{t: t, db: pgtest.New(t), box: box}
	w.store = store.New(w.db, store.Options{Events: deaf{}, Counters: metrics.New(), Log: log, Jitter: func() float64 { return 0 }})
	mux := http.NewServeMux()
	h := New(w.store.Routines, box, nil, log)
	h.accepted.length, h.rejected.length = 0, 0 // tests move deliveries to another minute, and the process's clock stays
	mux.Handle(Path, h)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.url = server.URL
	made, err := w.store.CreateWorkspace(t.Context(), store.CreateWorkspace{Name: "Test"})
	w.ok(err)
	w.workspace = made.ID
	made, err = w.store.CreateAgent(t.Context(), store.CreateAgent{WorkspaceID: w.workspace, Name: "Ada", Role: domain.AgentRoleWorker, MaxConcurrentSessions: 1})
	w.ok(err)
	w.agent = made.ID
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sql(query string, args ...any) {
	w.t.Helper()
	_, err := w.db.ExecContext(w.t.Context(), query, args...)
	w.ok(err)
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	w.ok(w.db.QueryRowContext(w.t.Context(), query, args...).Scan(&n))
	return n
}

// hook is a webhook trigger and the routine it fires.
type hook struct{ routine, trigger, path string }

// hook makes a routine with a webhook; secret "" asks for no proof.
func (w *world) hook(mode domain.SigningMode, secret string, change func(*store.CreateRoutine)) hook {
	w.t.Helper()
	spec := store.TriggerSpec{ID: store.NewTriggerID(domain.TriggerKindWebhook), Kind: domain.TriggerKindWebhook, Enabled: true, SigningMode: mode, ReplayWindow: 5 * time.Minute}
	if secret != "" {
		sealed, err := w.box.Seal(secret, store.SecretPlace(spec.ID))
		w.ok(err)
		spec.Secret = &store.SealedSecret{Sealed: sealed, Hint: domain.SecretHint(secret)}
	}
	in := store.CreateRoutine{WorkspaceID: w.workspace, Name: string(xid.New("r")), Description: "Build {{branch}}", AssigneeID: w.agent,
		ConcurrencyPolicy: domain.ConcurrencyPolicyCoalesceIfActive, CatchUpPolicy: domain.CatchUpPolicyEnqueueMissedWithCap, CatchUpMax: 25, Triggers: []store.TriggerSpec{spec}}
	if change != nil {
		change(&in)
	}
	made, err := w.store.CreateRoutine(w.t.Context(), in)
	w.ok(err)
	h := hook{routine: string(made.ID), trigger: string(spec.ID)}
	var public string
	w.ok(w.db.QueryRow(`SELECT public_id FROM routine_triggers WHERE id = $1`, h.trigger).Scan(&public))
	h.path = "/api/routine-triggers/" + public + "/fire"
	return h
}

// post sends a delivery and reads the answer.
func (w *world) post(path, body string, h http.Header) (int, answer) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	w.ok(err)
	for name, values := range h {
		r.Header[name] = values
	}
	response, err := http.DefaultClient.Do(r)
	w.ok(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	w.ok(err)
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		w.t.Fatalf("%d %s: %v", response.StatusCode, text, err)
	}
	return response.StatusCode, a
}

// outcomes are the outcomes of a trigger's deliveries, oldest first.
func (w *world) outcomes(h hook) string {
	w.t.Helper()
	logged, err := w.store.Deliveries(w.t.Context(), []xid.ID{xid.ID(h.trigger)}, 100)
	w.ok(err)
	var all []string
	for _, d := range logged[xid.ID(h.trigger)] {
		all = append([]string{fmt.Sprint(d.Outcome, " ", d.Status)}, all...)
	}
	return strings.Join(all, ", ")
}

func signed(secret, body string) http.Header {
	return header("X-Signature-256", "sha256="+hex.EncodeToString(digest(secret, body)))
}

const testSecret = "a secret of enough characters"

// SPEC S4.9: 202 with the routine run and its disposition.
func TestASignedPostFiresAndBringsItsValues(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeHMACSHA256, testSecret, nil)
	const body = `{"branch":"release/2.0","n":42,"b":true,"o":{"a":1},"z":null}`
	status, a := w.post(h.path, body, signed(testSecret, body))
	if status != 202 || a.RoutineRunID == "" || a.Disposition != string(domain.RoutineRunStatusEnqueued) || a.Deduplicated || a.Error != nil {
		t.Fatalf("%d %+v", status, a)
	}
	var raw []byte
	w.ok(w.db.QueryRow(`SELECT variables FROM routine_runs WHERE id = $1 AND source = 'WEBHOOK'`, a.RoutineRunID).Scan(&raw))
	var values map[string]string
	w.ok(json.Unmarshal(raw, &values))
	for name, want := range map[string]string{"branch": "release/2.0", "n": "42", "b": "true", "o": `{"a":1}`, "z": "null", "payload": body} {
		if values[name] != want {
			t.Errorf("C21 %s is %q, want %q", name, values[name], want)
		}
	}
	if n := w.count(`SELECT count(*) FROM wakeup_requests WHERE run_id IS NOT NULL AND wake_class = 'EVENT' AND payload ->> 'text' = 'Build release/2.0'`); n != 1 {
		t.Errorf("%d requests are routed", n)
	}
	if n := w.count(`SELECT count(*) FROM routine_triggers t JOIN routines r ON r.id = t.routine_id WHERE t.last_fired_at IS NOT NULL AND r.last_run_at IS NOT NULL`); n != 1 {
		t.Error("the last fire was not noted")
	}
}

// SPEC S4.8, S4.9: 400, 413, and nothing fired.
func TestBodiesThatAreNoObjectFireNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeNone, "", func(r *store.CreateRoutine) {
		r.Variables = []domain.RoutineVariable{{Name: "branch", Type: domain.VariableTypeText}, {Name: "depth", Type: domain.VariableTypeNumber}}
	})
	for _, body := range []string{`[1,2]`, `not json`, `"x"`, `{"depth":"deep"}`} {
		if status, a := w.post(h.path, body, nil); status != 400 || a.Error == nil || a.Error.Code != "BAD_BODY" {
			t.Errorf("C22 %s: %d %+v", body, status, a)
		}
	}
	for _, form := range []string{"payload=%7B%22branch%22%3A%22main%22%7D", "branch=main&depth=1"} { // GitHub's default
		if status, a := w.post(h.path, form, header("Content-Type", "application/x-www-form-urlencoded")); status != 400 || a.Error == nil ||
			!strings.Contains(a.Error.Message, "choose application/json") {
			t.Errorf("a form: %d %+v", status, a.Error)
		}
	}
	if n := w.count(`SELECT count(*) FROM routine_runs`); n != 0 {
		t.Errorf("C22 %d routine runs", n)
	}
	if status, a := w.post(h.path, "", nil); status != 202 || a.RoutineRunID == "" {
		t.Errorf("C22 an empty body: %d %+v", status, a)
	}
	if status, _ := w.post(h.path, strings.Repeat(" ", domain.MaxWebhookBody)+"x", nil); status != 413 {
		t.Errorf("a large body: %d", status)
	}
	if got := w.outcomes(h); got != strings.Repeat("BAD_BODY 400, ", 6)+"ACCEPTED 202, TOO_LARGE 413" {
		t.Errorf("the log says %s", got)
	}
}

// SPEC S4.9: 401, no routine run, and the reason in the delivery log alone.
func TestWhoDoesNotProveItselfIsToldNothing(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeHMACSHA256, testSecret, nil)
	for name, headers := range map[string]http.Header{
		"C25 no header":      nil,
		"C25 another secret": signed("another secret", "{}"),
		"late":               stamped(testSecret, time.Now().Add(-time.Hour), "{}"),
	} {
		status, a := w.post(h.path, "{}", headers)
		if status != 401 || a.Error == nil || a.Error.Code != "UNAUTHORIZED" || a.Error.Message != "the delivery did not prove itself" {
			t.Errorf("%s: %d %+v", name, status, a)
		}
	}
	if n := w.count(`SELECT count(*) FROM routine_runs`); n != 0 {
		t.Errorf("C25 %d routine runs", n)
	}
	if got := w.outcomes(h); strings.Count(got, "401") != 3 || !strings.Contains(got, "NO_SIGNATURE") || !strings.Contains(got, "BAD_SIGNATURE") || !strings.Contains(got, "CLOCK_SKEW") {
		t.Errorf("the log says %s", got)
	}
	if n := w.count(`SELECT count(*) FROM activities WHERE code = 'WEBHOOK_REJECTED'`); n != 1 {
		t.Errorf("the feed tells of it %d times, want once", n)
	}
	if n := w.count(`SELECT count(*) FROM webhook_deliveries WHERE outcome = 'CLOCK_SKEW' AND detail LIKE 'clock skew 3600 s%' OR outcome = 'CLOCK_SKEW' AND detail LIKE 'clock skew 3601 s%'`); n != 1 {
		t.Error("the operator is not told how late it was")
	}
}

// SPEC S4.4, S4.9: 404, 401 before 409.
func TestTheProofComesBeforeTheStatus(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeBearer, testSecret, nil)
	good, bad := header("Authorization", "Bearer "+testSecret), header("Authorization", "Bearer wrong-secret")
	if status, _ := w.post("/api/routine-triggers/unknown/fire", "", good); status != 404 {
		t.Errorf("C28 an unknown id: %d", status)
	}
	w.sql(`UPDATE routines SET status = 'PAUSED'`)
	for name, c := range map[string]struct {
		headers http.Header
		want    int
	}{"C29 a paused routine": {good, 409}, "C26 a paused routine, a wrong secret": {bad, 401}} {
		if status, _ := w.post(h.path, "", c.headers); status != c.want {
			t.Errorf("%s: %d, want %d", name, status, c.want)
		}
	}
	w.sql(`UPDATE routines SET status = 'ACTIVE'`)
	w.sql(`UPDATE routine_triggers SET enabled = false`)
	if status, a := w.post(h.path, "", good); status != 409 || a.Error.Code != "REFUSED" {
		t.Errorf("C28 a trigger that is off: %d %+v", status, a)
	}
	if status, _ := w.post(h.path, "", bad); status != 401 {
		t.Errorf("C28 a trigger that is off, a wrong secret: %d", status)
	}
	if n := w.count(`SELECT count(*) FROM routine_runs`); n != 0 {
		t.Errorf("C29 %d routine runs", n)
	}
	w.ok(w.store.DeleteTrigger(t.Context(), w.workspace, xid.ID(h.trigger)))
	if status, _ := w.post(h.path, "", good); status != 404 {
		t.Errorf("a deleted trigger: %d", status)
	}
}

// SPEC S4.9: what dedupes.
func TestADeliveryThatIsRepeatedFiresOnce(t *testing.T) {
	w := newWorld(t)
	for name, headers := range map[string]func() http.Header{
		"C34 an idempotency key":       func() http.Header { return header("Idempotency-Key", "k1") },
		"C225 a delivery id of GitHub": func() http.Header { return header("X-GitHub-Delivery", "72d3162e") },
	} {
		t.Run(name, func(t *testing.T) {
			h := w.hook(domain.SigningModeNone, "", nil)
			first, again := w.twice(h, headers())
			if first.RoutineRunID == "" || first.RoutineRunID != again.RoutineRunID {
				t.Errorf("one after the other: %+v, %+v", first, again)
			}
			fires := w.atOnce(h, func() http.Header { a := headers(); a.Set("Idempotency-Key", "k2"); return a })
			if len(fires) != 1 {
				t.Errorf("at the same time: %v", fires)
			}
		})
	}
	t.Run("C225 a timestamped signature", func(t *testing.T) {
		h := w.hook(domain.SigningModeHMACSHA256, testSecret, nil)
		headers := stamped(testSecret, time.Now(), "{}")
		first, again := w.twice(h, headers)
		if first.RoutineRunID == "" || first.RoutineRunID != again.RoutineRunID || !again.Deduplicated {
			t.Errorf("one after the other: %+v, %+v", first, again)
		}
		headers.Set("Idempotency-Key", "of the replay") // what the signature does not cover cannot make it a new one
		if _, replayed := w.post(h.path, "{}", headers); replayed.RoutineRunID != first.RoutineRunID {
			t.Errorf("a replay with another key: %+v", replayed)
		}
	})
	t.Run("C225 Standard Webhooks", func(t *testing.T) {
		h := w.hook(domain.SigningModeHMACSHA256, testSecret, nil)
		_, first := w.post(h.path, "{}", standard(testSecret, "msg_1", time.Now(), "{}"))
		_, retried := w.post(h.path, "{}", standard(testSecret, "msg_1", time.Now().Add(time.Second), "{}"))
		if first.RoutineRunID == "" || first.RoutineRunID != retried.RoutineRunID || !retried.Deduplicated {
			t.Errorf("a retry, signed anew: %+v, %+v", first, retried)
		}
	})
	t.Run("C226 equal bodies without a key are two", func(t *testing.T) {
		h := w.hook(domain.SigningModeNone, "", nil)
		first, again := w.twice(h, nil)
		if first.RoutineRunID == again.RoutineRunID || again.Deduplicated {
			t.Errorf("%+v, %+v", first, again)
		}
	})
}

func (w *world) twice(h hook, headers http.Header) (first, again answer) {
	w.t.Helper()
	_, first = w.post(h.path, "{}", headers)
	_, again = w.post(h.path, "{}", headers)
	return first, again
}

// atOnce sends eight deliveries at the same moment and gives the fires that they were answered with.
func (w *world) atOnce(h hook, headers func() http.Header) map[xid.ID]int {
	w.t.Helper()
	fires := map[xid.ID]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, a := w.post(h.path, "{}", headers())
			mu.Lock()
			defer mu.Unlock()
			fires[a.RoutineRunID]++
		})
	}
	all.Wait()
	return fires
}

// SPEC S4.9: 60 a minute for each trigger.
func TestTheRateLimitIsTheTriggersAndStrangersCannotUseItUp(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeBearer, testSecret, nil)
	good := func(i int) http.Header {
		return header("Authorization", "Bearer "+testSecret, "X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "Idempotency-Key", fmt.Sprint(i))
	}
	counts := map[int]int{}
	for i := range domain.WebhookRateLimit + 5 {
		status, _ := w.post(h.path, "", header("Authorization", "Bearer wrong", "X-Forwarded-For", fmt.Sprintf("10.0.1.%d", i)))
		counts[status]++
	}
	if counts[401] != domain.WebhookRateLimit || counts[429] != 5 {
		t.Errorf("C228 strangers were answered %v", counts)
	}
	counts = map[int]int{}
	for i := range domain.WebhookRateLimit + 5 {
		status, _ := w.post(h.path, "", good(i))
		counts[status]++
	}
	if counts[202] != domain.WebhookRateLimit || counts[429] != 5 {
		t.Errorf("C228 the sender was answered %v", counts)
	}
	if n := w.count(`SELECT count(*) FROM webhook_deliveries WHERE outcome = 'RATE_LIMITED'`); n != 1 {
		t.Errorf("%d deliveries over the limit are recorded, want one a minute", n)
	}
	w.sql(`UPDATE webhook_deliveries SET created_at = created_at - interval '61 seconds'`)
	if status, _ := w.post(h.path, "", good(99)); status != 202 {
		t.Errorf("a minute later: %d", status)
	}
}

// SPEC S4.9: both secrets during a rotation.
func TestBothSecretsWorkWhileARotationOverlaps(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeBearer, testSecret, nil)
	const newer = "the secret that comes after it"
	sealed, err := w.box.Seal(newer, store.SecretPlace(xid.ID(h.trigger)))
	w.ok(err)
	_, err = w.store.RotateTriggerSecret(t.Context(), store.RotateTriggerSecret{WorkspaceID: w.workspace, TriggerID: xid.ID(h.trigger),
		Secret: store.SealedSecret{Sealed: sealed, Hint: domain.SecretHint(newer)}, Overlap: time.Hour})
	w.ok(err)
	try := func(secret string, want int) {
		t.Helper()
		if status, _ := w.post(h.path, "", header("Authorization", "Bearer "+secret)); status != want {
			t.Errorf("%q: %d, want %d", secret, status, want)
		}
	}
	try(testSecret, 202)
	try(newer, 202)
	w.sql(`UPDATE routine_triggers SET previous_secret_expires_at = clock_timestamp()`)
	try(testSecret, 401)
	try(newer, 202)
	w.sql(`UPDATE routine_triggers SET secret_sealed = (SELECT replace(secret_sealed, 's1.', 's1.00') FROM routine_triggers)`)
	try(newer, 401)
	if n := w.count(`SELECT count(*) FROM webhook_deliveries WHERE outcome = 'NO_SECRET' AND detail LIKE '%another key%'`); n != 1 {
		t.Error("the operator is not told that the secret cannot be opened")
	}
	w.sql(`UPDATE routine_triggers SET secret_sealed = NULL`)
	try("", 401)
}

func TestAFullBacklogIsAnswered429(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeNone, "", nil)
	w.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
		SELECT 'run_' || lpad(i::text, 26, '0'), $1, $2, 'cau_1', 'x' || i, 'USER', 'EVENT', 'QUEUED', now() FROM generate_series(1, $3) i`, string(w.workspace), string(w.agent), domain.MaxBacklog+1)
	if status, a := w.post(h.path, "", nil); status != 429 || a.Error.Code != "BACKLOG_FULL" {
		t.Errorf("%d %+v", status, a)
	}
}

func TestOnlyPostsAreTaken(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeNone, "", nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+h.path, nil)
	w.ok(err)
	response, err := http.DefaultClient.Do(r)
	w.ok(err)
	defer response.Body.Close()
	if response.StatusCode != 405 || response.Header.Get("Allow") != "POST" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
}
