// SPDX-License-Identifier: GPL-2.0-or-later
/* See check_script.h. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "check_script.h"
#include "oltp-engine/check/report.h"

static void put(struct script *script, const char *text)
{
	size_t bytes = strlen(text);

	while (script->n + bytes + 1 > script->room) {
		script->room = script->room ? script->room * 2 : 4096;
		script->text = realloc(script->text, script->room);
		assert_non_null(script->text);
	}
	memcpy(script->text + script->n, text, bytes + 1);
	script->n += bytes;
}

void script_begin(struct script *script)
{
	*script = (struct script){ 0 };
	put(script, "oltp-history 1\n");
}

void script_finish(struct script *script)
{
	free(script->text);
}

void script_txn(struct script *script, uint64_t process, uint64_t invoke_time, uint64_t end_time,
		const char *outcome, const char *ops)
{
	bool is_ok = !strcmp(outcome, "ok");
	char head[100];

	snprintf(head, sizeof(head), "%" PRIu64 " %" PRIu64 " invoke", invoke_time, process);
	put(script, head);
	if (!is_ok && *ops) {
		put(script, " ");
		put(script, ops);
	}
	put(script, "\n");
	if (!*outcome)
		return;
	snprintf(head, sizeof(head), "%" PRIu64 " %" PRIu64 " %s", end_time, process, outcome);
	put(script, head);
	if (is_ok && *ops) {
		put(script, " ");
		put(script, ops);
	}
	put(script, "\n");
}

static void parse(const struct script *script, struct history *history)
{
	struct history_error error = { 0 };
	int rc = history_parse(history, script->text, script->n, NULL, NULL, &error);

	if (rc)
		fail_msg("line %" PRIu64 ": %s", error.line, error.what ? error.what : "?");
}

static int check(const struct history *history, enum check_model model,
		 struct check_result *result)
{
	const struct check_options options = { .model = model, .anomalies_max = 3 };

	return check_history(history, &options, result);
}

int script_check(const struct script *script, enum check_model model, struct check_result *result)
{
	struct history history = { 0 };
	int rc;

	parse(script, &history);
	rc = check(&history, model, result);
	history_finish(&history);
	return rc;
}

static void expect(const struct script *script, enum check_model model, enum check_kind kind,
		   uint64_t n)
{
	static char *const files[] = { "script" };
	struct history history = { 0 };
	struct check_result result = { 0 };
	struct report report = { &history, &result, model, files, 0 };

	parse(script, &history);
	assert_int_equal(check(&history, model, &result), 0);
	if (result.n_anomalies != n || (n && result.n_kind[kind] != n)) {
		report_text(&report, stdout);
		fail_msg("%" PRIu64 " anomalies, not %" PRIu64 " of %s", result.n_anomalies, n,
			 check_kind_name(kind));
	}
	check_result_finish(&result);
	history_finish(&history);
}

void script_expect(const struct script *script, enum check_model model, enum check_kind kind,
		   uint64_t n)
{
	expect(script, model, kind, n);
}

void script_expect_clean(const struct script *script, enum check_model model)
{
	expect(script, model, CHECK_G0, 0);
}
