package domain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// namePattern is what a placeholder may name: a variable, or a path of parts with dots between them.
const namePattern = `[A-Za-z_][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_-]{1,64}){0,9}`

// placeholder is a variable or a path in a template; blanks inside the braces do not matter.
var placeholder = regexp.MustCompile(`\{\{[ \t]*(` + namePattern + `)[ \t]*\}\}`)

// Placeholders is the names of the variables that texts use, each once, in order of first use.
func Placeholders(texts ...string) []string {
	var names []string
	seen := map[string]bool{}
	for _, text := range texts {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			if name := match[1]; !seen[name] {
				names, seen[name] = append(names, name), true
			}
		}
	}
	return names
}

// Undeclared is the names that a template uses and nobody declared, built-ins left out. Template may be nil.
func Undeclared(declared []RoutineVariable, template *TaskTemplate) []string {
	if template == nil {
		return nil
	}
	known := map[string]bool{}
	for _, v := range declared {
		known[v.Name] = true
	}
	return slices.DeleteFunc(Placeholders(template.Title, template.Description), func(name string) bool { return isBuiltIn(name) || known[name] || isPath(name) })
}

// Declared is the declarations that saving a template leaves: those given, and an optional TEXT for each other name
// that the template uses (SPEC S4.8).
func Declared(declared []RoutineVariable, template *TaskTemplate) []RoutineVariable {
	all := slices.Clone(declared)
	for _, name := range Undeclared(declared, template) {
		all = append(all, RoutineVariable{Name: name, Type: VariableTypeText})
	}
	return all
}

// Render puts values in place of {{name}}. A name without a value stays as written; what a value holds is not looked at
// again, so that no value can pull in another. A text may name a value many times, so Render stops once the text is
// longer than limit bytes. It then returns a beginning that is longer by a rune at most, for CutText to mark.
func Render(text string, values map[string]string, limit int) string {
	var out strings.Builder
	reader := newValueReader(values)
	add := func(part string) { out.WriteString(CutText(part, max(limit+utf8.UTFMax-out.Len(), 0), "")) }
	at := 0
	for at < len(text) && out.Len() <= limit {
		found := placeholder.FindStringSubmatchIndex(text[at:])
		if found == nil {
			add(text[at:])
			break
		}
		add(text[at : at+found[0]])
		value, ok := reader.at(text[at+found[2] : at+found[3]])
		if !ok {
			value = text[at+found[0] : at+found[1]]
		}
		add(value)
		at += found[1]
	}
	return out.String()
}

// cutMark ends a text that was cut since what is filled in makes it longer than a task's may be.
const cutMark = " [… cut at 64 KiB: what is filled in makes it longer]"

// renderText is a text with values in place, as it can be stored, of at most limit bytes.
func renderText(text string, values map[string]string, limit int) string {
	return CutText(StorableText(Render(text, values, limit)), limit, cutMark)
}

// RenderTask fills in a routine's template for the task of a fire, within the bounds that CheckTaskTexts sets for any
// task. The title is one line, cut at MaxTaskTitle characters. The description is cut at 64 KiB, before the sentence
// about missed slots. A title that comes out empty is the routine's name.
func RenderTask(name string, template TaskTemplate, values map[string]string, slot SlotFire) TaskTemplate {
	told := MissedText(slot.Missed)
	if late := LateText(slot.LateBy); late != "" {
		told += "\n\n" + late
	}
	template.Title = cmp.Or(cutTitle(StorableText(Render(template.Title, values, maxTaskDescription))), cutTitle(name))
	template.Description = renderText(template.Description, values, maxTaskDescription-len(told)) + told
	return template
}

func cutTitle(title string) string {
	if title = onOneLine(title); utf8.RuneCountInString(title) > MaxTaskTitle {
		return strings.TrimSpace(FirstRunes(title, MaxTaskTitle))
	}
	return title
}

// FireText is what a lightweight fire asks for: the routine's description as it was when it fired, with its values
// filled in. It is cut at the bound of a task's description.
func FireText(description string, values map[string]string) string {
	return renderText(description, values, maxTaskDescription)
}

// RenderFire is what a fire without missed slots hands on: the task of a heavy routine, or a lightweight one's name and
// text.
func RenderFire(name, description string, template *TaskTemplate, values map[string]string) TaskTemplate {
	if template != nil {
		return RenderTask(name, *template, values, SlotFire{})
	}
	return TaskTemplate{Title: name, Description: FireText(description, values)}
}

// MissedText is what the task of a heavy fire says of slots that were left out; "" when there are none.
func MissedText(m Missed) string {
	if m.Ticks == 0 {
		return ""
	}
	count := fmt.Sprint(m.Ticks)
	if m.Truncated {
		count = "at least " + count
	}
	return fmt.Sprintf("\n\nYou missed %s ticks since %s.", count, m.Since.UTC().Format(time.RFC3339))
}
