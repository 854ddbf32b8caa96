package edge

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/domain"
)

// refusal is the answer to a request that was not executed: errors, no data.
type refusal struct {
	status int
	// soft: with application/json the status is 200, as clients from before the draft expect.
	soft   bool
	errors gqlerror.List
}

func refuse(status int, code, format string, args ...any) *refusal {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	return &refusal{status: status, errors: gqlerror.List{e.gql()}}
}

func internalRefusal(requestID string) *refusal {
	return &refusal{status: http.StatusInternalServerError, errors: gqlerror.List{internalError(requestID).gql()}}
}

// refuseRequest gives each class of request errors one status. A document that does not fit the schema has 400, as the
// draft and the graphql-http audits ask. A document that fits, and asks for too much or for something senseless, has
// 422.
func refuseRequest(oc *graphql.OperationContext, errs gqlerror.List, maxErrors int) *refusal {
	if oc.Doc != nil && oc.Operation == nil {
		e := &Error{Code: CodeValidationFailed, Message: "the document has no such operation: name one of its operations in operationName, or leave it out when there is only one"}
		errs = gqlerror.List{e.gql()}
	}
	r := &refusal{status: http.StatusUnprocessableEntity}
	if code, _ := errs[0].Extensions["code"].(string); code == CodeParseFailed || code == CodeValidationFailed {
		r.status, r.soft = http.StatusBadRequest, true
	}
	for _, e := range errs[:min(len(errs), maxErrors)] {
		r.errors = append(r.errors, cleanRequestError(e))
	}
	return r
}

// cleanRequestError keeps an error from carrying back what the request brought: long texts are cut, values of variables left out.
func cleanRequestError(e *gqlerror.Error) *gqlerror.Error {
	out := &gqlerror.Error{Message: clip(plain(e.Message)), Locations: e.Locations, Extensions: e.Extensions}
	for _, p := range e.Path {
		if name, ok := p.(ast.PathName); ok {
			p = ast.PathName(clip(string(name)))
		}
		out.Path = append(out.Path, p)
	}
	if len(e.Path) > 1 && e.Path[0] == ast.PathName("variable") {
		if i := strings.LastIndex(e.Message, " is not a valid "); i >= 0 {
			out.Message = "the value" + clip(e.Message[i:])
		}
		out.Message = clip("variable $" + out.Path[1:].String() + ": " + out.Message) // "must be defined" alone does not say what
	}
	return out
}

// clip keeps a message from carrying back what the request brought: 200 characters in all.
func clip(s string) string { return domain.Brief(s, 200) }
