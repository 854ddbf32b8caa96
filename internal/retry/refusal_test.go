package retry

import (
	"testing"

	"rouse.dev/rouse/internal/domain"
)

// SPEC S8.8: what programs say of their account. Lines with a version were said by that program when it was refused.
func TestWhatAProgramSaysOfItsAccount(t *testing.T) {
	const none domain.RunErrorCode = ""
	auth, billing := domain.RunErrorCodeAuth, domain.RunErrorCodeBilling
	for _, c := range []struct {
		program, words string
		want           domain.RunErrorCode
	}{
		{"Claude Code 2.1.332", "Invalid API key · Fix external API key", auth},
		{"Claude Code 2.1.332", "Not logged in · Please run /login", auth},
		{"Claude Code 2.1.332", "Failed to authenticate: OAuth token revoked. Please log in again or contact your administrator.", auth},
		{"Claude Code", `API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}`, auth},
		{"Claude Code 2.1.332", "Credit balance is too low", billing},
		{"Anthropic", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", billing},
		{"codex 0.171.0", "unexpected status 401 Unauthorized: Incorrect API key provided: sk-test. You can find your API key at https://platform.openai.com/account/api-keys., url: http://127.0.0.1/v1/responses", auth},
		{"codex", "Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again.", auth},
		{"codex", "Missing environment variable: `OPENAI_API_KEY`.", auth},
		{"codex 0.171.0", "Quota exceeded. Check your plan and billing details.", billing},
		{"codex 0.171.0", "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.", billing},
		{"OpenAI", `429 {"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, billing},
		{"Gemini CLI 0.61.0", `[API Error: {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, auth},
		{"Gemini CLI 0.61.0", "Invalid auth method selected.", auth},
		{"Gemini CLI", "Please set an Auth method in your settings.json or specify one of the following environment variables before running: GEMINI_API_KEY", auth},
		{"Gemini CLI", "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.", auth},
		{"opencode", "AI_LoadAPIKeyError: Anthropic API key is missing.", auth},
		{"aider", "litellm.AuthenticationError: AnthropicException - invalid x-api-key", auth},
		{"the protocol", "Authentication required", auth},
		{"Copilot CLI 1.0.102", "Authentication failed with provider at http://127.0.0.1:38979/v1 (HTTP 401).", auth},
		{"OpenRouter", "402 Payment Required: insufficient credits", billing},

		{"a limit of Codex", "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at Dec 5th, 2026 8:06 AM.", none},
		{"a limit of Gemini", "You exceeded your current quota, please check your plan and billing details. Please retry in 21.5s.", none},
		{"a limit of Claude", "You've hit your weekly limit · resets Dec 3, 5:36am (UTC)", none},
		{"an overload", "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.", none},
		{"a server's error", "unexpected status 503 Service Unavailable: overloaded, url: http://127.0.0.1/v1/responses", none},
		{"a repository", "fatal: Authentication failed for 'https://github.com/acme/app.git/'", none},
		{"a registry", "npm error code E401", none},
		{"a page about keys", "see the documentation of API keys and billing", none},
		{"a number", "line 401: unexpected token", none},
		{"a lost session", "No conversation found with session ID: 5f1c", none},
		{"nothing", "", none},
	} {
		if got := Refusal(c.words); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.program, c.words, got, c.want)
		}
	}
}
