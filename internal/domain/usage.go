package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AttemptUsage is what an attempt used by its agent's own account.
type AttemptUsage struct {
	InputTokens, OutputTokens int64
	CostUSD                   string // decimal, e.g. "0.0425"; "" when unknown
	CostUnread                bool   // a cost was said and cannot be read: it is charged as what the budget reserved
	Unread                    string // what was said and cannot be read, in sentences; "" when all was read
	SessionTokens             bool   // the tokens are those of the agent's session so far, over all its runs
	SessionCost               bool   // and so is the cost
}

// ToldUsage is what an agent's program told last of the use of its whole session.
type ToldUsage struct {
	InputTokens  int64  `json:"input_tokens,omitempty"`
	OutputTokens int64  `json:"output_tokens,omitempty"`
	CostUSD      string `json:"cost_usd,omitempty"`
}

// Since is the part of a session's use that is new since the program told of it before, and what it has told now. Less than before is
// a new process's, which counts from nothing, so that all of it is new.
func (u AttemptUsage) Since(before ToldUsage) (since AttemptUsage, now ToldUsage) {
	since, now = u, before
	since.SessionTokens, since.SessionCost = false, false
	if u.SessionTokens {
		now.InputTokens, now.OutputTokens = u.InputTokens, u.OutputTokens
		if u.InputTokens >= before.InputTokens && u.OutputTokens >= before.OutputTokens {
			since.InputTokens, since.OutputTokens = u.InputTokens-before.InputTokens, u.OutputTokens-before.OutputTokens
		}
	}
	if !u.SessionCost || u.CostUnread {
		return since, now
	}
	now.CostUSD = u.CostUSD
	told, problem := ReadCost(u.CostUSD)
	former, unread := ReadCost(cmp.Or(before.CostUSD, "0"))
	if problem == "" && unread == "" && told >= former {
		since.CostUSD = (told - former).String()
	}
	return since, now
}

// Bounds of what one attempt may say that it used. MaxTokens is the largest Int of the API, by which workers report; a cost is
// below MaxCostUSD.
const (
	MaxTokens  = math.MaxInt32
	MaxCostUSD = 1_000_000_000
)

// Bounds of what is shown of amounts that cannot be read: characters of one value, and bytes in all.
const (
	maxQuotedAmount = 40
	maxUnread       = 1 << 10
)

// ResultUsage is what a result object says of its use: usage.input_tokens, usage.output_tokens and usage.cost_usd, or
// total_cost_usd beside usage. Nil when it says nothing.
func ResultUsage(object map[string]any) *AttemptUsage {
	said, total := object["usage"], object["total_cost_usd"]
	if said == nil && total == nil {
		return nil
	}
	var t Tally
	usage, isObject := said.(map[string]any)
	if said != nil && !isObject {
		t.cannotRead("usage", said, "is no object")
		t.costUnread = total == nil
	}
	t.Input("usage.input_tokens", usage["input_tokens"])
	t.Input("usage.cache_read_input_tokens", usage["cache_read_input_tokens"]) // beside the others, where a program tells them apart
	t.Input("usage.cache_creation_input_tokens", usage["cache_creation_input_tokens"])
	t.Output("usage.output_tokens", usage["output_tokens"])
	if usage["cost_usd"] != nil {
		t.Cost("usage.cost_usd", usage["cost_usd"])
	}
	if total != nil && (usage["cost_usd"] == nil || t.costUnread) {
		t.costUnread = false
		t.Cost("total_cost_usd", total)
	}
	return t.Usage()
}

// UnreadUsage is the use of an attempt whose whole account of it cannot be read.
func UnreadUsage(why string) *AttemptUsage {
	return &AttemptUsage{CostUnread: true, Unread: CutText(why, maxUnread, "…")}
}

// Masked is the usage with secrets hidden in the values that could not be read. Values are quoted whole or not at all,
// so that no half of a secret is left.
func (u *AttemptUsage) Masked(mask func(string) string) *AttemptUsage {
	if u == nil || u.Unread == "" {
		return u
	}
	masked := *u
	masked.Unread = CutText(mask(StorableText(u.Unread)), maxUnread, "…")
	return &masked
}

// Tally adds up what an agent says of its use, each amount in any of the forms that ReadCost and ReadTokens take. An
// amount that cannot be read counts as not said, and is shown as it was written.
type Tally struct {
	input, output int64
	cost          Money
	costUnread    bool
	unread        []string
	ofSession     bool
}

// OfSession says that the tokens are those of the agent's session so far.
func (t *Tally) OfSession() { t.ofSession = true }

// Cost adds a cost in US dollars; nil adds nothing. name says where the cost stood, for people.
func (t *Tally) Cost(name string, said any) {
	if said == nil {
		return
	}
	cost, problem := ReadCost(said)
	if problem == "" && t.cost+cost >= MaxCostUSD*microsPerDollar {
		problem = tooMuch
	}
	if problem != "" {
		t.costUnread = true
		t.cannotRead(name, said, problem)
		return
	}
	t.cost += cost
}

// SetCost is Cost for one that stands for all before it.
func (t *Tally) SetCost(name string, said any) {
	t.cost, t.costUnread = 0, false
	t.Cost(name, said)
}

// Input adds tokens that the agent read; nil adds nothing.
func (t *Tally) Input(name string, said any) { t.tokens(&t.input, name, said) }

// Output adds tokens that the agent wrote; nil adds nothing.
func (t *Tally) Output(name string, said any) { t.tokens(&t.output, name, said) }

func (t *Tally) tokens(sum *int64, name string, said any) {
	if said == nil {
		return
	}
	n, problem := ReadTokens(said)
	if problem != "" {
		t.cannotRead(name, said, problem)
	}
	*sum = min(*sum+n, MaxTokens)
}

func (t *Tally) cannotRead(name string, said any, problem string) {
	t.unread = append(t.unread, fmt.Sprintf("%s %s%s", name, quoteAmount(said), problem))
}

// Usage is the sum.
func (t *Tally) Usage() *AttemptUsage {
	u := &AttemptUsage{InputTokens: t.input, OutputTokens: t.output, CostUSD: t.cost.String(), CostUnread: t.costUnread,
		Unread: CutText(strings.Join(t.unread, "; "), maxUnread, "…"), SessionTokens: t.ofSession}
	if u.CostUnread {
		u.CostUSD = ""
	}
	return u
}

const tooMuch = "is a billion dollars or more, which is not believed"

// Said is a value of JSON as an agent wrote it, for ReadCost and ReadTokens, which take Value. The zero value is none, or null.
type Said struct{ Value any }

// UnmarshalJSON keeps the value, with all digits of a number.
func (s *Said) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(&s.Value)
}

// ReadCost reads a cost in US dollars as agents say it: a number, or a number as text. It is rounded to millionths, and what
// is less than half of one to one, so that nothing that costs is free. The problem is "" or continues a sentence.
func ReadCost(said any) (cost Money, problem string) {
	dollars, problem := readAmount(said)
	switch {
	case problem != "":
		return 0, problem
	case dollars < 0:
		return 0, "is below nothing"
	case dollars >= MaxCostUSD:
		return 0, tooMuch
	}
	cost = Money(math.Round(dollars * microsPerDollar))
	if cost == 0 && dollars > 0 {
		cost = 1
	}
	return min(cost, MaxCostUSD*microsPerDollar-1), ""
}

// ReadTokens reads a number of tokens, as ReadCost does a cost. More than MaxTokens is a problem, and kept as MaxTokens.
func ReadTokens(said any) (n int64, problem string) {
	amount, problem := readAmount(said)
	switch {
	case problem != "":
		return 0, problem
	case amount < 0:
		return 0, "is below nothing"
	case amount > MaxTokens:
		return MaxTokens, fmt.Sprintf("is more than an attempt can use, and kept as %d", MaxTokens)
	}
	return int64(amount), ""
}

// amountText is a number of JSON, and what people write beside: a plus, no digit before or behind the point.
var amountText = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// maxAmountText is the most characters of a number that is read.
const maxAmountText = 100

func readAmount(said any) (amount float64, problem string) {
	switch v := said.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, "is no number"
		}
		return v, ""
	case int64:
		return float64(v), ""
	case int:
		return float64(v), ""
	case json.Number:
		return parseAmount(string(v))
	case string:
		return parseAmount(strings.TrimSpace(v))
	}
	return 0, "is no number"
}

func parseAmount(text string) (amount float64, problem string) {
	if len(text) > maxAmountText || !amountText.MatchString(text) {
		return 0, "is no number"
	}
	amount, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, "is beyond all numbers"
	}
	return amount, ""
}

// quoteAmount is a value in quotes for a sentence, or nothing when it is long: a part of a value could be half of a secret.
func quoteAmount(said any) string {
	text, isText := said.(string)
	if !isText {
		encoded, err := json.Marshal(said)
		if err != nil {
			encoded = fmt.Append(nil, said)
		}
		text = string(encoded)
	}
	if utf8.RuneCountInString(text) > maxQuotedAmount {
		return ""
	}
	return strconv.Quote(text) + " "
}
