package prompt

import (
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// taskContext shows the task as it stands: text, open blockers, children, and the newest earlier comments as background.
func taskContext(task Task, wakes []Wake) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## The task: %s\n\n", named(task.Title, task.ID))
	fmt.Fprintf(&b, "State: %s", oneLine(string(task.State)))
	if task.Project != "" {
		fmt.Fprintf(&b, ", project: %s", oneLine(task.Project))
	}
	b.WriteString("\n")
	var rest strings.Builder
	section(&rest, "Open blockers, which must end first:", references(task.Blockers))
	section(&rest, "Subtasks:", references(task.Children))
	section(&rest, "", background(task, wakes))
	left := maxTaskSection - b.Len() - rest.Len() - len("\nDescription:\n\n")
	section(&b, "Description:", quote(task.Description, max(maxDescription, left)))
	return b.String() + rest.String()
}

func section(b *strings.Builder, title, body string) {
	if body == "" {
		return
	}
	b.WriteString("\n" + lines(title, body) + "\n")
}

// background shows the newest comments that did not wake this run. Those that did stand in full above (C109).
func background(task Task, wakes []Wake) string {
	woke := map[string]bool{}
	for _, wake := range wakes {
		if p, ok := wake.Payload.(*domain.CommentPayload); ok {
			woke[p.CommentID] = true
		}
	}
	var others []Comment
	for _, comment := range task.Comments {
		if !woke[comment.ID] {
			others = append(others, comment)
		}
	}
	// Comments may hold a part of them only; the count then includes those that woke the run.
	total := max(len(others), task.CommentCount-len(woke))
	if total == 0 {
		return ""
	}
	others = others[max(0, len(others)-maxBackground):]
	parts := []string{fmt.Sprintf("Earlier comments, as background (the newest %d of %d):", len(others), total)}
	if len(others) == total {
		parts[0] = "Earlier comments, as background:"
	}
	for _, comment := range others {
		parts = append(parts, fmt.Sprintf("%s, %s:", orElse(oneLine(comment.Author), "Somebody"), instant(comment.At)),
			quote(comment.Body, maxBackgroundComment))
	}
	return lines(parts...)
}
