//go:build unix

package executor

import (
	"bytes"
	"encoding/json"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// promptAnswer is what is needed of the answer to a prompt. Amounts are taken in any form: one that the library could not read
// would lose the whole answer.
type promptAnswer struct {
	StopReason acp.StopReason `json:"stopReason"`
	Usage      *tokens        `json:"usage"`
	// Gemini CLI tells its tokens only here.
	Meta struct {
		Quota struct {
			Tokens *struct {
				Input  domain.Said `json:"input_tokens"`
				Output domain.Said `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// tokens are those that a turn, or an answer of the model, has used.
type tokens struct {
	InputTokens  domain.Said `json:"inputTokens"`
	OutputTokens domain.Said `json:"outputTokens"`
	CachedRead   domain.Said `json:"cachedReadTokens"`
	CachedWrite  domain.Said `json:"cachedWriteTokens"`
	Total        domain.Said `json:"totalTokens"`
}

// addTo counts them. where is their place in what the agent sends.
func (u *tokens) addTo(t *domain.Tally, where string) {
	t.Input(where+".inputTokens", u.InputTokens.Value)
	t.Output(where+".outputTokens", u.OutputTokens.Value)
	if u.cachedApart() {
		t.Input(where+".cachedReadTokens", u.CachedRead.Value)
		t.Input(where+".cachedWriteTokens", u.CachedWrite.Value)
	}
}

// cachedApart says whether the tokens of a cache are none of the input tokens: then the total is theirs, too. Agents differ in it.
func (u *tokens) cachedApart() bool {
	sum := int64(0)
	for _, said := range []domain.Said{u.InputTokens, u.OutputTokens, u.CachedRead, u.CachedWrite} {
		if n, problem := domain.ReadTokens(said.Value); problem == "" {
			sum += n
		}
	}
	total, problem := domain.ReadTokens(u.Total.Value)
	return problem == "" && total >= sum
}

// usageUpdate reads a session's update about its use; ok is false for any other. cost is nil when it tells none in US dollars.
func usageUpdate(params json.RawMessage) (cost *domain.Said, ok bool) {
	const kind = "usage_update"
	if !bytes.Contains(params, []byte(kind)) {
		return nil, false
	}
	var p struct {
		Update struct {
			SessionUpdate string `json:"sessionUpdate"`
			Cost          *struct {
				Amount   domain.Said `json:"amount"`
				Currency string      `json:"currency"`
			} `json:"cost"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil || p.Update.SessionUpdate != kind {
		return nil, false
	}
	if c := p.Update.Cost; c != nil && c.Currency == "USD" && c.Amount.Value != nil {
		cost = &c.Amount
	}
	return cost, true
}

// costs notes what the session has cost so far. It comes between two parts of a message, and with a session that is loaded.
func (c *conversation) costs(cost *domain.Said) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cost != nil {
		c.transcript.cost = cost
	}
}

// messageUsage are the tokens of one answer of the model, as some agents tell them with an empty part of a message; nil for any other
// update.
func messageUsage(params json.RawMessage) *tokens {
	if !bytes.Contains(params, []byte(`"inputTokens"`)) {
		return nil
	}
	var p struct {
		Update struct {
			SessionUpdate string `json:"sessionUpdate"`
			Meta          struct {
				Usage *tokens `json:"usage"`
			} `json:"_meta"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil || p.Update.SessionUpdate != "agent_message_chunk" {
		return nil
	}
	return p.Update.Meta.Usage
}

// uses adds the tokens that an update tells of. Those of the history that comes with a session that is loaded were counted then.
func (c *conversation) uses(params json.RawMessage) {
	told := messageUsage(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if told == nil || c.replaying {
		return
	}
	if c.transcript.used == nil {
		c.transcript.used = &domain.Tally{}
	}
	told.addTo(c.transcript.used, "_meta.usage")
}

// usage is what the protocol reports; nil when it reports nothing. The cost is that of the whole session: of a resumed one counts
// what is more than the agent said before the prompt, else than an earlier run of the session told.
func (c *conversation) usage() *Usage {
	told, quota, cost := c.answer.Usage, c.answer.Meta.Quota.Tokens, c.transcript.cost
	if quota != nil && quota.Input.Value == nil { // other agents have other names in it, beside their usage
		quota = nil
	}
	summed := c.transcript.used
	if told == nil && quota == nil && cost == nil && summed == nil {
		return nil
	}
	var t domain.Tally
	switch {
	case told != nil:
		told.addTo(&t, "usage")
	case quota != nil:
		t.Input("token_count.input_tokens", quota.Input.Value)
		t.Output("token_count.output_tokens", quota.Output.Value)
	case summed != nil:
		t = *summed
	}
	if cost != nil {
		t.Cost("cost.amount", costSince(c.before, cost.Value))
	}
	u := t.Usage()
	u.SessionCost = cost != nil && c.before == nil
	return u
}

// costSince is what a session cost more than before; what cannot be read of the two is returned as it is.
func costSince(before *domain.Said, now any) any {
	if before == nil {
		return now
	}
	if first, problem := domain.ReadCost(before.Value); problem != "" {
		return before.Value
	} else if last, problem := domain.ReadCost(now); problem == "" {
		return (last - first).String()
	}
	return now
}
