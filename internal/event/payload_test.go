package event

import (
	"maps"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

func gathered(events ...Event) signals {
	var s signals
	s.add(events...)
	return s
}

func same(a, b signals) bool { return a.all == b.all && maps.Equal(a.set, b.set) }

func TestPayloadsSurviveTheWay(t *testing.T) {
	many := make([]Event, 0, maxSignals+1)
	for range maxSignals + 1 {
		many = append(many, Event{Kind: Run, ID: xid.New("run")})
	}
	tests := []struct {
		name    string
		events  []Event
		payload string // "" is not compared
		want    signals
	}{
		{"queue signals of several agents are one", []Event{{Kind: Queue, ID: "agt_1"}, {Kind: Queue, ID: "agt_2"}, {Kind: Queue}}, "hub_1;queue", gathered(Event{Kind: Queue})},
		{"runs and logs keep their ids", []Event{{Kind: Run, ID: "run_2"}, {Kind: Run, ID: "run_1"}, {Kind: Log, ID: "run_1"}}, "hub_1;log=run_1;run=run_1,run_2",
			gathered(Event{Kind: Run, ID: "run_1"}, Event{Kind: Run, ID: "run_2"}, Event{Kind: Log, ID: "run_1"})},
		{"a signal given twice is sent once", []Event{{Kind: Run, ID: "run_1"}, {Kind: Run, ID: "run_1"}}, "hub_1;run=run_1", gathered(Event{Kind: Run, ID: "run_1"})},
		{"a run without an id says nothing", []Event{{Kind: Run}, {Kind: Queue}}, "hub_1;queue", gathered(Event{Kind: Queue})},
		{"as many as allowed fit", many[:maxSignals], "", gathered(many[:maxSignals]...)},
		{"more than that mean everything", many, "hub_1;*", signals{all: true}},
		{"ids too long to fit mean everything", []Event{{Kind: Run, ID: xid.ID(strings.Repeat("x", maxPayload))}}, "hub_1;*", signals{all: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := gathered(tt.events...)
			payload := s.encode("hub_1")
			if len(payload) > maxPayload {
				t.Errorf("payload has %d bytes", len(payload))
			}
			if tt.payload != "" && payload != tt.payload {
				t.Errorf("payload is %q, want %q", payload, tt.payload)
			}
			sender, got, err := decode(payload)
			if err != nil || sender != "hub_1" || !same(got, tt.want) {
				t.Errorf("decode(%q) = %s, %v, %v; want %v", payload, sender, got, err, tt.want)
			}
		})
	}
}

func TestDecodeLeavesOutKindsOfALaterVersion(t *testing.T) {
	_, s, err := decode("hub_1;task=tsk_1;queue;run=run_1")
	if err != nil || !same(s, gathered(Event{Kind: Queue}, Event{Kind: Run, ID: "run_1"})) {
		t.Errorf("decode = %v, %v", s, err)
	}
}

func TestDecodeRefusesWhatIsNoPayload(t *testing.T) {
	for _, payload := range []string{"", "hub_1", ";queue", "hub_1;run", "hub_1;run=", "hub_1;run=run_1,", strings.Repeat("x", maxPayload) + ";queue"} {
		if _, s, err := decode(payload); err == nil {
			t.Errorf("decode(%.30q) = %v, want an error", payload, s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("hub_1;log=run_1;run=run_1,run_2")
	f.Add("hub_1;*")
	f.Add("hub_1;queue=agt_1;=;*=")
	f.Fuzz(func(t *testing.T, payload string) {
		sender, s, err := decode(payload)
		if err != nil {
			return
		}
		if s.all && len(s.set) > 0 || len(s.set) > maxSignals {
			t.Fatalf("decode(%q) = %v", payload, s)
		}
		if s.empty() {
			return // of a later version
		}
		again, s2, err := decode(s.encode(sender))
		if err != nil || again != sender || !same(s, s2) && !s2.all {
			t.Errorf("%q decodes to %v, which comes back as %v, %v", payload, s, s2, err)
		}
	})
}
