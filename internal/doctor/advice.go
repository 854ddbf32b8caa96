package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/store/reads"
)

// advice says of a workspace's active routines what to think about. It is no fault: each does what it was told to.
func (r *Report) advice(ctx context.Context, s *store.Store, w *ent.Workspace) {
	list, err := s.AdvisedRoutines(ctx, w.ID)
	if err != nil {
		r.Tell(w.Slug, domain.Check{Name: "routines", Detail: err.Error(), Hint: "see the log of PostgreSQL"})
		return
	}
	for _, c := range adviceChecks(list) {
		r.Tell(w.Slug, c)
	}
}

// adviceChecks are findings about routines: one for each code of advice, with the first routines that it is about.
func adviceChecks(list []reads.AdvisedRoutine) (checks []domain.Check) {
	names, texts := map[domain.AdvisoryCode][]string{}, map[domain.AdvisoryCode]string{}
	for _, x := range list {
		for _, a := range domain.AdviseRoutine(x.RoutineAdviceFacts) {
			names[a.Code] = append(names[a.Code], x.Name)
			texts[a.Code] = cmp.Or(texts[a.Code], a.Message)
		}
	}
	for _, code := range domain.AdvisoryCode("").Values() {
		about := names[domain.AdvisoryCode(code)]
		if len(about) == 0 {
			continue
		}
		shown := slices.Clone(about[:min(len(about), advisedShown)])
		if more := len(about) - len(shown); more > 0 {
			shown = append(shown, fmt.Sprintf("and %d more", more))
		}
		checks = append(checks, domain.Check{Name: "routines", OK: true, Detail: fmt.Sprintf("%s: %d of %d active routines: %s", code, len(about), len(list), strings.Join(shown, ", ")),
			Hint: texts[domain.AdvisoryCode(code)]})
	}
	return checks
}

// advisedShown is how many routines a finding names.
const advisedShown = 3
