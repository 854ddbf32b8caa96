package domain

import (
	"testing"
	"time"
)

func TestPlanSession(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	former := TaskConversation{ExternalID: "s-1", Runs: 3, OpenedAt: now.Add(-2 * time.Hour)}
	three, four, two, hour := 3, 4, 2*time.Hour, time.Hour
	day := 24 * time.Hour
	for _, c := range []struct {
		name string
		f    SessionFacts
		want SessionPlan
	}{
		{"the first run of a task is fresh", SessionFacts{}, SessionPlan{}},
		{"the next one resumes", SessionFacts{Former: former}, SessionPlan{Resume: "s-1"}},
		{"below the limits it resumes", SessionFacts{Former: former, MaxRuns: &four, MaxAge: &day}, SessionPlan{Resume: "s-1"}},
		{"a session that served as many runs as it may is renewed", SessionFacts{Former: former, MaxRuns: &three}, SessionPlan{Ends: true}},
		{"one that is as old as it may be is renewed", SessionFacts{Former: former, MaxAge: &two}, SessionPlan{Ends: true}},
		{"so is an older one", SessionFacts{Former: former, MaxAge: &hour}, SessionPlan{Ends: true}},
		{"one that could not be resumed is given up", SessionFacts{Former: former, Failed: true}, SessionPlan{Ends: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.f.Now = now
			if got := PlanSession(c.f); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAfterSession(t *testing.T) {
	former := TaskConversation{ExternalID: "s-1"}
	for _, c := range []struct {
		name      string
		former    TaskConversation
		named     string
		resumable bool
		want      SessionEnd
	}{
		{"a session that rouse named cannot be resumed", TaskConversation{}, "ses_1", false, SessionKept},
		{"the first that the agent names is kept", TaskConversation{}, "s-1", true, SessionReplaced},
		{"the one that was resumed served one more", former, "s-1", true, SessionUsed},
		{"another one takes its place", former, "s-2", true, SessionReplaced},
		{"an attempt without one leaves it", former, "", true, SessionKept},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterSession(c.former, c.named, c.resumable); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhichFailuresSpoilASession(t *testing.T) {
	for code, want := range map[RunErrorCode]bool{
		RunErrorCodeCrash: true, RunErrorCodeLaunch: true, RunErrorCodeOther: true,
		RunErrorCodeRateLimited: false, RunErrorCodeTimeout: false, RunErrorCodeLeaseLost: false, RunErrorCodeAuth: false, RunErrorCodeBilling: false,
	} {
		if SpoilsSession(code, "it failed") != want {
			t.Errorf("%s: %v", code, !want)
		}
	}
}

// What a model's provider cannot do says nothing about the session.
func TestTheTroubleOfAProviderSpoilsNoSession(t *testing.T) {
	for message, want := range map[string]bool{
		"the agent reported an error: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.":                      false,
		"the agent reported an error: unexpected status 503 Service Unavailable: overloaded, url: http://127.0.0.1/v1/responses":                               false,
		"the agent reported an error: stream disconnected before completion: error sending request":                                                            false,
		`the agent reported an error: [API Error: {"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]`: false,
		"the agent reported an error: API Error: 500 Internal server error":                                                                                    false,
		"the agent reported an error: No conversation found with session ID: 5f1c":                                                                             true,
		"the command exited with code 1 and left no result; its last output:\nError: thread/resume failed: no rollout found for thread id 0199":                true,
		"the agent reported an error: the file has 529 lines":                                                                                                  true,
	} {
		if got := SpoilsSession(RunErrorCodeOther, message); got != want {
			t.Errorf("%q: %t", message, got)
		}
	}
}
