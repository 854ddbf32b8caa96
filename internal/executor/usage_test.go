//go:build unix

package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// An amount is read alike, whether a service answers it or a command prints it.
func TestAmountsOfResults(t *testing.T) {
	c := newCommand(t, Options{})
	for _, test := range []struct {
		name, result string
		want         Usage
	}{
		{"numbers", `{"summary":"s","usage":{"input_tokens":3,"cost_usd":5.5}}`, Usage{InputTokens: 3, CostUSD: "5.5"}},
		{"text", `{"summary":"s","usage":{"input_tokens":"3","cost_usd":"5.00"}}`, Usage{InputTokens: 3, CostUSD: "5"}},
		{"below nothing", `{"summary":"s","usage":{"cost_usd":-5}}`, Usage{CostUnread: true, Unread: `usage.cost_usd "-5" is below nothing`}},
		{"beyond all numbers", `{"summary":"s","usage":{"cost_usd":1e400}}`, Usage{CostUnread: true, Unread: `usage.cost_usd "1e400" is beyond all numbers`}},
		{"what Python writes for no number", `{"summary":"s","usage":{"cost_usd":NaN}}`, Usage{CostUnread: true, Unread: `usage.cost_usd "NaN" is no number`}},
		{"what Python writes for too much", `{"summary":"s","usage":{"cost_usd":-Infinity,"output_tokens":4}}`, Usage{OutputTokens: 4, CostUnread: true, Unread: `usage.cost_usd "-Infinity" is no number`}},
		{"a secret", `{"summary":"s","usage":{"cost_usd":"hunter2"}}`, Usage{CostUnread: true, Unread: `usage.cost_usd "***" is no number`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mask := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
			call := callOf(service(t, write(200, test.result)))
			call.Mask = mask
			answered, err := NewHTTP(loopback).Run(t.Context(), call, &recorder{})
			if err != nil || answered.Usage == nil || *answered.Usage != test.want || answered.Object["summary"] != "s" {
				t.Errorf("answered: %+v, %+v, %v", answered.Usage, answered.Object, err)
			}
			print := shell(`printf '%s\n' '` + test.result + `'`)
			print.Mask = mask
			printed, err := c.Run(t.Context(), print, &recorder{})
			if err != nil || printed.Usage == nil || *printed.Usage != test.want || printed.Object["summary"] != "s" {
				t.Errorf("printed: %+v, %+v, %v", printed.Usage, printed.Object, err)
			}
		})
	}
}

func TestAmountsOfTheProtocol(t *testing.T) {
	updated := func(amount string) *domain.Said {
		cost, ok := usageUpdate(json.RawMessage(`{"update":{"sessionUpdate":"usage_update","size":"1","used":2,"cost":{"amount":` + amount + `,"currency":"USD"}}}`))
		if !ok || cost == nil {
			t.Fatalf("%s is not read", amount)
		}
		return cost
	}
	for _, test := range []struct {
		name         string
		before, cost *domain.Said
		answer       string
		want         *Usage
	}{
		{"nothing told", nil, nil, `{}`, nil},
		{"tokens as text", nil, nil, `{"usage":{"inputTokens":"7","outputTokens":2}}`, &Usage{InputTokens: 7, OutputTokens: 2, CostUSD: "0"}},
		{"cached tokens beside the others, as Claude's agent tells them", nil, nil, `{"usage":{"inputTokens":60,"outputTokens":11,"cachedReadTokens":40,"cachedWriteTokens":0,"totalTokens":111}}`, &Usage{InputTokens: 100, OutputTokens: 11, CostUSD: "0"}},
		{"cached tokens among the others", nil, nil, `{"usage":{"inputTokens":100,"outputTokens":11,"cachedReadTokens":40,"totalTokens":111}}`, &Usage{InputTokens: 100, OutputTokens: 11, CostUSD: "0"}},
		{"cached tokens without a total", nil, nil, `{"usage":{"inputTokens":100,"outputTokens":11,"cachedReadTokens":40}}`, &Usage{InputTokens: 100, OutputTokens: 11, CostUSD: "0"}},
		{"tokens where Gemini CLI alone tells them", nil, nil, `{"_meta":{"quota":{"token_count":{"input_tokens":100,"output_tokens":11}}}}`, &Usage{InputTokens: 100, OutputTokens: 11, CostUSD: "0"}},
		{"a member of other agents with that name", nil, nil, `{"_meta":{"quota":{"token_count":{"inputTokens":100}}}}`, nil},
		{"a cost as text", nil, updated(`"0.5"`), `{}`, &Usage{CostUSD: "0.5", SessionCost: true}},
		{"only what is new of a resumed session", updated("0.25"), updated("1"), `{}`, &Usage{CostUSD: "0.75"}},
		{"a session that told nothing before", nil, updated("1"), `{}`, &Usage{CostUSD: "1", SessionCost: true}},
		{"less than before", updated("2"), updated("1"), `{}`, &Usage{CostUnread: true, Unread: `cost.amount "-1" is below nothing`}},
		{"no number now", updated("2"), updated(`"x"`), `{}`, &Usage{CostUnread: true, Unread: `cost.amount "x" is no number`}},
		{"no number before", updated(`"x"`), updated("2"), `{}`, &Usage{CostUnread: true, Unread: `cost.amount "x" is no number`}},
		{"beyond all numbers", nil, updated("1e400"), `{}`, &Usage{CostUnread: true, SessionCost: true, Unread: `cost.amount "1e400" is beyond all numbers`}},
	} {
		c := &conversation{transcript: &transcript{cost: test.cost}, before: test.before}
		if err := json.Unmarshal([]byte(test.answer), &c.answer); err != nil {
			t.Fatal(err)
		}
		if got := c.usage(); (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	if _, ok := usageUpdate(json.RawMessage(`{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"usage_update"}}}`)); ok {
		t.Error("a message is taken for an update of the use")
	}
}

// SPEC S8.2: a rate limit is looked for in the words of an error. What an agent prints ordinarily is none of them.
func TestWhatCountsAsTheWordsOfAnError(t *testing.T) {
	c := newCommand(t, Options{})
	for _, test := range []struct {
		name, script string
		words        string // in Words
		not          string // not there
	}{
		{"standard error", `echo 'rate limit' >&2; exit 1`, "rate limit", "+"},
		{"ordinary output", `echo 'the page says: rate limit'; exit 1`, "", "rate limit"},
		{"both", `echo 'rate limit'; echo 'disk full' >&2; exit 1`, "disk full", "rate limit"},
		{"a reported error", `echo 'chat'; echo '{"error":"usage limit"}'`, "usage limit", "chat"},
	} {
		_, err := c.Run(t.Context(), shell(test.script), &recorder{})
		if f := failureOf(t, err); !strings.Contains(f.Words, test.words) || strings.Contains(f.Words, test.not) || !f.Local {
			t.Errorf("%s: %q", test.name, f.Words)
		}
	}
	_, err := NewHTTP(loopback).Run(t.Context(), callOf(service(t, write(429, "slow down"))), &recorder{})
	if f := failureOf(t, err); f.Code != domain.RunErrorCodeRateLimited || !strings.Contains(f.Words, "slow down") || f.Local {
		t.Errorf("%+v", f)
	}
}

func TestWordsThatAreNoNumbersAreTexts(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN"}`, `{"a":"NaN","b":["Infinity","-Infinity"],"c":"NaN"}`},
		{`{"a":"\"NaN","b":-1}`, `{"a":"\"NaN","b":-1}`},
		{`{"a":nano}`, `{"a":nano}`},
		{`{"a":"x\`, `{"a":"x\`},
	} {
		if got, changed := quoteNonNumbers([]byte(test.in)); string(got) != test.want || changed != (test.in != test.want) {
			t.Errorf("%s became %s, %v", test.in, got, changed)
		}
	}
}
