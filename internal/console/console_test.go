package console

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// get asks the handler for a path with the given headers, each "Name: value".
func get(t *testing.T, h http.Handler, path string, headers ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder.Result()
}

func bodyOf(t *testing.T, response *http.Response) string {
	t.Helper()
	reader := io.Reader(response.Body)
	if response.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		reader = unzipped
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// assets lists what the page itself names, and every other file of assets/.
func assets(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(dist, "dist/assets/*.gz")
	if err != nil || len(names) == 0 {
		t.Fatalf("no built assets (%v): run `npm ci && npm run build` in internal/console/web", err)
	}
	for i, name := range names {
		names[i] = "/" + strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
	}
	return names
}

func TestEveryFileIsServedWithItsTypeAndCaching(t *testing.T) {
	h := Handler(Options{})
	types := map[string]string{
		"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "ttf": "font/ttf", "svg": "image/svg+xml", "md": "text/plain; charset=utf-8",
	}
	for _, path := range append(assets(t), "/favicon.svg", "/licenses.md", "/") {
		want := types[path[strings.LastIndex(path, ".")+1:]]
		if path == "/" {
			want = "text/html; charset=utf-8"
		}
		response := get(t, h, path, "Accept-Encoding: gzip, deflate, br")
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != want {
			t.Errorf("%s: got %d with %q, want 200 with %q", path, response.StatusCode, response.Header.Get("Content-Type"), want)
		}
		caching := "no-cache"
		if strings.HasPrefix(path, "/assets/") {
			caching = "public, max-age=31536000, immutable"
		}
		if got := response.Header.Get("Cache-Control"); got != caching {
			t.Errorf("%s: Cache-Control %q, want %q", path, got, caching)
		}
		packed := bodyOf(t, response)
		if raw := bodyOf(t, get(t, h, path)); raw != packed || raw == "" {
			t.Errorf("%s: %d bytes from gzip, %d bytes without it", path, len(packed), len(raw))
		}
	}
}

func TestAnAssetIsCachedForEverOnlyBecauseItsNameCarriesAHash(t *testing.T) {
	hashed := regexp.MustCompile(`-[A-Za-z0-9_-]{8}\.(js|css|ttf)$`)
	for _, path := range assets(t) {
		if !hashed.MatchString(path) {
			t.Errorf("%s has no hash in its name", path)
		}
	}
}

func TestConditionalRequests(t *testing.T) {
	h := Handler(Options{})
	zipped := get(t, h, "/", "Accept-Encoding: gzip").Header.Get("ETag")
	plain := get(t, h, "/").Header.Get("ETag")
	if zipped == "" || zipped == plain {
		t.Fatalf("each encoding needs an ETag of its own, got %q and %q", zipped, plain)
	}
	for name, test := range map[string]struct {
		header string
		status int
	}{
		"the same tag":           {zipped, http.StatusNotModified},
		"the same tag made weak": {"W/" + zipped, http.StatusNotModified},
		"among others":           {`"x", ` + zipped, http.StatusNotModified},
		"any":                    {"*", http.StatusNotModified},
		"another encoding's tag": {plain, http.StatusOK},
		"another tag":            {`"x"`, http.StatusOK},
	} {
		response := get(t, h, "/", "Accept-Encoding: gzip", "If-None-Match: "+test.header)
		body := bodyOf(t, response)
		if response.StatusCode != test.status || (test.status == http.StatusNotModified) != (body == "") {
			t.Errorf("%s: got %d with %d bytes, want %d", name, response.StatusCode, len(body), test.status)
		}
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	h := Handler(Options{})
	for _, path := range append(assets(t), "/", "/no-such-file", "/assets/", "/index.html", "/../console.go") {
		header := get(t, h, path).Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := strings.Split(header.Get("Content-Security-Policy"), "; ")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "worker-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
			"connect-src 'self' ws://127.0.0.1:8080 wss://127.0.0.1:8080",
		} {
			if !slices.Contains(policy, want) {
				t.Errorf("%s: the policy has no %q: %v", path, want, policy)
			}
		}
	}
}

func TestAHostThatIsNoHostStaysOutOfThePolicy(t *testing.T) {
	for _, host := range []string{"", "a; script-src *", "a b", "a,b", "'self'", "[::1", "a:b", "*", "a/b"} {
		if policy := contentSecurityPolicy(host); !strings.Contains(policy, "connect-src 'self'; ") {
			t.Errorf("host %q got into the policy: %s", host, policy)
		}
	}
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "rouse.example.org"} {
		if policy := contentSecurityPolicy(host); !strings.Contains(policy, " ws://"+host+" wss://"+host+";") {
			t.Errorf("host %q is missing: %s", host, policy)
		}
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	h := Handler(Options{})
	for _, path := range []string{"/index.html", "/index.html.gz", "/assets", "/assets/", "/assets/none.js", "/dist/index.html", "/%2e%2e/console.go", "/graphql"} {
		if response := get(t, h, path); response.StatusCode != http.StatusNotFound || response.Header.Get("ETag") != "" {
			t.Errorf("%s: got %d, want 404", path, response.StatusCode)
		}
	}
}

func TestOtherMethodsAreRefusedAndHeadHasNoBody(t *testing.T) {
	h := Handler(Options{})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	if recorder.Code != http.StatusMethodNotAllowed || recorder.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d, Allow %q", recorder.Code, recorder.Header().Get("Allow"))
	}
	recorder = httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodHead, "/", nil))
	if recorder.Code != http.StatusOK || recorder.Body.Len() != 0 || recorder.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: got %d with %d bytes, Content-Length %q", recorder.Code, recorder.Body.Len(), recorder.Header().Get("Content-Length"))
	}
}

func TestThePageNamesOnlyItsOwnFilesAndHasNoInlineScript(t *testing.T) {
	h := Handler(Options{})
	page := bodyOf(t, get(t, h, "/"))
	for _, tag := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		if strings.TrimSpace(tag[1]) != "" {
			t.Errorf("inline script: %s", tag[0])
		}
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 3 {
		t.Fatalf("the page names %d files", len(links))
	}
	for _, link := range links {
		if path, ok := strings.CutPrefix(link[1], "."); !ok || get(t, h, path).StatusCode != http.StatusOK {
			t.Errorf("the page names %s, which is not served", link[1])
		}
	}
}

func TestThePageSaysWhetherATokenIsNeeded(t *testing.T) {
	open, token := Handler(Options{}), Handler(Options{TokenRequired: true})
	for name, test := range map[string]struct {
		h         http.Handler
		has, lack string
	}{
		"without tokens": {open, openMark, tokenMark},
		"with token":     {token, tokenMark, openMark},
	} {
		for _, header := range []string{"Accept-Encoding: gzip", "Accept-Encoding: identity"} {
			page := bodyOf(t, get(t, test.h, "/", header))
			if !strings.Contains(page, test.has) || strings.Contains(page, test.lack) {
				t.Errorf("%s (%s): the page is %s", name, header, page)
			}
		}
	}
	if a, b := get(t, open, "/").Header.Get("ETag"), get(t, token, "/").Header.Get("ETag"); a == b {
		t.Error("two different pages share an ETag")
	}
}

func TestAcceptEncoding(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "deflate": false, "*": true, "*;q=0": false,
		"xgzip": false, "gzip;q=nonsense": false,
	} {
		if got := acceptsGzip(header); got != want {
			t.Errorf("Accept-Encoding %q: got %v, want %v", header, got, want)
		}
	}
}

func TestTheOperationsAreTenGraphQLDocumentsWithTheirVariables(t *testing.T) {
	names, err := fs.Glob(Operations(), "*.graphql")
	if err != nil || len(names) != 10 {
		t.Fatalf("want ten operations, got %v (%v)", names, err)
	}
	for i, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("%02d-", i+1)) {
			t.Errorf("%s is out of order", name)
		}
		text, err := fs.ReadFile(Operations(), name)
		if err != nil {
			t.Fatal(err)
		}
		document, parseError := parser.ParseQuery(&ast.Source{Name: name, Input: string(text)})
		if parseError != nil || len(document.Operations) != 1 || document.Operations[0].Name == "" {
			t.Errorf("%s is not one named operation: %v", name, parseError)
			continue
		}
		checkVariables(t, name, document.Operations[0])
	}
}

// checkVariables holds the JSON file beside the operation against what the operation declares.
func checkVariables(t *testing.T, name string, operation *ast.OperationDefinition) {
	t.Helper()
	text, err := fs.ReadFile(Operations(), strings.TrimSuffix(name, ".graphql")+".json")
	if err != nil {
		t.Error(err)
		return
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		t.Errorf("variables of %s: %v", name, err)
	}
	for _, definition := range operation.VariableDefinitions {
		if _, given := values[definition.Variable]; definition.Type.NonNull && !given {
			t.Errorf("%s needs $%s, which its variables do not give", name, definition.Variable)
		}
		delete(values, definition.Variable)
	}
	if len(values) > 0 {
		t.Errorf("%s does not declare %v", name, values)
	}
}

func TestThePageWasBuiltFromItsSources(t *testing.T) {
	sums, err := os.ReadFile("web/build.sum")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = true
		source, err := os.ReadFile("web/" + name)
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(source)) != sum {
			t.Errorf("web/%s is not what the page was built from (%v): run `npm ci && npm run build` in internal/console/web", name, err)
		}
	}
	names, err := fs.Glob(Operations(), "*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no operations: %v", err)
	}
	for _, name := range names {
		if !listed["operations/"+name] {
			t.Errorf("web/operations/%s is not in the page: run `npm ci && npm run build` in internal/console/web", name)
		}
	}
}
