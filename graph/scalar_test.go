package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/graph/model"
)

// scalarField is a place where a scalar is taken: an operation with %s for the value, the type of a variable there, and a value
// of its own kind. takes lists the other kinds of value that it takes as well.
type scalarField struct {
	operation, variable string
	right               any
	takes               []string
}

// A value of another kind is refused and not turned into what nobody sent, wherever it stands: in the document, as a variable of
// its own, and as a member of an input.
func TestScalarsRefuseValuesOfAnotherKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	task := w.newTask("Work", nil).Task.ID
	id := func(text string) string {
		return strings.NewReplacer("WSP", w.workspace, "AGT", agent, "TSK", task).Replace(text)
	}
	var out struct {
		Workspace struct {
			EventCursor string
			Tasks       struct{ PageInfo struct{ EndCursor string } }
		}
	}
	w.Do(t.Context(), `query($w: ID!) { workspace(id: $w) { eventCursor tasks { pageInfo { endCursor } } } }`, map[string]any{"w": w.workspace}, &out)
	fields := map[string]scalarField{
		"String":         {`mutation D { createTask(input: {workspaceId: "WSP", title: %s}) { task { id } } }`, "String!", "x", nil},
		"Markdown":       {`mutation D { createTask(input: {workspaceId: "WSP", title: "x", description: %s}) { task { id } } }`, "Markdown!", "x", nil},
		"Boolean":        {`mutation D { createTask(input: {workspaceId: "WSP", title: "x", requiresApproval: %s}) { task { id } } }`, "Boolean!", true, nil},
		"ID":             {`mutation D { createTask(input: {workspaceId: %s, title: "x"}) { task { id } } }`, "ID!", w.workspace, nil},
		"list of ID":     {`mutation D { createTask(input: {workspaceId: "WSP", title: "x", blockedByIds: [%s]}) { task { id } } }`, "ID!", task, nil},
		"Int":            {`mutation D { updateAgent(input: {agentId: "AGT", maxConcurrentSessions: %s}) { agent { id } } }`, "Int!", json.Number("5"), nil},
		"Duration":       {`mutation D { updateAgent(input: {agentId: "AGT", cooldown: %s}) { agent { id } } }`, "Duration!", "PT5S", nil},
		"enum":           {`mutation D { updateAgent(input: {agentId: "AGT", executor: {acp: {argv: ["x"], workingDirectory: "/tmp", permissions: %s}}}) { agent { id } } }`, "AcpPermissionPolicy!", "ALLOW", nil},
		"enum of order":  {`query D { workspace(id: "WSP") { tasks(orderBy: {field: UPDATED_AT, direction: %s}) { totalCount } } }`, "OrderDirection!", "ASC", nil},
		"list of enum":   {`query D { workspace(id: "WSP") { tasks(filter: {state: [%s]}) { totalCount } } }`, "TaskState!", "TODO", nil},
		"DateTime":       {`query D { nextFireTimes(cron: "* * * * *", from: %s) { times } }`, "DateTime!", "2026-04-25T09:00:00Z", nil},
		"CronExpression": {`query D { nextFireTimes(cron: %s) { times } }`, "CronExpression!", "* * * * *", nil},
		"TimeZone":       {`query D { nextFireTimes(cron: "* * * * *", timeZone: %s) { times } }`, "TimeZone!", "UTC", nil},
		"JSONObject":     {`mutation D { wakeAgent(input: {agentId: "AGT", userId: "ann", context: %s}) { wakeupRequest { id } } }`, "JSONObject!", map[string]any{"a": "b"}, nil},
		"within a JSONObject": {`mutation D { wakeAgent(input: {agentId: "AGT", userId: "ann", context: {a: [%s]}}) { wakeupRequest { id } } }`, "", "x",
			[]string{"a number", "a fraction", "a truth value", "a list", "an object"}},
		"Decimal": {`mutation D { upsertBudget(input: {subject: {agentId: "AGT"}, limitUsd: %s}) { budget { id } } }`, "Decimal!", "12.5",
			[]string{"a number", "a fraction"}},
		"Cursor":       {`query D { workspace(id: "WSP") { tasks(after: %s) { totalCount } } }`, "Cursor!", out.Workspace.Tasks.PageInfo.EndCursor, nil},
		"StreamCursor": {`subscription D { workspaceActivity(workspaceId: "WSP", after: %s) { id } }`, "StreamCursor!", out.Workspace.EventCursor, nil},
	}
	kinds := []struct {
		name, literal string
		value         any
	}{
		{"a text", `"x"`, "x"}, {"a number", `5`, json.Number("5")}, {"a fraction", `5.5`, json.Number("5.5")}, {"a truth value", `true`, true},
		{"a word without quotes", `HIGH`, nil}, {"a list", `[["x", 5]]`, []any{[]any{"x", 5}}}, {"an object", `{a: "b"}`, map[string]any{"a": "b"}},
		{"a text of digits", `"5"`, "5"}, {"a text of truth", `"true"`, "true"},
	}
	isKind := map[string][]string{ // which of them are of the scalar's own kind, whatever they say
		"String": {"a text", "a text of digits", "a text of truth"}, "Markdown": {"a text", "a text of digits", "a text of truth"},
		"CronExpression": {"a text", "a text of digits", "a text of truth"}, "TimeZone": {"a text", "a text of digits", "a text of truth"},
		"Decimal": {"a text", "a text of digits", "a text of truth"}, "within a JSONObject": {"a text", "a text of digits", "a text of truth"},
		"Int": {"a number"}, "Boolean": {"a truth value"}, "JSONObject": {"an object"},
	}
	refused := func(operation string, variables map[string]any) bool {
		if strings.HasPrefix(operation, "subscription") {
			return w.isRefused(operation, variables)
		}
		_, errs := w.Try(t.Context(), operation, variables)
		return len(errs) > 0
	}
	state := `SELECT (SELECT count(*) FROM tasks) || ' ' || (SELECT count(*) FROM wakeup_requests) || ' ' || (SELECT string_agg(to_jsonb(a)::text, '') FROM agents a)`
	for _, name := range sortedKeys(fields) {
		f := fields[name]
		inline := func(literal string) string { return fmt.Sprintf(id(f.operation), literal) }
		byVariable := strings.Replace(inline("$v"), " D {", " D($v: "+f.variable+") {", 1)
		for _, k := range kinds {
			if slices.Contains(isKind[name], k.name) || slices.Contains(f.takes, k.name) {
				continue
			}
			before := w.one(state)
			if !refused(inline(k.literal), nil) {
				t.Errorf("%s: %s in the document is taken", name, k.name)
			}
			if k.value != nil && f.variable != "" && !refused(byVariable, map[string]any{"v": k.value}) {
				t.Errorf("%s: %s as a variable is taken", name, k.name)
			}
			if f.variable != "" && !refused(strings.Replace(byVariable, f.variable+")", strings.TrimSuffix(f.variable, "!")+" = "+k.literal+")", 1), nil) {
				t.Errorf("%s: %s as the default of a variable is taken", name, k.name)
			}
			if after := w.one(state); after != before {
				t.Errorf("%s: %s was refused and changed something", name, k.name)
			}
		}
		if name == "StreamCursor" { // it would wait for an entry
			continue
		}
		literal, _ := json.Marshal(f.right)
		if name == "JSONObject" {
			literal = []byte(`{a: "b"}`)
		}
		if strings.Contains(name, "enum") {
			literal = []byte(f.right.(string))
		}
		if _, errs := w.Try(t.Context(), inline(string(literal)), nil); len(errs) > 0 {
			t.Errorf("%s: its own kind in the document: %v", name, errs)
		}
		if f.variable == "" {
			continue
		}
		if _, errs := w.Try(t.Context(), byVariable, map[string]any{"v": f.right}); len(errs) > 0 {
			t.Errorf("%s: its own kind as a variable: %v", name, errs)
		}
	}
}

// isRefused says whether a subscription is refused. One that is taken would wait for news, and is given up.
func (w *world) isRefused(operation string, variables map[string]any) bool {
	ctx, giveUp := context.WithTimeout(w.t.Context(), time.Minute)
	defer giveUp()
	_, errs := w.Subscribe(ctx, operation, variables)()
	return len(errs) > 0 && ctx.Err() == nil
}

func sortedKeys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A member of an input by one variable for the whole input is held to the same.
func TestMembersOfAnInputAreHeldToTheirScalars(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const create = `mutation($input: CreateTaskInput!) { createTask(input: $input) { task { id } userErrors { message } } }`
	for name, c := range map[string]struct {
		more    map[string]any
		refused bool
	}{
		"a number as a String":          {map[string]any{"title": json.Number("5")}, true},
		"a truth value as Markdown":     {map[string]any{"description": true}, true},
		"a number as Markdown":          {map[string]any{"description": json.Number("7")}, true},
		"a text as a Boolean":           {map[string]any{"requiresApproval": "true"}, true},
		"a number as a Boolean":         {map[string]any{"requiresApproval": json.Number("1")}, true},
		"a number as an ID":             {map[string]any{"assigneeId": json.Number("5")}, true},
		"a member that does not exist":  {map[string]any{"Title": "x"}, true},
		"texts of digits and of truth":  {map[string]any{"title": "5", "description": "true"}, false},
		"nothing where nothing must be": {map[string]any{"description": nil, "requiresApproval": nil, "assigneeId": nil}, false},
	} {
		input := map[string]any{"workspaceId": w.workspace, "title": "x"}
		for k, v := range c.more {
			input[k] = v
		}
		if data, errs := w.Try(t.Context(), create, map[string]any{"input": input}); (len(errs) > 0) != c.refused || strings.Contains(string(data), "message") {
			t.Errorf("%s: %s, %v", name, data, errs)
		}
	}
}

// A cost without quotes is charged by its digits: workers of before report so.
func TestADecimalWithoutQuotesIsTakenByItsDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.agent("Ada")
	for literal, want := range map[string]string{`0.1`: "0.100000", `12`: "12.000000", `"7.25"`: "7.250000"} {
		w.must("upsertBudget", "", map[string]any{"subject": map[string]any{"agentId": agent}, "limitUsd": json.RawMessage(literal)})
		if got := w.one(`SELECT limit_usd FROM budget_policies`); got != want {
			t.Errorf("%s is stored as %s, want %s", literal, got, want)
		}
		query := `mutation($a: ID!) { upsertBudget(input: {subject: {agentId: $a}, limitUsd: ` + literal + `}) { userErrors { message } } }`
		if _, errs := w.Try(t.Context(), query, map[string]any{"a": agent}); len(errs) > 0 || w.one(`SELECT limit_usd FROM budget_policies`) != want {
			t.Errorf("%s in the document: %v, stored as %s", literal, errs, w.one(`SELECT limit_usd FROM budget_policies`))
		}
	}
}

// A place is taken to the last byte: what is not what the API wrote is none, in every list and stream.
func TestACursorWithMoreBehindItIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.agent("Ada"))
	w.newTask("Work", nil)
	var out struct {
		Workspace struct {
			EventCursor string
			Tasks       struct{ PageInfo struct{ EndCursor string } }
		}
		Run struct{ EventCursor string }
	}
	w.Do(t.Context(), `query($w: ID!, $r: ID!) { workspace(id: $w) { eventCursor tasks { pageInfo { endCursor } } } run(id: $r) { eventCursor } }`, map[string]any{"w": w.workspace, "r": run}, &out)
	for name, c := range map[string]struct{ operation, cursor string }{
		"a list":            {`query($c: Cursor!) { workspace(id: "WSP") { tasks(after: $c) { totalCount } } }`, out.Workspace.Tasks.PageInfo.EndCursor},
		"a list's end":      {`query($c: Cursor!) { workspace(id: "WSP") { tasks(before: $c, last: 1) { totalCount } } }`, out.Workspace.Tasks.PageInfo.EndCursor},
		"a run's events":    {`query($c: Cursor!) { run(id: "RUN") { events(after: $c) { edges { cursor } } } }`, out.Run.EventCursor},
		"a run's lines":     {`query($c: Cursor!) { run(id: "RUN") { logs(after: $c) { edges { cursor } } } }`, out.Run.EventCursor},
		"a run's stream":    {`subscription($c: StreamCursor!) { runEvents(runId: "RUN", after: $c) { __typename } }`, out.Run.EventCursor},
		"the feed's stream": {`subscription($c: StreamCursor!) { workspaceActivity(workspaceId: "WSP", after: $c) { id } }`, out.Workspace.EventCursor},
	} {
		operation := strings.NewReplacer("WSP", w.workspace, "RUN", run).Replace(c.operation)
		if c.cursor == "" {
			t.Fatalf("%s: no cursor", name)
		}
		for _, cursor := range []string{c.cursor + "AAAA", c.cursor + "A", c.cursor + "=", c.cursor + " ", c.cursor + "\n", " " + c.cursor, c.cursor[:len(c.cursor)-2], ""} {
			try := func() bool {
				if strings.HasPrefix(operation, "subscription") {
					return w.isRefused(operation, map[string]any{"c": cursor})
				}
				_, errs := w.Try(t.Context(), operation, map[string]any{"c": cursor})
				return len(errs) > 0
			}
			if !try() {
				t.Errorf("%s: %q is taken", name, cursor)
			}
		}
		if !strings.HasPrefix(operation, "subscription") {
			if _, errs := w.Try(t.Context(), operation, map[string]any{"c": c.cursor}); len(errs) > 0 {
				t.Errorf("%s: its own cursor: %v", name, errs)
			}
		}
		if c, err := model.UnmarshalCursor(c.cursor); err != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
