package domain

import "testing"

func TestParseMoney(t *testing.T) {
	for text, want := range map[string]Money{
		"0": 0, "1": 1_000_000, "12.345": 12_345_000, "0.000001": 1, "007.50": 7_500_000, "1.1000000000": 1_100_000,
		"999999999999.999999": MaxMoney,
	} {
		got, err := ParseMoney(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0000001", "1000000000000", "٣", "1.5.2", " 1"} {
		if got, err := ParseMoney(text); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func TestPercentOfMoney(t *testing.T) {
	for _, c := range []struct {
		name         string
		spent, limit Money
		percent      float64
		reaches80    bool
	}{
		{"C88 799 of 1000", 799, 1000, 79.9, false},
		{"C88 800 of 1000", 800, 1000, 80, true},
		{"just below the threshold does not round up to it", 799_999_999, 1_000_000_000, 79.9, false},
		{"more than all", 1500, 1000, 150, true},
		{"of nothing", 0, 0, 100, true},
		{"the largest amounts do not overflow", MaxMoney, MaxMoney, 100, true},
		{"a limit that 100 does not divide", 2, 3, 66.6, false},
		{"a limit that 100 does not divide, reached", 3, 3, 100, true},
	} {
		if got := c.spent.Percent(c.limit); got != c.percent {
			t.Errorf("%s: %v %%, want %v", c.name, got, c.percent)
		}
		if got := c.spent.reaches(80, c.limit); got != c.reaches80 {
			t.Errorf("%s: reaches 80 %% is %v", c.name, got)
		}
	}
}

// Amounts and percentages multiply to more than 64 bits hold.
func TestThresholdsOfLargeAmountsAreExact(t *testing.T) {
	for _, c := range []struct {
		name    string
		spent   Money
		percent int
		limit   Money
		want    bool
	}{
		{"a millionth of ten times 990 billion", 1, 1000, 990_000_000_000 * microsPerDollar, false},
		{"all of ten times 990 billion", MaxMoney, 1000, 990_000_000_000 * microsPerDollar, false},
		{"a tenth of the largest amount", MaxMoney / 10, 10, MaxMoney, false},
		{"a tenth of it and a millionth", MaxMoney/10 + 1, 10, MaxMoney, true},
		{"all of the largest amount", MaxMoney, 100, MaxMoney, true},
		{"a millionth less", MaxMoney - 1, 100, MaxMoney, false},
		{"a percentage that none may be set to", MaxMoney, 1 << 62, MaxMoney, false},
		{"nothing of nothing", 0, 80, 0, true},
	} {
		if got := c.spent.reaches(c.percent, c.limit); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for _, c := range []struct {
		spent, limit Money
		want         float64
	}{{MaxMoney - 1, MaxMoney, 99.9}, {57, 100, 57}, {MaxMoney, 1, float64(MaxMoney) * 100}, {0, MaxMoney, 0}} {
		if got := c.spent.Percent(c.limit); got != c.want {
			t.Errorf("%d of %d is %v %%, want %v", c.spent, c.limit, got, c.want)
		}
	}
}

func FuzzParseMoney(f *testing.F) {
	for _, text := range []string{"0", "12.345", "999999999999.999999", "1.", "1e9", "00.10"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMoney(text)
		if err != nil {
			return
		}
		if m < 0 || m > MaxMoney {
			t.Fatalf("%q is %d", text, m)
		}
		if again, err := ParseMoney(m.String()); err != nil || again != m {
			t.Fatalf("%q is written %s and read %d, %v", text, m, again, err)
		}
	})
}
