package graph

import (
	"fmt"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
)

// eventOf shows an event that ends at a position.
func eventOf(e reads.RunEvent, at position) (*model.RunEvent, error) {
	data, err := objectOrEmpty(e.Data)
	if err != nil {
		return nil, fmt.Errorf("read data of event %d of run %s: %w", e.Seq, at.run, err)
	}
	out := &model.RunEvent{Cursor: at.cursor(), Kind: e.Kind, Data: data, OccurredAt: e.OccurredAt}
	if e.Attempt != 0 {
		out.Attempt = &e.Attempt
	}
	return out, nil
}

func lineOf(l reads.LogRow, at position) *model.RunLogLine {
	return &model.RunLogLine{Cursor: at.cursor(), Stream: l.Stream, Text: l.Text, At: l.At}
}
