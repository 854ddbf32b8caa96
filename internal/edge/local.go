package edge

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// LocalOnly guards a server that asks for no token and listens on loopback. What a proxy or a tunnel passes on is
// refused, since its callers may be anywhere. A web page anywhere can send requests there through the browser of the
// person at this machine. So a request passes only when its Host is loopback, which a page that points its own name at
// 127.0.0.1 (DNS rebinding) cannot arrange. It must not come from a page of another origin either. Others get 403 with
// the reason and a way out.
func LocalOnly(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch header := forwarded(r.Header); {
		case header != "":
			forbid(w, "this request was passed on by a proxy or a tunnel (it carries "+header+"), and so may come from anywhere. "+
				"This server asks for no token (--auth none) and answers only to programs of its own machine. "+wayOut)
		case !r.ProtoAtLeast(1, 1): // nginx, with a proxy_pass alone, sends no header that tells of it, and the Host of where it passes on to
			forbid(w, "this request was made by HTTP/1.0, as proxies do that say nothing of themselves, and so may come from anywhere. "+
				"This server asks for no token (--auth none) and answers only to programs of its own machine, by HTTP/1.1. "+wayOut)
		case !isLoopback(r.Host):
			forbid(w, "the Host of this request is not loopback. Without tokens (--auth none) this server answers only to localhost, 127.0.0.1 and [::1], "+
				"because another name may be a web page that points at your machine (DNS rebinding). Open it as http://localhost. "+wayOut)
		case !isLocalOrigin(r.Header.Get("Origin")):
			forbid(w, "this request comes from a web page that is not on this machine (see its Origin). Without tokens (--auth none) this server answers only to "+
				"pages it serves itself. Use the console of this server. "+wayOut)
		case cross.Check(r) != nil || isCrossSiteRead(r):
			forbid(w, "this request comes from a web page of another origin. Without tokens (--auth none) this server answers only to pages it serves itself, "+
				"so that no other page can act in your name. Use the console of this server. "+wayOut)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// wayOut ends each refusal.
const wayOut = "To let others in, start it without --auth none: then callers send a token"

// forwarded names a header by which proxies and tunnels say for whom they ask; "" for none.
func forwarded(h http.Header) string {
	for name := range h {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return name
		}
	}
	return ""
}

func forbid(w http.ResponseWriter, why string) { http.Error(w, why, http.StatusForbidden) }

// isLoopback reads a Host header: localhost or a loopback address, with or without a port.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// isLocalOrigin lets through requests without Origin (not a page, or a page's plain navigation). "null", a sandboxed page, is not local.
func isLocalOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Host)
}

// isCrossSiteRead finds the GETs that CrossOriginProtection takes for safe: a page of another site that loads this one
// as a script or picture, or opens a WebSocket. Following a link does not count as such a request.
func isCrossSiteRead(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
