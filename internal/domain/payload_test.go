package domain

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func samplePayloads() map[WakeupSource]Payload {
	at := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	return map[WakeupSource]Payload{
		WakeupSourceRoutine: &RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1", RoutineRunID: "rrn_1",
			Variables: map[string]string{"a": "b"}, ScheduledFor: at, MissedTicks: 3, MissedSince: at, MissedTruncated: true},
		WakeupSourceComment:               &CommentPayload{TaskID: "tsk_1", CommentID: "cmt_1"},
		WakeupSourceAgentError:            &AgentErrorPayload{FailedAgentID: "agt_1", FailedSessionID: "s", RunID: "run_1", Error: "boom"},
		WakeupSourceSelf:                  &SelfPayload{Reason: "later", Payload: map[string]any{"n": json.Number("12345678901234567890")}},
		WakeupSourceUser:                  &UserPayload{UserID: "ann", Context: map[string]any{"k": "v"}},
		WakeupSourceTaskAssigned:          &TaskPayload{TaskID: "tsk_1", Basis: WakeBasisReviewer},
		WakeupSourceTaskBlockersResolved:  &BlockersPayload{TaskID: "tsk_1", ResolvedBlockerIDs: []string{"tsk_2"}},
		WakeupSourceTaskChildrenCompleted: &TaskPayload{TaskID: "tsk_1"},
		WakeupSourceApprovalResolved:      &ApprovalPayload{ApprovalID: "apr_1", Status: ApprovalStatusApproved, DecisionNote: "ok"},
		WakeupSourceBudgetAlert:           &BudgetPayload{AgentID: "agt_1", BudgetPct: 112.5},
	}
}

func TestEverySourceHasAPayloadThatSurvivesStorage(t *testing.T) {
	samples := samplePayloads()
	for _, source := range wakeupSourceValues {
		want, ok := samples[source]
		if !ok {
			t.Errorf("%s has no sample", source)
			continue
		}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodePayload(source, raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", source, got, err, want)
		}
	}
}

func TestDecodePayload(t *testing.T) {
	for _, c := range []struct {
		name   string
		source WakeupSource
		raw    string
		want   Payload
		err    string
	}{
		{"unknown members are ignored", WakeupSourceSelf, `{"reason":"test","new_in_next_version":[1]}`, &SelfPayload{Reason: "test"}, ""},
		{"empty input is an empty object", WakeupSourceUser, "", &UserPayload{}, ""},
		{"a zero instant stays zero", WakeupSourceRoutine, `{"routine_id":"rtn_1","routine_run_id":"x"}`, &RoutinePayload{RoutineID: "rtn_1", RoutineRunID: "x"}, ""},
		{"null is refused", WakeupSourceUser, "null", nil, "want a JSON object"},
		{"a list is refused", WakeupSourceUser, "[]", nil, "want a JSON object"},
		{"a second value is refused", WakeupSourceUser, "{} {}", nil, "more follows"},
		{"a wrong type is refused", WakeupSourceSelf, `{"reason":1}`, nil, "cannot unmarshal"},
		{"a task-bound payload names its task", WakeupSourceComment, `{"comment_id":"c-1"}`, nil, "task_id is missing"},
		{"an assignment names its basis", WakeupSourceTaskAssigned, `{"task_id":"t-1","basis":"FRIEND"}`, nil, `basis is "FRIEND"`},
		{"the end of children has no basis", WakeupSourceTaskChildrenCompleted, `{"task_id":"t-1"}`, &TaskPayload{TaskID: "t-1"}, ""},
		{"unknown source", "GHOST", `{}`, nil, "not a wakeup source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodePayload(c.source, []byte(c.raw))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestTaskBoundAreCommentsAndTaskSourcesOnly(t *testing.T) {
	for source, p := range samplePayloads() {
		want := source == WakeupSourceComment || strings.HasPrefix(string(source), "TASK_")
		if got := p.BoundTaskID() != ""; got != want {
			t.Errorf("%s: task-bound %v, want %v", source, got, want)
		}
	}
}

func FuzzDecodePayload(f *testing.F) {
	for source, p := range samplePayloads() {
		raw, _ := json.Marshal(p)
		f.Add(string(source), raw)
	}
	f.Add("SELF", []byte(`{"reason":"\ud800"}`))
	f.Fuzz(func(t *testing.T, source string, raw []byte) {
		p, err := DecodePayload(WakeupSource(source), raw)
		if err != nil {
			if p != nil {
				t.Fatal("a payload beside an error")
			}
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		if back, err := DecodePayload(WakeupSource(source), again); err != nil || p.BoundTaskID() != back.BoundTaskID() {
			t.Fatalf("encoded but not decoded: %v", err)
		}
	})
}
