# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Test cases in shell: each runs in a subshell with set -e, and fails by a command that fails.
# The sourcing script ends with `case_report`.

CASES_PASSED=0
CASES_FAILED=0
CASE_TMP=$(mktemp -d "${TMPDIR:-/tmp}/ebb-case.XXXXXX")
trap 'rm -rf "$CASE_TMP"' EXIT

# In a child shell that does not know that its result is looked at, or -e would not hold there.
case_run() { # $1 what is claimed, $2 function
	local rc=0
	set +e
	(set -ex; "$2") >"$CASE_TMP/log" 2>&1
	rc=$?
	set -e
	if [ "$rc" -eq 0 ]; then
		CASES_PASSED=$((CASES_PASSED + 1))
		echo "ok   $1"
	else
		CASES_FAILED=$((CASES_FAILED + 1))
		echo "FAIL $1"
		tail -n 30 "$CASE_TMP/log" | sed 's/^/    /'
	fi
}

# Runs a command and compares its exit status.
expect_status() { # $1 status, rest command
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ "$got" -eq "$want" ]
}

case_report() {
	echo "$CASES_PASSED passed, $CASES_FAILED failed"
	[ "$CASES_FAILED" -eq 0 ] && [ "$CASES_PASSED" -gt 0 ]
}
