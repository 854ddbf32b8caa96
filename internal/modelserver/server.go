// Package modelserver is a model that does what the prompt says, for tests that run real agent programs without an account. It
// speaks the interfaces of Anthropic (Messages), OpenAI (Chat Completions and Responses) and Gemini (generateContent), whole or
// as a stream, and listens wherever the test puts its handler: on a loopback address.
//
// The prompt has a line for each answer of the model, in their order:
//
//	@@say {"summary":"done"}
//	@@tool Bash {"command":"ls"}
//	@@status 429 retry-after=60 Too many requests
//	@@wait
//
// A tool whose name begins with * is the offered one that ends so, since programs name the tools of a server each in their own way. In
// its input, {{id of NAME}} is the id that stands right before that name in what was asked: as a model would have read it in a list.
//
// A line of say holds \n where its text has a line break. wait holds the answer back until the caller goes away.
package modelserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Server answers as a model. The zero value is ready. It is safe for concurrent use.
type Server struct {
	mu    sync.Mutex
	calls []Call
	key   string
	heard func(Call)
}

// Call is one request of an agent that the server answered.
type Call struct {
	API    string // messages, chat, responses or gemini
	Path   string
	Step   Step
	Tools  []string // the names of the tools that were offered
	Prompt string   // what the user said last
}

// RequireKey makes the server refuse callers with another key than this one.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// OnCall has f called with each request, before it is answered.
func (s *Server) OnCall(f func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = f
}

// Calls are the requests that were answered so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// api is one of the interfaces that models have.
type api interface {
	name() string
	// read takes what was asked.
	read(body []byte) (asked, error)
	// answer writes what the model says, as one object or as a stream of events.
	answer(w http.ResponseWriter, a asked, step Step)
	// refuse writes an error as this interface writes it.
	refuse(w http.ResponseWriter, step Step)
}

// asked is a request in the words that all interfaces share.
type asked struct {
	model  string
	stream bool
	turns  []turn // the conversation, oldest first
	tools  []string
}

// id is one of this answer alone: programs take two parts of a conversation with one id for the same.
func (a asked) id(prefix string) string { return prefix + strconv.Itoa(len(a.turns)) }

// turn is something that was said in a conversation.
type turn struct {
	model bool // said by the model, rather than by the user
	text  string
}

// step is what the model is to do: the line of the newest prompt that no answer has followed yet.
func (a asked) step() (step Step, prompt string) {
	answers := 0
	for i := len(a.turns) - 1; i >= 0; i-- {
		if a.turns[i].model {
			answers++
			continue
		}
		if steps := Steps(a.turns[i].text); len(steps) > 0 {
			return steps[min(answers, len(steps)-1)], a.turns[i].text
		}
		if prompt == "" {
			prompt = a.turns[i].text
		}
	}
	return Step{Kind: Say, Text: "There is nothing to do."}, prompt
}

// ServeHTTP answers every interface below one address.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := apiOf(r.URL.Path)
	if r.Method != http.MethodPost || kind == nil {
		serveOthers(w, r)
		return
	}
	body, err := readBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := kind.read(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.stream = a.stream || strings.Contains(r.URL.Path, ":streamGenerateContent")
	step, prompt := a.step()
	step = step.fit(a.tools, body)
	s.mu.Lock()
	if s.key != "" && !hasKey(r, s.key) {
		step = Step{Kind: Status, Code: http.StatusUnauthorized, Text: "invalid x-api-key"}
	}
	call := Call{kind.name(), r.URL.Path, step, a.tools, prompt}
	s.calls = append(s.calls, call)
	heard := s.heard
	s.mu.Unlock()
	if heard != nil {
		heard(call)
	}
	switch step.Kind {
	case Wait:
		<-r.Context().Done()
	case Status:
		if step.RetryAfter != "" {
			w.Header().Set("Retry-After", step.RetryAfter)
		}
		for _, h := range step.Headers {
			name, value, _ := strings.Cut(h, "=")
			w.Header().Set(name, value)
		}
		kind.refuse(w, step)
	default:
		kind.answer(w, a, step)
	}
}

func apiOf(path string) api {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return messages{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}
	}
	return nil
}

// serveOthers answers what programs ask beside: lists of models, counts of tokens, and what they tell of themselves.
func serveOthers(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		write(w, map[string]any{"object": "list", "data": []any{}, "models": []any{}, "has_more": false})
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		write(w, map[string]any{"totalTokens": inputTokens})
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		write(w, map[string]any{"input_tokens": inputTokens})
	default:
		http.Error(w, `{"error":{"message":"not found"}}`, http.StatusNotFound)
	}
}

func hasKey(r *http.Request, key string) bool {
	for _, sent := range []string{r.Header.Get("x-api-key"), r.Header.Get("x-goog-api-key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL.Query().Get("key")} {
		if sent == key {
			return true
		}
	}
	return false
}

// What each answer costs, so that a test can reckon with it.
const (
	inputTokens  = 100 // those from the cache included
	cachedTokens = 40
	outputTokens = 11
)

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // whoever has gone away needs no answer
}

// refuseWith writes a refusal as the member error of an object. One that the prompt writes as an object is sent as it is.
func refuseWith(w http.ResponseWriter, step Step, whole, refusal map[string]any) {
	var given map[string]any
	if json.Unmarshal([]byte(step.Text), &given) == nil {
		refusal = given
	}
	whole["error"] = refusal
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(step.Code)
	write(w, whole)
}

// event writes one event of a stream; name "" leaves its name out.
func event(w http.ResponseWriter, name string, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte(strconv.Quote(err.Error()))
	}
	if name != "" {
		_, _ = w.Write([]byte("event: " + name + "\n"))
	}
	_, _ = w.Write([]byte("data: " + string(raw) + "\n\n"))
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
