package model

import (
	"encoding/json"
	"strings"
	"testing"
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
