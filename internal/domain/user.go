package domain

import "strings"

// MaxUserID is the most characters of the id by which a front end names a person.
const MaxUserID = 150

// CheckUserID finds what is wrong with the id by which a front end names a person; field is where it stands. A token's id is none:
// the feed shows what was done by a token under that id, and nobody speaks for another one's.
func CheckUserID(id string, field ...string) []FieldError {
	problems := NotOneLine("a user's id", id, field...)
	if len([]rune(id)) > MaxUserID {
		problems = append(problems, FieldError{Field: field, Code: UserErrorCodeTooLong, Message: "must be at most 150 characters"})
	}
	if len(id) >= len(tokenPrefix) && strings.EqualFold(id[:len(tokenPrefix)], tokenPrefix) {
		problems = append(problems, FieldError{Field: field, Code: UserErrorCodeInvalid,
			Message: "is the id of a person, as the front end knows them, and no token's: leave it out, and the feed names the token that calls"})
	}
	return problems
}

// tokenPrefix begins the ids of API tokens.
const tokenPrefix = "tok_"
