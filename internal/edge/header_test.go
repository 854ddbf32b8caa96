package edge

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestWhatIsARequest(t *testing.T) {
	for name, tt := range map[string]struct {
		read string
		want bool
	}{
		"nothing has come":                                    {"", false},
		"a part of the first line":                            {"GET /graphql", false},
		"the first line":                                      {"GET / HTTP/1.1\r\n", false},
		"lines, and not the empty one":                        {"GET / HTTP/1.1\r\nHost: x\r\n", false},
		"a header that never ends":                            {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 60<<10), false},
		"a whole header":                                      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
		"a whole header and a part of a body":                 {"POST / HTTP/1.1\r\nHost: x\r\n\r\n{", true},
		"a whole header with line ends of one byte":           {"GET / HTTP/1.1\nHost: x\n\n", true},
		"a header that is too long":                           {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", longestHeader), true},
		"a first line that is none will never be a request":   {"hello\r\n", true},
		"another protocol will never be a request":            {"\x16\x03\x01\x02", true},
		"a method in small letters will never be one, either": {"get / HTTP/1.1\r\n", true},
	} {
		if got := isAsk([]byte(tt.read), 0); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
		for n := range len(tt.read) { // in two pieces, cut anywhere near the end
			if n > len(tt.read)-5 && !isAsk([]byte(tt.read[:n]), 0) && isAsk([]byte(tt.read), n) != tt.want {
				t.Errorf("%s, in pieces of %d and %d bytes: %t", name, n, len(tt.read)-n, !tt.want)
			}
		}
	}
}

func TestTheTokenOfARequest(t *testing.T) {
	for name, tt := range map[string]struct{ header, want string }{
		"the usual form":                      {"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer rse_1\r\n\r\n", "rse_1"},
		"any case, no blank, short line ends": {"GET / HTTP/1.1\nauthorization:bearer rse_1\n\n", "rse_1"},
		"no header of that name":              {"GET / HTTP/1.1\r\nX-Authorization: Bearer rse_1\r\n\r\n", ""},
		"another scheme":                      {"GET / HTTP/1.1\r\nAuthorization: Basic cm9v\r\n\r\n", ""},
		"a body is no header":                 {"POST / HTTP/1.1\r\nHost: x\r\n\r\nAuthorization: Bearer rse_1\r\n", ""},
		"nothing after the name":              {"GET / HTTP/1.1\r\nAuthorization:\r\n\r\n", ""},
		"nothing at all":                      {"", ""},
	} {
		if got := tokenIn([]byte(tt.header)); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A client may send its header as slowly as it likes within its time, and nonsense is answered at once.
func TestAHeaderMayComeInPieces(t *testing.T) {
	strangers := NewStrangers(StrangerLimits{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	server := NewHTTPServer(t.Context(), echo, slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- server.Serve(strangers.Listener(l)) }()
	for name, tt := range map[string]struct {
		pieces []string
		status int
		body   string
	}{
		"byte for byte":     {strings.Split("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", ""), 200, "hello"},
		"a long header":     {[]string{"POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 50<<10), "\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"}, 200, "hello"},
		"a header too long": {[]string{"POST / HTTP/1.1\r\nHost: x\r\nX: ", strings.Repeat("x", 100<<10)}, 431, "the header of the request has more than 64 KiB"},
		"no request":        {[]string{"hel", "lo\r\n"}, 400, "the request is not well-formed HTTP"},
		"two at once":       {[]string{"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() {
				for _, piece := range tt.pieces {
					_, _ = io.WriteString(c, piece) // who has sent too much is not heard to the end
				}
			}()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body) // cut off where the rest was not read
			if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.body) {
				t.Errorf("%d %q", resp.StatusCode, body)
			}
		})
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
