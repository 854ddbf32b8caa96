package xid

import (
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNewMakesPrefixedIDsThatSortByAge(t *testing.T) {
	var ids []string
	for range 1000 {
		id := New("run")
		if id.Prefix() != "run" {
			t.Fatalf("prefix of %s is %q", id, id.Prefix())
		}
		if _, err := Parse(id.String()); err != nil {
			t.Fatalf("Parse(%s): %v", id, err)
		}
		ids = append(ids, id.String())
	}
	if !sort.StringsAreSorted(ids) {
		t.Error("ids made one after the other do not sort by age")
	}
}

func TestParseRefusesWhatIsNoID(t *testing.T) {
	for _, s := range []string{"", "run", "run_", "_" + strings.Repeat("0", 26), "run_" + strings.Repeat("0", 25), "run_" + strings.Repeat("u", 26),
		"r\x00n_" + strings.Repeat("0", 26), "\xff_" + strings.Repeat("0", 26), "Run_" + strings.Repeat("0", 26), strings.Repeat("r", 17) + "_" + strings.Repeat("0", 26)} {
		if id, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %s, want an error", s, id)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(New("run").String())
	f.Add("run_")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse(s)
		if err == nil && (id.String() != s || id.Prefix() == "" || !utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
			t.Errorf("Parse(%q) = %s", s, id)
		}
	})
}

func TestADerivedIDStandsForItsText(t *testing.T) {
	id := Derived("inb", "agt_1 2026-12-01")
	if _, err := Parse(id.String()); err != nil || id != Derived("inb", "agt_1 2026-12-01") || id == Derived("inb", "agt_1 2026-12-02") {
		t.Errorf("%s: %v", id, err)
	}
}
