package edge

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLongAnswersArePackedForWhoTakesIt(t *testing.T) {
	f := newFixture(t, Options{})
	const long = introspectionQuery
	for _, tt := range []struct {
		name, accept, query string
		packed              bool
	}{
		{"a long answer", "gzip", long, true},
		{"among others", "br, gzip;q=0.5", long, true},
		{"whatever it be", "*", long, true},
		{"without a wish", "", long, false},
		{"refused", "gzip;q=0, *", long, false},
		{"another coding", "zstd, br", long, false},
		{"a short answer", "gzip", "{hello}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newPost(requestBody(tt.query, nil))
			r.Header.Set("Accept-Encoding", tt.accept)
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != tt.packed || w.Code != http.StatusOK {
				t.Fatalf("status %d, headers %v", w.Code, w.Header())
			}
			if vary := strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding"); vary != (tt.query == long) {
				t.Errorf("Vary: %v", w.Header().Values("Vary"))
			}
			body := io.Reader(w.Body)
			if tt.packed {
				var err error
				if body, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := io.ReadAll(body); err != nil || !strings.HasPrefix(string(text), `{"data":{`) {
				t.Errorf("%v: %.100s", err, text)
			}
		})
	}
}

func TestCodedBodiesAreRefused(t *testing.T) {
	f := newFixture(t, Options{})
	for coding, want := range map[string]int{"gzip": 415, "deflate, gzip": 415, "br": 415, "identity": 200, "": 200} {
		r := newPost(requestBody("{hello}", nil))
		r.Header.Set("Content-Encoding", coding)
		if got := do(t, f, r); got.status != want || want == 415 && (got.code() != CodeBadRequest || got.header.Get("Accept-Encoding") != "identity") {
			t.Errorf("%q: %d %s", coding, got.status, got.text)
		}
	}
}
