package model

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestValuesOfAnotherKindAreExplainedWithoutGo(t *testing.T) {
	for _, value := range []any{nil, true, json.Number("1"), []any{}, int64(5)} {
		_, dateTime := UnmarshalDateTime(value)
		_, duration := UnmarshalDuration(value)
		_, object := UnmarshalJSONObject(value)
		for want, err := range map[string]error{"2026-04-25T09": dateTime, "PT10M": duration, "{": object} {
			if err == nil || !strings.Contains(err.Error(), "send") || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", value, err)
			}
			for _, word := range []string{"interface", "json.", "bool", "int64", "nil"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%v: %v", value, err)
				}
			}
		}
	}
}

func TestAnInstantIsReadInUTCWhateverItsOffset(t *testing.T) {
	for text, want := range map[string]string{
		"2026-04-25T09:00:00.000Z": "2026-04-25T09:00:00Z", "2026-04-25T09:00:00+23:59": "2026-04-24T09:01:00Z",
		"2026-04-25T09:00:00-16:00": "2026-04-26T01:00:00Z", "9999-12-31T23:59:59+00:01": "9999-12-31T23:58:59Z",
		"0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z", "0000-12-31T23:59:59-00:01": "0001-01-01T00:00:59Z",
	} {
		if at, err := UnmarshalDateTime(text); err != nil || at.Location() != time.UTC || at.Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %v, %v, want %s", text, at, err, want)
		}
	}
	for _, text := range []string{"9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01"} {
		if at, err := UnmarshalDateTime(text); err == nil || !strings.Contains(err.Error(), "year") {
			t.Errorf("%s is %v, %v, want an error", text, at, err)
		}
	}
}

// FuzzDateTime: an instant that is read is read again as it is written, to the millisecond.
func FuzzDateTime(f *testing.F) {
	for _, s := range []string{"2026-04-25T09:00:00.000Z", "2026-04-25T09:00:00+13:45", "9999-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00Z", "2026-04-25", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := UnmarshalDateTime(s)
		if err != nil {
			return
		}
		var out strings.Builder
		MarshalDateTime(at).MarshalGQL(&out)
		again, err := UnmarshalDateTime(strings.Trim(out.String(), `"`))
		if err != nil || again.Sub(at).Abs() >= time.Millisecond {
			t.Errorf("%q is %v, written %s and read again %v, %v", s, at, out.String(), again, err)
		}
	})
}

func TestANumberThatNothingHoldsIsNoJSON(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"x":1}`: true, `{"x":1e300}`: true, `{"x":123456789012345678901234567890}`: true, `{"x":"1e200000"}`: true,
		`{"x":1e200000}`: false, `{"x":-1e400}`: false, `{"a":[{"b":[1,1e400]}]}`: false,
	} {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if _, err := UnmarshalJSONObject(v); (err == nil) != ok || err != nil && len(err.Error()) > 200 {
			t.Errorf("%s: %v", text, err)
		}
	}
}
