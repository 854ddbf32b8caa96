package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/tokenfile"
)

// Server is a server that works on the database.
type Server struct {
	Name          string // for people
	Standby, Open bool   // it wakes nobody; it asks for no token
}

// Servers says which servers work on this database. When none runs, that is not a fault, because the doctor is also
// called before the first start. standby says that all of them are on standby.
func (r *Report) Servers(servers []Server, err error) (standby bool) {
	var names []string
	for _, s := range servers {
		name := s.Name
		if s.Open {
			name = "open " + name
		}
		names = append(names, name)
	}
	running := strings.Join(names, "; ")
	switch {
	case err != nil:
		r.Fail("server", err, "may this account read pg_stat_activity?")
	case len(servers) == 0:
		r.Pass("server", "no server works on this database: nothing is woken until `rouse serve` runs")
	case !slices.ContainsFunc(servers, func(s Server) bool { return !s.Standby }):
		standby = true
		r.Pass("server", running+": it serves the API alone, and nothing is woken until `rouse serve` runs without --standby")
	default:
		r.Pass("server", running)
	}
	for _, s := range servers {
		if s.Open {
			r.Pass("access", s.Name+" asks for no token (--auth none): every process of its machine, agents too, can do everything; nothing may pass requests on to it")
		}
	}
	return standby
}

// Token says whether the database accepts the token of the data folder.
func (r *Report) Token(ctx context.Context, s *store.Store, dir string) {
	path := tokenfile.Path(dir)
	token, err := tokenfile.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.Pass("access", "there is no "+path+" yet, the token of this data folder: a start of `rouse serve` makes it")
		return
	}
	if err != nil {
		r.Fail("access", err, rotateHint)
		return
	}
	known, err := s.TokenByDigest(ctx, token.Digest().String())
	switch {
	case err != nil:
		r.Fail("access", err, "see the log of PostgreSQL")
	case known == nil:
		r.Fail("access", fmt.Errorf("the token in %s is revoked, or of another database", path), rotateHint)
	default:
		r.Pass("access", fmt.Sprintf("the token in %s counts (%s)", path, known.ID))
	}
}

// rotateHint is what helps where the token of the data folder does not count.
const rotateHint = "`rouse token rotate-local` makes another, and so does the next start of `rouse serve`"
