package domain

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestTheUseOfAResult(t *testing.T) {
	for _, c := range []struct {
		name, object string
		want         *AttemptUsage
	}{
		{"tokens and cost", `{"usage":{"input_tokens":3,"output_tokens":4,"cost_usd":0.25}}`, &AttemptUsage{InputTokens: 3, OutputTokens: 4, CostUSD: "0.25"}},
		{"the cost may stand beside the tokens", `{"usage":{"input_tokens":3},"total_cost_usd":0.5}`, &AttemptUsage{InputTokens: 3, CostUSD: "0.5"}},
		{"the cost may stand alone", `{"total_cost_usd":0.5}`, &AttemptUsage{CostUSD: "0.5"}},
		{"a cost that is null is not said", `{"usage":{"input_tokens":3,"cost_usd":null}}`, &AttemptUsage{InputTokens: 3, CostUSD: "0"}},
		{"nothing said", `{"summary":"x"}`, nil},
		{"use that is null is not said", `{"usage":null}`, nil},
		{"all as text", `{"usage":{"input_tokens":"123","output_tokens":" 4 ","cost_usd":"5.00"}}`, &AttemptUsage{InputTokens: 123, OutputTokens: 4, CostUSD: "5"}},
		{"a cost as text beside the tokens", `{"usage":{},"total_cost_usd":"1.5"}`, &AttemptUsage{CostUSD: "1.5"}},
		{"a cost below nothing", `{"usage":{"input_tokens":-1,"output_tokens":3,"cost_usd":-5}}`,
			&AttemptUsage{OutputTokens: 3, CostUnread: true, Unread: `usage.input_tokens "-1" is below nothing; usage.cost_usd "-5" is below nothing`}},
		{"an absurd cost", `{"usage":{"cost_usd":1e30}}`, &AttemptUsage{CostUnread: true, Unread: `usage.cost_usd "1e30" is a billion dollars or more, which is not believed`}},
		{"a cost beyond all numbers", `{"usage":{"cost_usd":1e400}}`, &AttemptUsage{CostUnread: true, Unread: `usage.cost_usd "1e400" is beyond all numbers`}},
		{"a cost with its currency", `{"usage":{"cost_usd":"$5.00"}}`, &AttemptUsage{CostUnread: true, Unread: `usage.cost_usd "$5.00" is no number`}},
		{"a cost that is a list", `{"usage":{"cost_usd":[5]}}`, &AttemptUsage{CostUnread: true, Unread: `usage.cost_usd "[5]" is no number`}},
		{"a cost that is true", `{"usage":{"cost_usd":true}}`, &AttemptUsage{CostUnread: true, Unread: `usage.cost_usd "true" is no number`}},
		{"use that is no object", `{"usage":"much"}`, &AttemptUsage{CostUnread: true, Unread: `usage "much" is no object`}},
		{"use that is no object beside a cost", `{"usage":"much","total_cost_usd":2}`, &AttemptUsage{CostUSD: "2", Unread: `usage "much" is no object`}},
		{"the cost beside the tokens helps out", `{"usage":{"cost_usd":"much"},"total_cost_usd":2}`, &AttemptUsage{CostUSD: "2", Unread: `usage.cost_usd "much" is no number`}},
		{"more tokens than are counted", `{"usage":{"input_tokens":2147483648,"output_tokens":1e30}}`, &AttemptUsage{InputTokens: MaxTokens, OutputTokens: MaxTokens, CostUSD: "0",
			Unread: `usage.input_tokens "2147483648" is more than an attempt can use, and kept as 2147483647; usage.output_tokens "1e30" is more than an attempt can use, and kept as 2147483647`}},
		{"tokens that are words", `{"usage":{"input_tokens":"many","cost_usd":1}}`, &AttemptUsage{CostUSD: "1", Unread: `usage.input_tokens "many" is no number`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ResultUsage(decoded(t, c.object)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheFormsOfACost(t *testing.T) {
	for _, c := range []struct {
		said any
		want string // "" for one that cannot be read
	}{
		{0.25, "0.25"}, {json.Number("0.25"), "0.25"}, {int64(3), "3"}, {7, "7"}, {"5.00", "5"}, {" 5 ", "5"}, {"+1.5", "1.5"}, {".5", "0.5"}, {"5.", "5"},
		{"1e-3", "0.001"}, {"1E2", "100"}, {json.Number("1e2"), "100"}, {"0", "0"}, {"-0", "0"}, {0.0, "0"},
		{0.1 + 0.2, "0.3"}, {"0.0000001", "0.000001"}, {1e-300, "0.000001"}, {"999999999.999999", "999999999.999999"}, {"999999999.9999999", "999999999.999999"},
		{"1000000000", ""}, {"1000000000000000000000", ""}, {"1e400", ""}, {json.Number("-1e400"), ""}, {-0.01, ""}, {"-5", ""},
		{math.NaN(), ""}, {math.Inf(1), ""}, {"NaN", ""}, {"Infinity", ""}, {"inf", ""}, {"0x1p4", ""}, {"1_000", ""}, {"1,5", ""}, {"5 USD", ""}, {"$5", ""}, {"٣", ""},
		{"", ""}, {" ", ""}, {"five", ""}, {"1e", ""}, {".", ""}, {"1 2", ""}, {strings.Repeat("1", 200), ""}, {true, ""}, {[]any{1}, ""}, {map[string]any{}, ""},
	} {
		cost, problem := ReadCost(c.said)
		if (problem == "") != (c.want != "") || problem == "" && cost.String() != c.want || problem != "" && cost != 0 {
			t.Errorf("%#v is %s, %q; want %q", c.said, cost, problem, c.want)
		}
	}
}

func TestTheFormsOfTokens(t *testing.T) {
	for _, c := range []struct {
		said    any
		want    int64
		problem bool
	}{
		{"123", 123, false}, {123.9, 123, false}, {json.Number("1.2e3"), 1200, false}, {int64(5), 5, false}, {"2147483647", MaxTokens, false},
		{"2147483648", MaxTokens, true}, {"9223372036854775808", MaxTokens, true}, {"1e300", MaxTokens, true}, {"1e999", 0, true},
		{-1, 0, true}, {"-9223372036854775809", 0, true}, {math.NaN(), 0, true}, {"many", 0, true}, {false, 0, true},
	} {
		if n, problem := ReadTokens(c.said); n != c.want || (problem != "") != c.problem {
			t.Errorf("%#v is %d, %q", c.said, n, problem)
		}
	}
}

func TestWhatCannotBeReadOfAUseIsBoundedAndMasked(t *testing.T) {
	long := ResultUsage(map[string]any{"usage": map[string]any{"cost_usd": strings.Repeat("hunter2", 1000)}})
	if long.Unread != "usage.cost_usd is no number" {
		t.Errorf("a long value is told as %q", long.Unread)
	}
	mask := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	if got := ResultUsage(map[string]any{"usage": map[string]any{"cost_usd": "hunter2"}}).Masked(mask); got.Unread != `usage.cost_usd "***" is no number` {
		t.Errorf("a secret is told as %q", got.Unread)
	}
	var many Tally
	for range 10_000 {
		many.Cost("cost", "x")
	}
	if got := many.Usage(); len(got.Unread) > maxUnread || !got.CostUnread {
		t.Errorf("%d bytes are told", len(got.Unread))
	}
}

func TestATallyAddsUp(t *testing.T) {
	var sum Tally
	sum.Cost("step", 0.25)
	sum.Cost("step", "0.5")
	sum.Input("in", 3)
	sum.Input("in", "4")
	sum.Output("out", json.Number("5"))
	if got := *sum.Usage(); got != (AttemptUsage{InputTokens: 7, OutputTokens: 5, CostUSD: "0.75"}) {
		t.Errorf("%+v", got)
	}
	sum.Cost("step", "much")
	if got := *sum.Usage(); !got.CostUnread || got.CostUSD != "" {
		t.Errorf("one step that cannot be read: %+v", got)
	}
	sum.SetCost("session", 2)
	if got := *sum.Usage(); got.CostUnread || got.CostUSD != "2" {
		t.Errorf("a cost of all: %+v", got)
	}
	for range 20 {
		sum.Cost("step", 999_999_999)
	}
	if got := *sum.Usage(); !got.CostUnread {
		t.Errorf("more than is believed: %+v", got)
	}
}

// Whatever is said, a use is either read within its bounds, or it is told that it was not.
func FuzzResultUsage(f *testing.F) {
	for _, text := range []string{`{"usage":{"cost_usd":"5.00"}}`, `{"usage":{"cost_usd":1e400,"input_tokens":"1"}}`, `{"total_cost_usd":-1}`, `{"usage":[]}`, `{"usage":{"cost_usd":"NaN"}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var object map[string]any
		if decoder.Decode(&object) != nil {
			return
		}
		u := ResultUsage(object)
		if u == nil {
			if object["usage"] != nil || object["total_cost_usd"] != nil {
				t.Fatalf("%s is said and not told", text)
			}
			return
		}
		if u.CostUnread != (u.CostUSD == "") || u.CostUnread && u.Unread == "" || len(u.Unread) > maxUnread {
			t.Fatalf("%s is %+v", text, u)
		}
		if cost, err := ParseMoney(u.CostUSD); !u.CostUnread && (err != nil || cost < 0 || cost >= MaxCostUSD*microsPerDollar) {
			t.Fatalf("%s costs %q, %v", text, u.CostUSD, err)
		}
		for _, n := range []int64{u.InputTokens, u.OutputTokens} {
			if n < 0 || n > MaxTokens {
				t.Fatalf("%s has %d tokens", text, n)
			}
		}
	})
}

// A program tells of its whole session: what it told before does not count again.
func TestTheUseOfASessionThatIsNew(t *testing.T) {
	total := AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.5", SessionTokens: true, SessionCost: true}
	for _, c := range []struct {
		name   string
		u      AttemptUsage
		before ToldUsage
		since  AttemptUsage
		now    ToldUsage
	}{
		{"of a session that told nothing before", total, ToldUsage{}, AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.5"}, ToldUsage{200, 22, "0.5"}},
		{"more than before", total, ToldUsage{100, 11, "0.2"}, AttemptUsage{InputTokens: 100, OutputTokens: 11, CostUSD: "0.3"}, ToldUsage{200, 22, "0.5"}},
		{"the same as before", total, ToldUsage{200, 22, "0.5"}, AttemptUsage{CostUSD: "0"}, ToldUsage{200, 22, "0.5"}},
		{"less than before: a new process", total, ToldUsage{900, 90, "9"}, AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.5"}, ToldUsage{200, 22, "0.5"}},
		{"less of one kind alone", total, ToldUsage{100, 90, "0.2"}, AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.3"}, ToldUsage{200, 22, "0.5"}},
		{"tokens alone", AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.5", SessionTokens: true}, ToldUsage{100, 11, "0.2"},
			AttemptUsage{InputTokens: 100, OutputTokens: 11, CostUSD: "0.5"}, ToldUsage{200, 22, "0.2"}},
		{"the cost alone", AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.5", SessionCost: true}, ToldUsage{100, 11, "0.2"},
			AttemptUsage{InputTokens: 200, OutputTokens: 22, CostUSD: "0.3"}, ToldUsage{100, 11, "0.5"}},
		{"a cost that cannot be read", AttemptUsage{CostUnread: true, Unread: "x", SessionCost: true}, ToldUsage{100, 11, "0.2"}, AttemptUsage{CostUnread: true, Unread: "x"}, ToldUsage{100, 11, "0.2"}},
		{"of one run", AttemptUsage{InputTokens: 5, CostUSD: "1"}, ToldUsage{100, 11, "0.2"}, AttemptUsage{InputTokens: 5, CostUSD: "1"}, ToldUsage{100, 11, "0.2"}},
	} {
		if since, now := c.u.Since(c.before); since != c.since || now != c.now {
			t.Errorf("%s: %+v, %+v, want %+v, %+v", c.name, since, now, c.since, c.now)
		}
	}
}
