package domain

import (
	"slices"
	"testing"
)

// An agent is never woken by its own comment, not even by one that mentions it; whoever wrote it hears that.
func TestMentionsNotWoken(t *testing.T) {
	self := []UnwokenMention{{"agt_a", NotWokenSelfMention}}
	for _, c := range []struct {
		name     string
		author   string // an agent; "" for people
		mentions []string
		want     []UnwokenMention
	}{
		{"an agent mentions itself", "agt_a", []string{"agt_a"}, self},
		{"an agent mentions another and itself", "agt_a", []string{"agt_b", "agt_a"}, self},
		{"an agent mentions another", "agt_a", []string{"agt_b"}, nil},
		{"an agent mentions nobody", "agt_a", nil, nil},
		{"a person mentions an agent", "", []string{"agt_a"}, nil},
		{"a person mentions nobody, in a name that is empty", "", []string{""}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (CommentFacts{AuthorAgentID: c.author, Mentions: c.mentions}).MentionsNotWoken(); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
