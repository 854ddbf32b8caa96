package domain

import (
	"slices"
	"strconv"
	"strings"
)

// secretList are the values of one kind that a spec holds sealed. A value is kept within its kind only: a variable never
// becomes a header.
type secretList struct {
	kind   string   // environment, headers or secret
	path   []string // in the API's input
	values []SealedValue
}

// secretLists are all sealed values of a spec; changes of the values are changes of the spec, but for a signing secret.
func (s *ExecutorSpec) secretLists() []secretList {
	switch s.Kind() {
	case ExecutorCommand:
		return []secretList{{"environment", []string{"command", "environment"}, s.Command.Environment}}
	case ExecutorACP:
		return []secretList{{"environment", []string{"acp", "environment"}, s.ACP.Environment}}
	case ExecutorPull:
		if s.Pull.Command != nil {
			return []secretList{{"environment", []string{"pull", "command", "environment"}, s.Pull.Command.Environment}}
		}
	case ExecutorHTTP:
		lists := []secretList{{"headers", []string{"http", "headers"}, s.HTTP.Headers}}
		if s.HTTP.Secret != "" || s.HTTP.KeepSecret {
			lists = append(lists, secretList{"secret", []string{"http", "secret"}, []SealedValue{{Name: HTTPSecretName, Sealed: s.HTTP.Secret, Keep: s.HTTP.KeepSecret}}})
		}
		return lists
	}
	return nil
}

// find looks for a value of a kind by its name, in any case for headers.
func findSecret(lists []secretList, kind, name string) (SealedValue, bool) {
	for _, list := range lists {
		if list.kind != kind {
			continue
		}
		for _, v := range list.values {
			if v.Name == name || kind == "headers" && strings.EqualFold(v.Name, name) {
				return v, true
			}
		}
	}
	return SealedValue{}, false
}

// KeepSecrets copies into a spec the values that it keeps from the spec before it, secrets or not. Either may be nil. removed
// lists the paths of secrets that the former spec had and the new one neither gives nor keeps. A kept name without a
// stored value is a problem, below path. What is kept is as it was sealed, name and all, since it is bound to its name.
func KeepSecrets(before, after *ExecutorSpec, path []string) (removed []string, problems []FieldError) {
	had, has := before.secretLists(), after.secretLists()
	for _, list := range has {
		for i := range list.values {
			v := &list.values[i]
			if !v.Keep {
				continue
			}
			stored, ok := findSecret(had, list.kind, v.Name)
			switch {
			case !ok && list.kind == "secret":
				problems = append(problems, FieldError{Field: slices.Concat(path, []string{"http", "keepSecret"}), Code: UserErrorCodeInvalid, Message: "no signing secret is stored that could be kept: give one as secret"})
			case !ok:
				problems = append(problems, FieldError{Field: slices.Concat(path, list.path, []string{strconv.Itoa(i), "keep"}), Code: UserErrorCodeInvalid, Message: "no value is stored under this name that could be kept: give one as value"})
			case v.KeepPlain && stored.Secret():
				problems = append(problems, FieldError{Field: slices.Concat(path, list.path, []string{strconv.Itoa(i), "secret"}), Code: UserErrorCodeInvalid, Message: "a secret is stored under this name, and a secret that is kept stays one: give the value again to store it as none"})
			case list.kind == "secret":
				after.HTTP.Secret, after.HTTP.KeepSecret = stored.Sealed, false
			default:
				*v = stored
			}
		}
	}
	for _, list := range had {
		for _, v := range list.values {
			if _, ok := findSecret(has, list.kind, v.Name); !ok && v.Secret() {
				removed = append(removed, secretPath(list, v))
			}
		}
	}
	return removed, problems
}

func secretPath(list secretList, v SealedValue) string {
	if list.kind == "secret" {
		return strings.Join(list.path, ".")
	}
	return strings.Join(append(slices.Clone(list.path), v.Name), ".")
}
