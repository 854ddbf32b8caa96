package retry

import (
	"regexp"

	"rouse.dev/rouse/internal/domain"
)

// What the programs of agents say when a provider refuses their account. The words are whole phrases of theirs, because an agent's
// tools write about keys and accounts, too. Billing comes first: its messages also speak of quotas and keys.
var refusals = []struct {
	code  domain.RunErrorCode
	words *regexp.Regexp
}{
	{domain.RunErrorCodeBilling, regexp.MustCompile(`(?i)\bcredit balance is too low|\bbilling_error\b|\binsufficient_quota\b|quota exceeded\. check your plan and billing` +
		`|\binsufficient (?:credits|funds|balance)\b|\bbilling (?:hard limit|is not (?:enabled|active))|\bpayment required\b|to use codex with your chatgpt plan, upgrade` +
		`|\bout of credits\b|subscription (?:has expired|is (?:not active|inactive|required))|\brequires? a paid plan\b|\bexceeded your monthly included credits\b`)},
	{domain.RunErrorCodeAuth, regexp.MustCompile(`(?i)invalid (?:x-)?api[ -]key\b|invalid_api_key|incorrect api key|api[ _]key[ _](?:not valid|invalid|is missing|expired)|\bnot logged in\b|please run /login|please (?:log|sign) in again` +
		`|failed to authenticate|\bauthentication_(?:failed|error)\b|\bauthentication ?error\b|\bauthentication required\b|invalid (?:authentication credentials|bearer token)|oauth token (?:has )?(?:been )?(?:revoked|expired)` +
		`|unexpected status 401\b|\b401 unauthorized\b|\bunauthenticated\b|missing environment variable: .{1,60}(?:key|token)|(?:set|select|specify|choose) (?:an|the) auth(?:entication)? method|invalid auth method|must specify the .{1,40} environment variable` +
		`|\bauthentication failed with provider\b|access token could not be refreshed|refresh token (?:was|has)|loadapikeyerror|no (?:api|auth).{0,20} (?:credentials|key) (?:found|configured)|api key was reported as leaked|token refresh failed: 401`)},
}

// Refusal is the class of an error in which a provider refuses the agent's account: AUTH when it is not logged in or its key is bad,
// BILLING when it has no credit or its plan does not cover the work. It is "" for any other words. They are an error's, as for
// IsRateLimit.
func Refusal(words string) domain.RunErrorCode {
	text := plain(words)
	for _, r := range refusals {
		if r.words.MatchString(text) {
			return r.code
		}
	}
	return ""
}
