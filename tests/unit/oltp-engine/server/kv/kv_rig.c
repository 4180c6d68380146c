// SPDX-License-Identifier: GPL-2.0-or-later
/* See kv_rig.h. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define ARGS_MAX	2100u
#define BYTES_MAX	(1u << 20)

struct kv_rig rig;
const uint32_t kv_rig_whole = 0, kv_rig_cut = 2;

int kv_rig_set_up(void **state)
{
	const uint32_t *bits = *state;

	kv_rig_open(&rig, bits ? *bits : 0);
	return 0;
}

int kv_rig_tear_down(void **state)
{
	(void)state;
	kv_audit(rig.kv);
	kv_rig_close(&rig);
	return 0;
}

void kv_rig_limit(struct kv_rig *rig, uint64_t limit_bytes, bool with_disk)
{
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &rig->blocks), 0);
	rig->engine_config.blocks = &oltp_blocks_native_ops;
	rig->engine_config.blocks_ctx = rig->blocks;
	rig->engine_config.node = -1;
	if (with_disk)
		rig->engine_config.cold_dir = rig_dir();
}

void kv_rig_open_with(struct kv_rig *rig)
{
	kv_engine_config(&rig->engine_config);
	if (!rig->config.rows)
		rig->config.rows = 4096;
	assert_int_equal(oltp_engine_open(&rig->engine_config, &rig->engine), 0);
	if (rig->blocks)
		oltp_blocks_native_attach(rig->blocks, rig->engine);
	if (rig->limit_bytes)
		oltp_memory_limit(rig->engine, 0, rig->limit_bytes, 0);
	assert_int_equal(kv_open(rig->engine, &rig->config, &rig->kv), 0);
	if (rig->engine_config.durability)
		assert_int_equal(oltp_recover(rig->engine, NULL, NULL), 0);
	assert_int_equal(kv_start(rig->kv), 0);
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		assert_int_equal(oltp_worker_create(rig->engine, &rig->workers[i]), 0);
		rig->sessions[i] = kv_session_create(rig->kv);
		assert_non_null(rig->sessions[i]);
	}
	resp_out_init(&rig->out, 64 << 20);
}

void kv_rig_open(struct kv_rig *rig, uint32_t hash_bits)
{
	*rig = (struct kv_rig){ .config.hash_bits = hash_bits };
	kv_rig_open_with(rig);
}

void kv_rig_close(struct kv_rig *rig)
{
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		kv_session_destroy(rig->sessions[i]);
		oltp_worker_destroy(rig->workers[i]);
	}
	kv_close(rig->kv);
	oltp_engine_close(rig->engine);
	if (rig->blocks)
		oltp_blocks_native_destroy(rig->blocks);
	rig->blocks = NULL;
	resp_out_finish(&rig->out);
}

enum oltp_rc kv_rig_try(struct kv_rig *rig, uint32_t i, const struct resp_arg *args,
			uint32_t n_args, bool retry)
{
	enum oltp_rc rc;

	if (!retry)
		resp_out_reset(&rig->out);
	rc = kv_run(rig->sessions[i], rig->workers[i], args, n_args, retry, &rig->out,
		    &rig->epoch, &rig->after);
	if (rc) {
		assert_true(rc == OLTP_CONFLICT || rc == OLTP_COLD);
		assert_int_equal(rig->out.n, 0);
	}
	assert_false(rig->out.has_failed);
	return rc;
}

void kv_rig_run(struct kv_rig *rig, uint32_t i, const struct resp_arg *args, uint32_t n_args)
{
	bool retry = false;

	for (;; retry = true) {
		enum oltp_rc rc = kv_rig_try(rig, i, args, n_args, retry);

		if (rc == OLTP_COLD)
			assert_int_equal(oltp_cold_wait(rig->workers[i]), OLTP_OK);
		if (!rc && rig->after != KV_AGAIN)
			return;
	}
}

/* Into args and bytes; returns how many arguments. */
static uint32_t split(const char *line, struct resp_arg *args, char *bytes)
{
	uint32_t n = 0;

	while (*line) {
		size_t length = strcspn(line, " ");

		assert_true(n < ARGS_MAX);
		args[n].bytes = bytes;
		args[n].n = (uint32_t)length;
		memcpy(bytes, line, length);
		if (length == 2 && !memcmp(line, "\"\"", 2)) {
			args[n].n = 0;
		} else if (line[0] == '$' && length > 1) {
			char number[16];
			int digits;

			args[n].n = (uint32_t)strtoul(line + 1, NULL, 10);
			digits = snprintf(number, sizeof(number), "%u,", args[n].n);
			for (uint32_t k = 0; k < args[n].n; k++)
				bytes[k] = number[k % (uint32_t)digits];
		}
		bytes += args[n].n + 1;
		n++;
		line += length;
		line += strspn(line, " ");
	}
	return n;
}

static void with_line(struct kv_rig *rig, uint32_t i, const char *line)
{
	struct resp_arg *args = calloc(ARGS_MAX, sizeof(*args));
	char *bytes = malloc(BYTES_MAX);

	assert_non_null(args);
	assert_non_null(bytes);
	kv_rig_run(rig, i, args, split(line, args, bytes));
	free(args);
	free(bytes);
}

void kv_rig_do(struct kv_rig *rig, uint32_t i, const char *line)
{
	with_line(rig, i, line);
}

enum oltp_rc kv_rig_try_line(struct kv_rig *rig, uint32_t i, const char *line, bool retry)
{
	static char bytes[BYTES_MAX];
	struct resp_arg args[64];

	return kv_rig_try(rig, i, args, split(line, args, bytes), retry);
}

void expect_last(struct kv_rig *rig, const char *reply)
{
	size_t n = strlen(reply);

	if (rig->out.n != n || memcmp(rig->out.bytes, reply, n) != 0)
		fail_msg("reply \"%.*s\", expected \"%s\"", (int)rig->out.n, rig->out.bytes, reply);
}

void expect_reply_of(struct kv_rig *rig, uint32_t i, const char *line, const char *reply)
{
	kv_rig_do(rig, i, line);
	if (rig->out.n != strlen(reply) || memcmp(rig->out.bytes, reply, rig->out.n) != 0)
		fail_msg("%s: reply \"%.*s\", expected \"%s\"", line, (int)rig->out.n,
			 rig->out.bytes, reply);
}

void expect_reply(struct kv_rig *rig, const char *line, const char *reply)
{
	expect_reply_of(rig, 0, line, reply);
}

void expect_begins(struct kv_rig *rig, const char *line, const char *begin)
{
	kv_rig_do(rig, 0, line);
	if (rig->out.n < strlen(begin) || memcmp(rig->out.bytes, begin, strlen(begin)) != 0)
		fail_msg("%s: reply \"%.*s\", expected \"%s...\"", line, (int)rig->out.n,
			 rig->out.bytes, begin);
}

int64_t kv_rig_integer(struct kv_rig *rig, const char *line)
{
	kv_rig_do(rig, 0, line);
	if (rig->out.bytes[0] != ':')
		fail_msg("%s: reply \"%.*s\", expected an integer", line, (int)rig->out.n,
			 rig->out.bytes);
	return strtoll(rig->out.bytes + 1, NULL, 10);
}

static int count_row(void *ctx, uint64_t key, const void *record)
{
	const struct row *row = record;
	uint32_t *n = ctx;

	(void)key;
	n[row->type]++;
	return 0;
}

void kv_rig_count_rows(uint32_t ret_n[4])
{
	memset(ret_n, 0, 4 * sizeof(*ret_n));
	assert_int_equal(oltp_table_scan(rig.kv->ks.rows, count_row, ret_n), 0);
}

uint32_t kv_rig_scan_all(struct kv_rig *rig, const char *command, const char *options, bool *seen,
			 uint32_t n_seen)
{
	uint64_t cursor = 0;
	uint32_t n = 0, calls = 0;

	do {
		char line[256];
		const char *at;

		snprintf(line, sizeof(line), "%s %" PRIu64 " %s", command, cursor, options);
		kv_rig_do(rig, 0, line);
		/* So that it can be searched as a string; there are no zeros in it. */
		*resp_out_reserve(&rig->out, 1) = '\0';
		assert_memory_equal(rig->out.bytes, "*2\r\n$", 5);
		at = strstr(rig->out.bytes + 5, "\r\n");
		cursor = strtoull(at + 2, NULL, 10);
		while ((at = strstr(at, "\r\nk"))) {
			uint32_t number = (uint32_t)strtoul(at + 3, NULL, 10);

			at += 3;
			assert_true(number < n_seen);
			n += !seen[number];
			seen[number] = true;
		}
		assert_true(++calls < 100000);
	} while (cursor);
	return n;
}
