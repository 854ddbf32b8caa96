// Package console serves the operator's web page: GraphiQL with example operations, built from web/ and embedded. The page holds no
// data and loads nothing from another origin; everything it shows comes from the API, which checks the caller itself.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// The page as `npm ci && npm run build` in web/ makes it: every file gzipped, named <name>.gz.
//
//go:embed all:dist
var dist embed.FS

//go:embed web/operations
var operations embed.FS

const (
	indexName = "index.html"
	// openMark is what the page is built with; a page that needs a token gets tokenMark in its place.
	openMark  = `name="rouse-access" content="open"`
	tokenMark = `name="rouse-access" content="token"`
)

// Options says how the page is to behave.
type Options struct {
	// TokenRequired makes the page ask for a token that it has not. Set it unless the server asks for none.
	TokenRequired bool
}

// Operations holds the page's example operations: NN-name.graphql, and its variables as a JSON object in NN-name.json.
func Operations() fs.FS {
	sub, err := fs.Sub(operations, "web/operations")
	if err != nil {
		panic(err) // the name is a constant of this file
	}
	return sub
}

// Handler serves the page at "/", "/favicon.svg", "/licenses.md" and its scripts and styles under "/assets/"; anything else is 404.
// Mount it with a pattern that the API's patterns outrank ("/"); below another path, use http.StripPrefix and end that path in "/".
// The page calls "graphql" relative to its own address.
func Handler(options Options) http.Handler {
	files, err := load(options)
	if err != nil {
		panic(err) // the embedded files are fixed when the program is built, and a test reads them all
	}
	return handler{files: files}
}

// file is one embedded file in both encodings' terms: packed is gzip; raw is made from it on demand, for the rare caller without gzip.
type file struct {
	packed      []byte
	contentType string
	etag        string // of the raw bytes, quoted
	immutable   bool
}

type handler struct{ files map[string]file }

// load reads the embedded files by the path they are served under, and marks the page as the options say.
func load(options Options) (map[string]file, error) {
	files := map[string]file{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		packed, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "dist/"), ".gz")
		if name == indexName && options.TokenRequired {
			if packed, err = replaced(packed, openMark, tokenMark); err != nil {
				return err
			}
		}
		files["/"+name] = newFile(name, packed)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded console: %w", err)
	}
	files["/"] = files["/"+indexName]
	delete(files, "/"+indexName)
	return files, nil
}

func newFile(name string, packed []byte) file {
	sum := sha256.Sum256(packed)
	return file{
		packed:      packed,
		contentType: contentType(name),
		etag:        `"` + hex.EncodeToString(sum[:16]) + `"`,
		immutable:   strings.HasPrefix(name, "assets/"), // their names carry a hash of their content
	}
}

// contentType is fixed here, since mime.TypeByExtension depends on the machine's tables.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".ttf":
		return "font/ttf"
	case ".md":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// ServeHTTP answers GET and HEAD.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header(), r)
	f, ok := h.files[r.URL.Path]
	if !ok {
		http.Error(w, "404 not found: the console is at /, the API at /graphql", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed: the console answers GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	f.serve(w, r)
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Cache-Control", f.cacheControl())
	header.Add("Vary", "Accept-Encoding")
	body, etag := f.packed, f.etag
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
	} else {
		raw, err := unpacked(f.packed)
		if err != nil {
			http.Error(w, "500 the embedded console is damaged: install rouse again", http.StatusInternalServerError)
			return
		}
		body, etag = raw, strings.TrimSuffix(f.etag, `"`)+`-raw"`
	}
	header.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Type")
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a caller that went away is no error of ours
	}
}

func (f file) cacheControl() string {
	if f.immutable {
		return "public, max-age=31536000, immutable"
	}
	return "no-cache" // ask again each time; the ETag makes that cheap
}

// matches reports whether an If-None-Match header names the tag (RFC 9110, weak comparison).
func matches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip reads an Accept-Encoding header; "gzip;q=0" is a refusal.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		if coding = strings.ToLower(strings.TrimSpace(coding)); coding != "gzip" && coding != "*" {
			continue
		}
		quality, ok := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
		if !ok {
			return true
		}
		q, err := strconv.ParseFloat(quality, 64)
		return err == nil && q > 0
	}
	return false
}

func unpacked(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// replaced is the packed text with one mark replaced by another. The former mark must be there.
func replaced(packed []byte, before, after string) ([]byte, error) {
	raw, err := unpacked(packed)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(raw, []byte(before)) {
		return nil, fmt.Errorf("%s has no %q", indexName, before)
	}
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(bytes.Replace(raw, []byte(before), []byte(after), 1)); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
