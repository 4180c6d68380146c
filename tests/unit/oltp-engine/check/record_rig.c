// SPDX-License-Identifier: GPL-2.0-or-later
/* See record_rig.h. */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/check/report.h"
#include "record_rig.h"

struct text {
	pthread_mutex_t lock;
	VEC(char) bytes;
};

static int write_text(void *ctx, const char *bytes, size_t n)
{
	struct text *text = ctx;
	int rc = 0;

	pthread_mutex_lock(&text->lock);
	for (size_t i = 0; !rc && i < n; i++)
		rc = vec_push(&text->bytes, bytes[i]);
	pthread_mutex_unlock(&text->lock);
	return rc;
}

static void run(const struct record_config *config, struct record_stats *ret_stats,
		struct check_result *ret_result, bool must_be_clean)
{
	static const char header[] = "oltp-history 1\n";
	static char *const files[] = { "recorded" };
	const struct check_options options = { .model = CHECK_STRICT_SERIALIZABLE,
					       .anomalies_max = 3 };
	struct record_shared *shared = calloc(1, sizeof(*shared));
	struct text text = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct record_sink sink = { write_text, &text };
	struct report report = { .result = ret_result, .files = files, .model = options.model };
	struct history_error error = { 0 };
	struct history history = { 0 };

	assert_non_null(shared);
	write_text(&text, header, strlen(header));
	assert_int_equal(record_run(config, shared, &sink, NULL, NULL, ret_stats), 0);
	assert_int_equal(history_parse(&history, text.bytes.at, text.bytes.n, NULL, NULL, &error),
			 0);
	assert_int_equal(check_history(&history, &options, ret_result), 0);
	/* All that was committed is there, and what was read in the end. */
	assert_true(ret_result->n_txns[HISTORY_OK] >= ret_stats->committed);
	assert_true(ret_stats->committed >= config->transactions);
	report.history = &history;
	if (must_be_clean && ret_result->n_anomalies) {
		report_text(&report, stdout);
		fail_msg("%" PRIu64 " anomalies", ret_result->n_anomalies);
	}
	history_finish(&history);
	vec_free(&text.bytes);
	free(shared);
}

void record_rig_run(const struct record_config *config, struct record_stats *ret_stats,
		    struct check_result *ret_result)
{
	run(config, ret_stats, ret_result, false);
}

void record_rig_expect_clean(const struct record_config *config, struct record_stats *ret_stats)
{
	struct check_result result = { 0 };

	run(config, ret_stats, &result, true);
	check_result_finish(&result);
}
