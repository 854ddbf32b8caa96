package modelserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func post(t *testing.T, s *Server, path, body string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	r := w.Result()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(raw)
}

// The steps of a prompt are done one after the other, in each interface, whole and as a stream.
func TestThePromptSaysWhatTheModelDoes(t *testing.T) {
	const prompt = `Do it.\n@@tool Bash {\"command\":\"ls\"}\n@@say one\\ntwo\n@@status 429 retry-after=60 x-limit=5 Too many requests`
	for name, c := range map[string]struct{ path, first, second, third string }{
		"messages": {"/v1/messages", `{"messages":[{"role":"user","content":[{"type":"text","text":"` + prompt + `"}]}]}`,
			`{"messages":[{"role":"user","content":"` + prompt + `"},{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result","content":"a"}]}]}`,
			`{"messages":[{"role":"user","content":"` + prompt + `"},{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}]}`},
		"chat": {"/v1/chat/completions", `{"messages":[{"role":"system","content":"@@say no"},{"role":"user","content":"` + prompt + `"}]}`,
			`{"messages":[{"role":"user","content":"` + prompt + `"},{"role":"assistant","content":null},{"role":"tool","content":"a"}]}`,
			`{"messages":[{"role":"user","content":"` + prompt + `"},{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}]}`},
		"responses": {"/v1/responses", `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"` + prompt + `"}]}]}`,
			`{"input":[{"role":"user","content":"` + prompt + `"},{"type":"function_call","name":"Bash"},{"type":"function_call_output","output":"a"}]}`,
			`{"input":[{"role":"user","content":"` + prompt + `"},{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}]}`},
		"gemini": {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]},{"role":"model","parts":[{"functionCall":{}}]},{"role":"user","parts":[{"functionResponse":{}}]}]}`,
			`{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]},{"role":"model","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"y"}]}]}`},
	} {
		s := &Server{}
		for _, stream := range []bool{false, true} {
			path, streamed := c.path, func(body string) string { return body }
			if stream {
				path = strings.Replace(c.path, ":generate", ":streamGenerate", 1)
				streamed = func(body string) string { return `{"stream":true,` + body[1:] }
			}
			if r, body := post(t, s, path, streamed(c.first)); r.StatusCode != 200 || !strings.Contains(body, "Bash") || !strings.Contains(body, "command") {
				t.Errorf("%s, stream %t: the tool: %d %s", name, stream, r.StatusCode, body)
			}
			if r, body := post(t, s, path, streamed(c.second)); r.StatusCode != 200 || !strings.Contains(body, `one\ntwo`) || strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") != stream {
				t.Errorf("%s, stream %t: the words: %d %s", name, stream, r.StatusCode, body)
			}
			if r, body := post(t, s, path, streamed(c.third)); r.StatusCode != 429 || r.Header.Get("Retry-After") != "60" || r.Header.Get("X-Limit") != "5" || !strings.Contains(body, "Too many requests") {
				t.Errorf("%s, stream %t: the refusal: %d %v %s", name, stream, r.StatusCode, r.Header, body)
			}
		}
		if calls := s.Calls(); len(calls) != 6 || calls[0].API != name || calls[1].Step.Kind != Say {
			t.Errorf("%s: the calls are %+v", name, calls)
		}
	}
}

// Two uses of a tool have two ids, because programs take two of one id for the same.
func TestEachUseOfAToolHasAnIDOfItsOwn(t *testing.T) {
	s := &Server{}
	const prompt = `{"role":"user","content":"@@tool Bash {}\n@@tool Bash {}"}`
	_, first := post(t, s, "/v1/messages", `{"messages":[`+prompt+`]}`)
	_, second := post(t, s, "/v1/messages", `{"messages":[`+prompt+`,{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result"}]}]}`)
	if !strings.Contains(first, `"toolu_1"`) || !strings.Contains(second, `"toolu_3"`) {
		t.Errorf("%s\n%s", first, second)
	}
}

// Prompts that no answer has followed stand in one message: the newest is what the model is asked.
func TestTheNewestPromptCounts(t *testing.T) {
	s := &Server{}
	_, body := post(t, s, "/v1/messages", `{"messages":[{"role":"user","content":[{"type":"text","text":"@@status 401 no"},{"type":"text","text":"@@say yes"}]}]}`)
	if !strings.Contains(body, "yes") {
		t.Error(body)
	}
}

func TestAModelWithoutAPromptHasNothingToDo(t *testing.T) {
	s := &Server{}
	if r, body := post(t, s, "/v1/messages", `{"messages":[{"role":"user","content":"hello"}]}`); r.StatusCode != 200 || !strings.Contains(body, "nothing to do") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	if r, _ := post(t, s, "/v1/messages", `{`); r.StatusCode != 400 {
		t.Errorf("nonsense is answered with %d", r.StatusCode)
	}
	if r, _ := post(t, s, "/v1/elsewhere", `{}`); r.StatusCode != 404 {
		t.Errorf("an unknown path is answered with %d", r.StatusCode)
	}
	s.RequireKey("k")
	for header, want := range map[string]int{"": 401, "k": 200} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader([]byte(`{"messages":[{"role":"user","content":"hello"}]}`)))
		r.Header.Set("x-api-key", header)
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("the key %q is answered with %d", header, w.Code)
		}
	}
}

// A refusal that is written as an object is what the provider answers, in each interface.
func TestARefusalThatIsAnObjectIsSentAsItIs(t *testing.T) {
	const prompt = `@@status 429 {\"code\":429,\"details\":[{\"retryDelay\":\"7s\"}]}`
	for path, body := range map[string]string{
		"/v1/messages":                     `{"messages":[{"role":"user","content":"` + prompt + `"}]}`,
		"/v1/chat/completions":             `{"messages":[{"role":"user","content":"` + prompt + `"}]}`,
		"/v1/responses":                    `{"input":"` + prompt + `"}`,
		"/v1beta/models/m:generateContent": `{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]}]}`,
	} {
		if r, got := post(t, &Server{}, path, body); r.StatusCode != 429 || !strings.Contains(got, `"error":{"code":429,"details":[{"retryDelay":"7s"}]}`) {
			t.Errorf("%s: %d %s", path, r.StatusCode, got)
		}
	}
}
