package event

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/xid"
)

// maxPayload keeps a notification below PostgreSQL's limit of 8000 bytes.
const maxPayload = 7900

// maxSignals bounds the signals that wait to be sent; more than that become "look at everything". A payload holds about
// as many.
const maxSignals = 240

// everything stands in a payload for "look at everything".
const everything = "*"

// signal is what a notification says of an event. Queue signals carry no id: whoever watches the queue looks at all of it.
type signal struct {
	kind Kind
	id   xid.ID
}

// signals is a set of signals to send together. The zero value is ready.
type signals struct {
	set map[signal]struct{}
	all bool // look at everything: set is empty
}

func (s *signals) add(events ...Event) {
	for _, e := range events {
		switch {
		case e.Kind == Queue:
			s.addSignal(signal{kind: Queue})
		case e.ID != "":
			s.addSignal(signal{kind: e.Kind, id: e.ID})
		}
	}
}

func (s *signals) addSignal(one signal) {
	if s.all {
		return
	}
	if s.set == nil {
		s.set = make(map[signal]struct{})
	}
	s.set[one] = struct{}{}
	if len(s.set) > maxSignals {
		s.set, s.all = nil, true
	}
}

// merge takes back what could not be sent.
func (s *signals) merge(other signals) {
	if other.all {
		s.set, s.all = nil, true
	}
	for one := range other.set {
		s.addSignal(one)
	}
}

func (s *signals) empty() bool { return !s.all && len(s.set) == 0 }

// encode writes the payload of a notification: the sender, then for each kind its ids, "prc_1;queue;run=run_1,run_2".
// A payload that would be too long says "look at everything" instead.
func (s *signals) encode(sender xid.ID) string {
	whole := sender.String() + ";" + everything
	if s.all {
		return whole
	}
	ids := make(map[Kind][]string)
	for one := range s.set {
		ids[one.kind] = append(ids[one.kind], one.id.String())
	}
	var b strings.Builder
	b.WriteString(sender.String())
	for _, kind := range slices.Sorted(maps.Keys(ids)) {
		b.WriteString(";" + string(kind))
		if kind != Queue {
			slices.Sort(ids[kind])
			b.WriteString("=" + strings.Join(ids[kind], ","))
		}
	}
	if b.Len() > maxPayload {
		return whole
	}
	return b.String()
}

// errPayload says that a notification is not one of Rouse's, or comes from a version that writes another form.
var errPayload = errors.New("not an event payload")

// decode reads a payload. Kinds that this version does not know are left out.
func decode(payload string) (sender xid.ID, s signals, err error) {
	parts := strings.Split(payload, ";")
	if len(payload) > maxPayload || len(parts) < 2 || parts[0] == "" {
		return "", signals{}, errPayload
	}
	for _, part := range parts[1:] {
		kind, list, _ := strings.Cut(part, "=")
		switch Kind(kind) {
		case everything:
			s.merge(signals{all: true})
		case Queue:
			s.addSignal(signal{kind: Queue})
		case Run, Log, Cancel, Activity, Offer:
			if err := s.addList(Kind(kind), list); err != nil {
				return "", signals{}, err
			}
		}
	}
	return xid.ID(parts[0]), s, nil
}

func (s *signals) addList(kind Kind, list string) error {
	for id := range strings.SplitSeq(list, ",") {
		if id == "" {
			return errPayload
		}
		s.addSignal(signal{kind: kind, id: xid.ID(id)})
	}
	return nil
}
