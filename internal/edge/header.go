package edge

import (
	"bytes"
	"strings"
)

// longestHeader is how much of a request is read before http.Server has it; that bounds headers by itself then.
const longestHeader = maxHeader + 4<<10

// isAsk says whether a server can answer what has been read of a connection: the header of a request is whole, or will never be one. The first
// bytes, up to from, were looked at before.
func isAsk(read []byte, from int) bool {
	if len(read) >= longestHeader {
		return true
	}
	rest := read[max(0, from-3):]
	if bytes.Contains(rest, []byte("\n\r\n")) || bytes.Contains(rest, []byte("\n\n")) {
		return true
	}
	return len(read) > 0 && isNonsense(read)
}

// isNonsense says that no request begins so: who speaks another protocol, TLS say, is to hear it at once.
func isNonsense(read []byte) bool {
	if first := read[0]; first < 'A' || first > 'Z' {
		return true
	}
	line, _, whole := bytes.Cut(read, []byte("\n"))
	return whole && !bytes.Contains(line, []byte(" HTTP/"))
}

// tokenIn is the bearer token in the header of a request, "" when there is none.
func tokenIn(header []byte) string {
	const name = "authorization:"
	for line := range bytes.Lines(header) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return ""
		}
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			token, _ := bearer(strings.TrimSpace(string(line[len(name):]))) // what is none is refused by who answers it
			return token
		}
	}
	return ""
}
