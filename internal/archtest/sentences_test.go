package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longestSentence is in words.
const longestSentence = 25

// TestNoSentenceOfThePagesIsTooLong fails on a sentence that a stranger would have to read twice. Code blocks and tables are
// not sentences, and a sentence of a list ends with its item.
func TestNoSentenceOfThePagesIsTooLong(t *testing.T) {
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md")}
	for _, pattern := range []string{"*.md", filepath.Join("decisions", "*.md")} {
		found, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil || len(found) < 15 {
			t.Fatalf("%d pages match docs/%s: %v", len(found), pattern, err)
		}
		pages = append(pages, found...)
	}
	total := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentences(string(text)) {
			total++
			if n := len(s.words); n > longestSentence {
				t.Errorf("%s:%d: a sentence of %d words; cut it in two: %s", page, s.line, n, strings.Join(s.words, " "))
			}
		}
	}
	if total < 2000 {
		t.Errorf("%d sentences were found: the pages were not read", total)
	}
}

func TestSentencesAreToldApart(t *testing.T) {
	const text = "# A heading\n\nOne two, e.g. three `a. b c`\nfour [five six](x.md#y). Six!\n\n" +
		"| a table | of. cells |\n- an item: it ends\n  here\n- **Bold.** Another (in brackets.) Last\n1. numbered\n> Quoted: v1.2 is 1 %. Word\n" +
		"```sh\nnot this. nor this\n```\n<a id=\"x\"></a>Behind – a dash"
	want := []sentence{
		{1, []string{"A", "heading"}}, {3, []string{"One", "two,", "e.g.", "three", "code", "four", "five", "six."}}, {4, []string{"Six!"}},
		{7, []string{"an", "item:", "it", "ends", "here"}}, {9, []string{"Bold."}}, {9, []string{"Another", "(in", "brackets.)"}},
		{9, []string{"Last"}}, {10, []string{"numbered"}}, {11, []string{"Quoted:", "v1.2", "is", "1"}}, {11, []string{"Word"}}, {15, []string{"Behind", "a", "dash"}},
	}
	if got := sentences(text); !slices.EqualFunc(got, want, func(a, b sentence) bool { return a.line == b.line && slices.Equal(a.words, b.words) }) {
		t.Errorf("found %v\nwant  %v", got, want)
	}
}

// sentence is one sentence of a page, with the line on which it begins.
type sentence struct {
	line  int
	words []string
}

var (
	fenceLine  = regexp.MustCompile("^\\s*(```|~~~)")
	blockLine  = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.|#{1,6}|>)\s+`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)\s]*\)`)
	htmlTag    = regexp.MustCompile(`</?[a-z][^>]*>`)
	spoken     = regexp.MustCompile(`[\pL\pN]`)
	// sentenceEnd is a word that closes a sentence, with the marks that may stand behind the stop.
	sentenceEnd  = regexp.MustCompile(`[.!?][*_)"'”]*$`)
	abbreviation = regexp.MustCompile(`^\(?(?:e\.g|i\.e|vs|cf)\.$`)
)

// sentences cuts a page of Markdown into its sentences. A code span counts as one word.
func sentences(page string) []sentence {
	var found []sentence
	var open sentence
	end := func() {
		if len(open.words) > 0 {
			found = append(found, open)
		}
		open = sentence{}
	}
	inCode := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case fenceLine.MatchString(line):
			inCode = !inCode
			end()
			continue
		case inCode:
			continue
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "|"):
			end()
			continue
		case blockLine.MatchString(line):
			end()
			line = blockLine.ReplaceAllString(line, "")
		}
		for _, word := range strings.Fields(withoutMarkup(line)) {
			if spoken.MatchString(word) {
				if len(open.words) == 0 {
					open.line = i + 1
				}
				open.words = append(open.words, word)
			}
			if sentenceEnd.MatchString(word) && !abbreviation.MatchString(word) {
				end()
			}
		}
	}
	end()
	return found
}

// withoutMarkup leaves of a line's code spans, links and tags what is read as words.
func withoutMarkup(line string) string {
	line = codeSpan.ReplaceAllString(line, "code")
	line = linkTarget.ReplaceAllString(line, "]")
	line = htmlTag.ReplaceAllString(line, "")
	return strings.NewReplacer("[", "", "]", "", "**", "").Replace(line)
}
