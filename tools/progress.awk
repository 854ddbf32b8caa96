# Reads `go test -json` and says how far the tests are: a line for each package as it ends, with its number and time, and a
# line for every 25 tests of one that is still at work. What a failed package printed follows its line. The exit code is 1
# when one failed, or when not all were tested. total is how many packages there are.

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
action == "output" { said[package] = said[package] text($0, "Output"); next }
action == "pass" && test != "" && !index(test, "/") {
	if (length(said[package]) > 4000000) said[package] = substr(said[package], length(said[package]) - 2000000) # tests of one package may say much
	if (++tests[package] % 25 == 0) { printf "        %s: %d tests so far\n", short(package), tests[package]; fflush() }
	next
}
test != "" { next }
action == "pass" { ended("ok", package, number($0, "Elapsed")); said[package] = ""; next }
action == "skip" { ended("none", package, 0); next }
action == "fail" {
	ended("FAIL", package, number($0, "Elapsed"))
	printf "%s", said[package]
	said[package] = ""
	failed = 1
}


END {
	if (done != total) print "only " done + 0 " of " total " packages were tested to their end"
	exit failed || done != total
}
