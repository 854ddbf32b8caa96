# Reads `go test -json` and says how far the tests are: a line for each package as it ends, with its number and time, and a
# line for every 25 tests of one that is still at work. What the tests of a failed package printed that did not pass follows
# its line, and the last lines name them all again. The exit code is 1 when one failed, or when not all were tested. total is
# how many packages there are.

# text is the value of a member of the JSON line.
function text(line, member,    from, i, c, out) {
	from = index(line, "\"" member "\":\"")
	if (!from) return ""
	i = from + length(member) + 4
	out = ""
	while ((c = substr(line, i, 1)) != "\"" && c != "") {
		if (c == "\\") {
			c = substr(line, ++i, 1)
			if (c == "n") c = "\n"
			else if (c == "t") c = "\t"
			else if (c == "r") c = ""
			else if (c == "u") {
				c = substr(line, i + 1, 4)
				i += 4
				c = c == "003c" ? "<" : c == "003e" ? ">" : c == "0026" ? "&" : c == "001b" ? "^[" : "?"
			}
		}
		out = out c
		i++
	}
	return out
}

function number(line, member,    from) {
	from = index(line, "\"" member "\":")
	return from ? substr(line, from + length(member) + 3) + 0 : 0
}

function short(package) {
	sub(/^rouse\.dev\/rouse\//, "", package)
	return package
}

function ended(how, package, seconds) {
	printf "[%d/%s] %-4s %s %.1f s\n", ++done, total, how, short(package), seconds
	fflush()
}

!/^\{/ { print; next } # not of the tests: what the go command itself says

{
	action = text($0, "Action"); package = text($0, "Package"); test = text($0, "Test")
}
action == "build-output" { printf "%s", text($0, "Output"); next }
action == "build-fail" { failed = 1; next }
action == "output" { hear(package, test, text($0, "Output")); next }
(action == "pass" || action == "skip") && test != "" {
	delete said[package, test]
	if (!index(test, "/") && ++tests[package] % 25 == 0) { printf "        %s: %d tests so far\n", short(package), tests[package]; fflush() }
	next
}
action == "fail" && test != "" { names[++fails] = short(package) " " test; next }
test != "" { next }
action == "pass" { ended("ok", package, number($0, "Elapsed")); forget(package); next }
action == "skip" { ended("none", package, 0); next }
action == "fail" {
	ended("FAIL", package, number($0, "Elapsed"))
	tell(package)
	forget(package)
	failed = 1
}

# hear keeps what a test says, the end of it if it says much; "" is the package itself.
function hear(package, test, words) {
	if (!((package, test) in known)) {
		known[package, test] = 1
		order[package, ++heard[package]] = test
	}
	said[package, test] = said[package, test] words
	if (length(said[package, test]) > 200000) said[package, test] = "[…]" substr(said[package, test], length(said[package, test]) - 100000)
}

# tell prints what those said that did not pass, in the order in which they began.
function tell(package,    i) {
	for (i = 1; i <= heard[package]; i++) printf "%s", said[package, order[package, i]]
}

function forget(package,    i) {
	for (i = 1; i <= heard[package]; i++) {
		delete said[package, order[package, i]]
		delete known[package, order[package, i]]
		delete order[package, i]
	}
	delete heard[package]
}

END {
	for (i = 1; i <= fails; i++) print "FAILED " names[i]
	if (done != total) print "only " done + 0 " of " total " packages were tested to their end"
	exit failed || done != total
}
