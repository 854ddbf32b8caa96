package edge

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// packFrom is the length from which an answer is worth packing.
const packFrom = 1 << 10 // bytes

var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// pack compresses an answer with gzip when it is long and the caller takes it. A page of another origin gains nothing by its length: who may not read
// the answer has no token to ask with.
func pack(h http.Header, r *http.Request, body []byte) []byte {
	if len(body) < packFrom {
		return body
	}
	h.Add("Vary", "Accept-Encoding")
	if !takesGzip(r.Header.Get("Accept-Encoding")) {
		return body
	}
	var out bytes.Buffer
	w := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	w.Reset(&out)
	_, err := w.Write(body)
	if closing := w.Close(); err != nil || closing != nil || out.Len() >= len(body) {
		return body
	}
	h.Set("Content-Encoding", "gzip")
	return out.Bytes()
}

// takesGzip reads Accept-Encoding: what names gzip counts before what names any coding, and quality 0 is a refusal.
func takesGzip(header string) bool {
	any := false
	for part := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(part, ";")
		quality := 1.0
		if text, given := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q="); given {
			if q, err := strconv.ParseFloat(text, 64); err == nil {
				quality = q
			}
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return quality > 0
		case "*":
			any = quality > 0
		}
	}
	return any
}
