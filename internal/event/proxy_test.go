package event_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
)

// proxy stands between a hub and the database, so that a test can take the database away from it alone.
type proxy struct {
	t       *testing.T
	url     string
	target  [2]string // network, address
	mu      sync.Mutex
	changed *sync.Cond
	state   state
	links   []*link
	tries   int // connections refused or left without an answer
	silent  int // bytes swallowed while frozen
}

type state int

const (
	open   state = iota
	closed       // connections are cut at once
	frozen       // new connections stay open and nothing passes
)

// link is one connection through the proxy.
type link struct {
	near, far net.Conn
	frozen    bool // guarded by the proxy's mutex
}

func newProxy(t *testing.T, address string) *proxy {
	t.Helper()
	config, err := pq.NewConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: [2]string{"tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))}}
	if strings.HasPrefix(config.Host, "/") {
		p.target = [2]string{"unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)}
	}
	p.changed = sync.NewCond(&p.mu)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	p.url = u.String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.down()
		all.Wait()
	})
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	if p.current() == closed {
		p.count(&p.tries, 1)
		return
	}
	back, err := net.Dial(p.target[0], p.target[1])
	if err != nil {
		p.t.Errorf("dial the database: %v", err)
		return
	}
	defer back.Close()
	l := p.link(c, back)
	var both sync.WaitGroup
	both.Go(func() { p.pass(l, back, c) })
	both.Go(func() { p.pass(l, c, back) })
	both.Wait()
}

func (p *proxy) link(near, far net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{near: near, far: far, frozen: p.state == frozen}
	p.links = append(p.links, l)
	if l.frozen {
		p.tries++
		p.changed.Broadcast()
	}
	return l
}

// pass copies until either side ends.
func (p *proxy) pass(l *link, to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if p.swallows(l, n) {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) current() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// swallows reports whether the n bytes vanish on the way.
func (p *proxy) swallows(l *link, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.frozen {
		p.silent += n
		p.changed.Broadcast()
	}
	return l.frozen
}

func (p *proxy) count(of *int, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*of += n
	p.changed.Broadcast()
}

func (p *proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.tries, p.silent = s, 0, 0
	if s == closed {
		for _, l := range p.links {
			_ = l.near.Close()
			_ = l.far.Close()
		}
		p.links = nil
	}
}

func (p *proxy) up()         { p.set(open) }
func (p *proxy) down()       { p.set(closed) }
func (p *proxy) freezeNext() { p.set(frozen) }

// freeze stops the connections of now without a word; those made later pass.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.frozen = true
	}
}

func (p *proxy) awaitTries(n int) { p.awaitCount(&p.tries, n) }
func (p *proxy) awaitSilence()    { p.awaitCount(&p.silent, 1) }

func (p *proxy) awaitCount(of *int, n int) {
	late := time.AfterFunc(patience, func() { p.count(of, n); p.t.Errorf("waited %s for the hub's tries", patience) })
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for *of < n {
		p.changed.Wait()
	}
}
