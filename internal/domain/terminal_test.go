package domain

import "testing"

func TestWhatATerminalObeysIsNoPartOfALine(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"nothing before it", `{"a":1}`, `{"a":1}`},
		{"blanks", " \t{\"a\":1} \r\n", `{"a":1}`},
		{"a byte order mark", "\ufeff{\"a\":1}", `{"a":1}`},
		{"a colour, and its end behind", "\x1b[1;32m{\"a\":1}\x1b[0m", `{"a":1}`},
		{"a title that a bell ends", "\x1b]0;codex: working\x07{\"a\":1}", `{"a":1}`},
		{"a title that a string terminator ends", "\x1b]2;it says }\x1b\\{\"a\":1}", `{"a":1}`},
		{"a link", "\x1b]8;;https://example.org\x1b\\{\"a\":1}\x1b]8;;\x1b\\", `{"a":1}`},
		{"a device control string", "\x1bP>|kitty\x1b\\{\"a\":1}", `{"a":1}`},
		{"modes of the screen and of pasting", "\x1b[?25h\x1b[?2004l\x1b[2J\x1b[H{\"a\":1}", `{"a":1}`},
		{"a sequence with intermediates", "\x1b(B\x1b[0 q{\"a\":1}", `{"a":1}`},
		{"a saved cursor", "\x1b7\x1b8{\"a\":1}", `{"a":1}`},
		{"one character for two", "\u009b0m\u009d0;title\u009c{\"a\":1}", `{"a":1}`},
		{"a bell and a backspace", "\a\b{\"a\":1}", `{"a":1}`},
		{"a mark behind a sequence", "\x1b[0m\ufeff {\"a\":1}", `{"a":1}`},
		{"a line that is begun anew", "Working… 100 %\r\x1b[K{\"a\":1}", `{"a":1}`},
		{"words before it are the line's text", `note: {"a":1}`, `note: {"a":1}`},
		{"words behind it, too", `{"a":1} done`, `{"a":1} done`},
		{"a sequence within the text", "{\"a\":\"\x1b[1m\"}", "{\"a\":\"\x1b[1m\"}"},
		{"a title without an end", "\x1b]0;title{\"a\":1}", "\x1b]0;title{\"a\":1}"},
		{"an escape alone", "\x1b", ""},
		{"controls alone", "\x1b[0m\a ", ""},
		{"nothing", "", ""},
	} {
		if got := string(Bare([]byte(c.line))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzBare(f *testing.F) {
	f.Add("\x1b]0;t\x07{\"a\":1}\x1b[0m")
	f.Add("\u009b0m{}")
	f.Fuzz(func(t *testing.T, text string) {
		once := Bare([]byte(text))
		if len(once) > len(text) {
			t.Errorf("%q became longer: %q", text, once)
		}
	})
}
