//go:build unix

package executor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/outbound"
)

func TestSignatureIsTheOneOfWebhooks(t *testing.T) {
	// HMAC-SHA256 with the key "s3cr3t" of "1700000000.{}", as openssl dgst computes it.
	if got := sign("s3cr3t", "1700000000", []byte("{}")); got != "dd8508e44d9a9f82f2690fb7dff1da8a6ae99700d98a23a4e7e1c307af3cb6cb" {
		t.Errorf("got %s", got)
	}
}

// The signatures are those that the library of Standard Webhooks for Node makes.
func TestSignaturesOfStandardWebhooks(t *testing.T) {
	for secret, want := range map[string]string{
		"a secret of 20 bytes":                   "v1,l5PEyN7zOUv2lou5Z4LOs1X+T8159GxJBxcDtbT3Ux4=",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "v1,Co/gO4v/gSZfDIKaWGOrRubDK7n0mdsEc+mrCSAZDlU=",
	} {
		h := http.Header{}
		signRequest(h, Request{RunID: "run_1", Attempt: 2, Secret: secret}, time.Unix(1_700_000_000, 0), []byte("{}"))
		if h.Get("Webhook-Signature") != want || h.Get("Webhook-Id") != "run_1/2" || h.Get("Webhook-Timestamp") != "1700000000" {
			t.Errorf("%s: %v", secret, h)
		}
	}
	if got := outbound.StandardKey("whsec_not base64!"); string(got) != "whsec_not base64!" {
		t.Errorf("a secret that only looks like one is %q", got)
	}
}

// A service that uses the library verifies what the executor sends, and refuses what was changed.
func TestTheLibraryOfStandardWebhooksVerifiesCalls(t *testing.T) {
	dir := standardWebhooks(t)
	for name, secret := range map[string]string{"any secret": "a secret of the service", "one of the standard": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		var body []byte
		headers := map[string]string{}
		url := service(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			for _, h := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
				headers[h] = r.Header.Get(h)
			}
			write(200, `{"summary":"s"}`)(w, r)
		})
		req := callOf(url)
		req.Secret = secret
		if _, err := NewHTTP(loopback).Run(t.Context(), req, &recorder{}); err != nil {
			t.Fatal(err)
		}
		known := secret
		if !strings.HasPrefix(secret, "whsec_") {
			known = base64.StdEncoding.EncodeToString([]byte(secret))
		}
		if out, err := verify(t, dir, known, string(body), headers); err != nil || !strings.Contains(out, `"runId":"run_1"`) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		if out, err := verify(t, dir, known, string(body)+" ", headers); err == nil {
			t.Errorf("%s: what was changed is verified: %s", name, out)
		}
	}
}

// standardWebhooks installs the library.
func standardWebhooks(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "standardwebhooks", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("this test needs Node 20 with npm (Debian: apt-get install nodejs npm): %v\n%s", err, out)
	}
	return dir
}

func verify(t *testing.T, dir, secret, body string, headers map[string]string) (string, error) {
	t.Helper()
	call, err := json.Marshal(map[string]any{"secret": secret, "body": body, "headers": headers})
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "verify.mjs")
	node.Dir, node.Stdin = dir, bytes.NewReader(call)
	out, err := node.CombinedOutput()
	return string(out), err
}
