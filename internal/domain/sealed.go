package domain

import (
	"slices"

	"rouse.dev/rouse/internal/xid"
)

// SealedValue is a named value: an environment variable or an HTTP header. Of a secret Sealed is ciphertext bound to the
// record that holds the spec (see SealPlace). It is opened at launch only and never shown.
type SealedValue struct {
	Name   string  `json:"name"`
	Sealed string  `json:"sealed,omitempty"`
	Plain  *string `json:"plain,omitempty"` // the value of what is no secret; nothing is sealed then

	Keep      bool `json:"-"` // of a new spec: the value that is stored under the name, see KeepSecrets
	KeepPlain bool `json:"-"` // with Keep: only if it is no secret
}

// Secret says whether the value is one.
func (v SealedValue) Secret() bool { return v.Plain == nil }

// HTTPSecretName stands for the signing secret where a sealed value is bound to its name; no header can be called so.
const HTTPSecretName = "signing secret"

// SealPlace is what a value is bound to when it is sealed: the record that holds it, and its name. Rows hold what was sealed so, and could
// not be read again under another form. No id holds a slash, so that no two places are the same.
func SealPlace(holder xid.ID, name string) string { return holder.String() + "/" + name }

// SealedSet are sealed values and the record that they are bound to.
type SealedSet struct {
	Holder xid.ID        `json:"holder"`
	Values []SealedValue `json:"values"`
}

// Values are the values of a spec that holder holds: its environment or headers, and under HTTPSecretName what requests are
// signed with. A nil spec has none.
func (s *ExecutorSpec) Values(holder xid.ID) SealedSet {
	set := SealedSet{Holder: holder}
	switch {
	case s == nil:
	case s.Command != nil:
		set.Values = s.Command.Environment
	case s.ACP != nil:
		set.Values = s.ACP.Environment
	case s.HTTP != nil:
		set.Values = s.HTTP.Headers
		if s.HTTP.Secret != "" {
			set.Values = append(set.Values[:len(set.Values):len(set.Values)], SealedValue{Name: HTTPSecretName, Sealed: s.HTTP.Secret})
		}
	case s.Pull != nil && s.Pull.Command != nil:
		set.Values = s.Pull.Command.Environment
	}
	return set
}

// Sealed are the secrets among the values.
func (s *ExecutorSpec) Sealed(holder xid.ID) SealedSet {
	set := s.Values(holder)
	set.Values = slices.DeleteFunc(slices.Clone(set.Values), func(v SealedValue) bool { return !v.Secret() })
	return set
}
