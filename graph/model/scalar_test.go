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
		if year := at.UTC().Year(); year < 0 || year > 9999 {
			return // it has no RFC 3339
		}
		var out strings.Builder
		MarshalDateTime(at).MarshalGQL(&out)
		again, err := UnmarshalDateTime(strings.Trim(out.String(), `"`))
		if err != nil || again.Sub(at).Abs() >= time.Millisecond {
			t.Errorf("%q is %v, written %s and read again %v, %v", s, at, out.String(), again, err)
		}
	})
}
