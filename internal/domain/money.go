package domain

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Money is an amount in US dollars, in millionths: exact, like the numeric(18,6) it is stored in.
type Money int64

const (
	microsPerDollar = 1_000_000
	moneyDecimals   = 6
	// MaxMoney is the largest amount that is stored: a trillion dollars less a millionth.
	MaxMoney Money = 1_000_000_000_000*microsPerDollar - 1
)

// ParseMoney reads a decimal that is not negative, such as "12.345". More than six decimals are refused, not rounded.
func ParseMoney(text string) (Money, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, fmt.Errorf("%q is not an amount: write dollars as a decimal, such as 12.50", shorten(text))
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > moneyDecimals {
		return 0, fmt.Errorf("%q has more than six decimals", shorten(text))
	}
	whole = strings.TrimLeft(whole, "0")
	if len(whole) > 12 {
		return 0, fmt.Errorf("%q is too much: an amount is below a trillion dollars", shorten(text))
	}
	var m Money
	for _, d := range whole + fraction + strings.Repeat("0", moneyDecimals-len(fraction)) {
		m = m*10 + Money(d-'0')
	}
	return m, nil
}

// digits says whether a text is one or more decimal digits.
func digits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// Dollars is the amount as a float, for figures that nobody adds up.
func (m Money) Dollars() float64 { return float64(m) / microsPerDollar }

// String is the shortest decimal of the amount, such as "12.345".
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", int64(m%microsPerDollar)), "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	return fmt.Sprintf("%s%d%s", sign, int64(m/microsPerDollar), fraction)
}

// Percent is the amount as a percentage of whole, with one decimal. It is rounded down, so that an amount below a
// threshold never looks as if it had reached it. Of nothing, everything is 100.
func (m Money) Percent(whole Money) float64 {
	if whole <= 0 {
		return 100
	}
	high, low := times(m, 1000)
	if high >= uint64(whole) { // above 10^19 thousandths
		return math.Floor(float64(m)/float64(whole)*1000) / 10
	}
	thousandths, _ := bits.Div64(high, low, uint64(whole))
	return float64(thousandths) / 10
}

// reaches says exactly whether the amount is at least percent of whole.
func (m Money) reaches(percent int, whole Money) bool {
	high, low := times(m, 100)
	needHigh, needLow := times(whole, percent)
	return high > needHigh || high == needHigh && low >= needLow
}

// times is a product in 128 bits, which no amount and no percentage overflow; what is negative counts as 0.
func times(m Money, n int) (high, low uint64) {
	return bits.Mul64(uint64(max(m, 0)), uint64(max(n, 0)))
}
