package graph

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

const (
	feedDoc   = "../docs/activity.md"
	tableFrom = "| Code | Told when | Always | Sometimes |\n"
)

// feedTable is the table of codes as the documentation has it: the schema's words, and the details that the program keeps to.
func feedTable() string {
	var b strings.Builder
	b.WriteString(tableFrom + "|---|---|---|---|\n")
	for _, v := range publicSchema().Types["ActivityCode"].EnumValues {
		d := domain.ActivityDetailsOf(domain.ActivityCode(v.Name))
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, v.Description, quoted(d.Always), quoted(d.Sometimes))
	}
	return b.String()
}

func quoted(members []string) string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = "`" + m + "`"
	}
	return strings.Join(out, ", ")
}

// The documentation lists every code with its details, as the program writes them, and says what each detail means.
func TestTheDocumentationOfTheFeedIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(feedDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableFrom)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatalf("%s has no table that begins with %s", feedDoc, tableFrom)
	}
	if want := before + feedTable() + "\n" + after; want != string(text) {
		if !*update {
			t.Errorf("%s does not have the codes as they are: run go test ./graph -run TestTheDocumentationOfTheFeed -update", feedDoc)
		} else if err := os.WriteFile(feedDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\|").FindAllStringSubmatch(after, -1) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			explained[m[1]] = true
		}
	}
	used := map[string]bool{}
	for _, code := range domain.ActivityCode("").Values() {
		d := domain.ActivityDetailsOf(domain.ActivityCode(code))
		for _, m := range slices.Concat(d.Always, d.Sometimes) {
			if used[m] = true; !explained[m] {
				t.Errorf("%s does not say what %s of %s means", feedDoc, m, code)
			}
		}
	}
	for m := range explained {
		if !used[m] {
			t.Errorf("%s explains %s, which no entry has", feedDoc, m)
		}
	}
}
