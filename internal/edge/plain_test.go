package edge

import (
	"strings"
	"testing"
)

func TestMessagesAreInTheWordsOfTheAPI(t *testing.T) {
	for message, want := range map[string]string{
		"cannot decode cursor: msgpack: invalid code=7e decoding map length":          "this is not a cursor: send one that",
		"[]interface {} is not a string":                                              "send a text in quotes, not a list",
		"map[string]interface {} is not a string":                                     "send a text in quotes, not an object",
		"json.Number is not a bool":                                                   "send true or false, not a number",
		"bool is not an int":                                                          "send a whole number, not true or false",
		"float64 is not an int":                                                       "send a whole number, not a number",
		"[]interface {} is not an float":                                              "send a number, not a list",
		`strconv.ParseInt: parsing "99999999999999999999": value out of range`:        "cannot use this as a number",
		`strconv.ParseInt: parsing "1.5": invalid syntax`:                             "cannot use this as a number",
		"cannot use value 0 as Int":                                                   "cannot use this as a number",
		"cannot use slice as String":                                                  "cannot use a list as String",
		"cannot use string as Boolean":                                                "cannot use this value as Boolean",
		"must be a CreateAgentInput, not a slice":                                     "send an object of type CreateAgentInput, not a list",
		"enums must be ints or strings":                                               "send one of the enum's values",
		"an id is a string such as run_01J":                                           "an id is a string such as run_01J",
		`"wat" is not a Duration: want ISO 8601 without months and years, e.g. PT10M`: `"wat" is not a Duration: want ISO 8601`,
		"the thing is not a string":                                                   "the thing is not a string",
	} {
		if got := plain(message); !strings.HasPrefix(got, want) {
			t.Errorf("%q became %q", message, got)
		}
	}
}

func TestBadValuesAreExplainedWithoutGo(t *testing.T) {
	f := newFixture(t, Options{})
	for name, tt := range map[string]struct {
		query     string
		variables any
	}{
		"a list for a text":                {`{echo(s:["a"])}`, nil},
		"an object for a list of numbers":  {`query($l:[[Int!]]){echo(list:$l)}`, map[string]any{"l": map[string]any{"a": 1}}},
		"a list for a text in a variable":  {`query($s:String){echo(s:$s)}`, map[string]any{"s": []any{"a"}}},
		"a fraction for a whole number":    {`query($n:Int){echo(n:$n)}`, map[string]any{"n": 1.5}},
		"a text for a number":              {`query($f:Float){echo(f:$f)}`, map[string]any{"f": "x"}},
		"a number too large":               {`{echo(n:99999999999999999999)}`, nil},
		"a number too large in a variable": {`query($n:Int){echo(n:$n)}`, map[string]any{"n": 1e30}},
		"a list for an object":             {`query($p:Pick!){pick(by:$p)}`, map[string]any{"p": []any{1}}},
		"an object for an enum":            {`query($o:Order){sort(order:$o)}`, map[string]any{"o": map[string]any{}}},
		"a list for a scalar of ours":      {`query($a:Instant){echo(at:$a)}`, map[string]any{"a": []any{}}},
	} {
		r := f.ask(t, tt.query, tt.variables)
		message, _ := r.at("errors", 0, "message").(string)
		if message == "" || r.code() == CodeInternal {
			t.Errorf("%s: %s", name, r.text)
		}
		for _, word := range []string{"interface", "json.", "strconv", "slice", "map", "msgpack", "%!"} {
			if strings.Contains(message, word) {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("[]interface {} is not a string")
	f.Add("cannot use map as Int")
	f.Fuzz(func(t *testing.T, message string) {
		once := plain(message)
		if again := plain(once); again != once {
			t.Errorf("%q, %q, %q", message, once, again)
		}
	})
}
