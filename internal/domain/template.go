package domain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxTaskTitle is the longest title of a task that a routine makes, in characters (SPEC S4.8).
const MaxTaskTitle = 200

// placeholder is a variable in a template; blanks inside the braces do not matter.
var placeholder = regexp.MustCompile(`\{\{[ \t]*([A-Za-z_][A-Za-z0-9_-]{0,63})[ \t]*\}\}`)

// Placeholders is the names of the variables that texts use, each once, in order of first use.
func Placeholders(texts ...string) []string {
	var names []string
	for _, text := range texts {
		for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, match[1]) {
				names = append(names, match[1])
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
	return slices.DeleteFunc(Placeholders(template.Title, template.Description), func(name string) bool {
		return isBuiltIn(name) || slices.ContainsFunc(declared, func(v RoutineVariable) bool { return v.Name == name })
	})
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

// Render puts values in place of {{name}}. A name without a value stays as written; what a value holds is not looked
// at again, so that no value can pull in another.
func Render(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := placeholder.FindStringSubmatch(match)[1]
		if value, ok := values[name]; ok {
			return value
		}
		return match
	})
}

// RenderTask is the template with values in place, its title on one line and cut at MaxTaskTitle characters.
func RenderTask(template TaskTemplate, values map[string]string) TaskTemplate {
	template.Title = cutTitle(Render(template.Title, values))
	template.Description = Render(template.Description, values)
	return template
}

func cutTitle(title string) string {
	title = strings.TrimSpace(strings.Join(strings.FieldsFunc(title, isLineBreak), " "))
	if utf8.RuneCountInString(title) <= MaxTaskTitle {
		return title
	}
	return string([]rune(title)[:MaxTaskTitle])
}

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// maxFireText bounds the text that a fire keeps, in bytes: a description without long values fits.
const maxFireText = 64 << 10

// FireText is what a lightweight fire asks for: the routine's description with the values in place, as it was when it
// fired.
func FireText(description string, values map[string]string) string {
	return CutText(strings.ToValidUTF8(Render(description, values), "\uFFFD"), maxFireText, " [… cut at 64 KiB: the values make it longer]")
}

// RenderFire is what a fire hands on: the task of a heavy routine, or a lightweight one's name and text.
func RenderFire(name, description string, template *TaskTemplate, values map[string]string) TaskTemplate {
	if template != nil {
		return RenderTask(*template, values)
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
