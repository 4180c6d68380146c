// SPDX-License-Identifier: GPL-2.0-or-later
/* See move_history.h. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "move_history.h"
#include "oltp-engine/check/report.h"
#include "oltp-engine/src/base/clock.h"

#define LISTS		6u	/* in use at once */
#define REGISTERS	8u
#define VALUES_OF_LISTS	300u	/* then other lists are used, so that none grows too long */
#define OPS_MAX		4u
#define LINE_MAX_BYTES	80u

enum kind { APPEND, LIST, WRITE, READ, KINDS };

struct op {
	enum kind kind;
	uint64_t key, value;
};

static void put(move_history_bytes *text, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(vec_push(text, bytes[i]), 0);
}

static void put_text(move_history_bytes *text, const char *string)
{
	put(text, string, strlen(string));
}

/* ops: with a blank before each. */
static void note(struct move_recorder *r, const char *event, const move_history_bytes *ops)
{
	struct move_history_text *text = &r->history->texts[r->node];
	move_history_bytes line = { 0 };
	char head[LINE_MAX_BYTES];

	snprintf(head, sizeof(head), "%" PRIu64 " %" PRIu64 " %s", clock_now_ns(), r->process,
		 event);
	put_text(&line, head);
	if (ops)
		put(&line, ops->at, ops->n);
	put_text(&line, "\n");
	pthread_mutex_lock(&text->lock);
	put(&text->bytes, line.at, line.n);
	pthread_mutex_unlock(&text->lock);
	vec_free(&line);
}

static struct op draw(struct move_recorder *r)
{
	struct op op = { .kind = (enum kind)(rand_r(&r->seed) % KINDS) };

	op.value = atomic_fetch_add(&r->history->values, 1);
	if (op.kind == APPEND || op.kind == LIST)
		op.key = op.value / VALUES_OF_LISTS * LISTS + (uint32_t)rand_r(&r->seed) % LISTS;
	else
		op.key = (uint32_t)rand_r(&r->seed) % REGISTERS;
	return op;
}

static void print_command(const struct op *op, char *line)
{
	static const char *const formats[KINDS] = {
		[APPEND] = "APPEND l%" PRIu64 " %" PRIu64 ",",
		[LIST] = "GET l%" PRIu64,
		[WRITE] = "SET r%" PRIu64 " %" PRIu64 " GET",
		[READ] = "GET r%" PRIu64,
	};

	/* A format takes the first arguments. */
	snprintf(line, LINE_MAX_BYTES, formats[op->kind], op->key, op->value);
}

static void print_asked(const struct op *op, move_history_bytes *ops)
{
	char text[LINE_MAX_BYTES];

	if (op->kind == APPEND)
		snprintf(text, sizeof(text), " a:%" PRIu64 ":%" PRIu64, op->key, op->value);
	else if (op->kind == LIST)
		snprintf(text, sizeof(text), " l:%" PRIu64, op->key);
	else if (op->kind == READ)
		snprintf(text, sizeof(text), " r:%" PRIu64, op->key);
	else
		snprintf(text, sizeof(text), " r:%" PRIu64 " w:%" PRIu64 ":%" PRIu64, op->key,
			 op->key, op->value);
	put_text(ops, text);
}

/* What the read of an operation saw; the reply begins at text. Returns what is behind it. */
static const char *print_told(const struct op *op, const char *text, move_history_bytes *ops)
{
	char head[LINE_MAX_BYTES];
	int64_t n = strtoll(text + 1, NULL, 10);
	const char *bytes = strchr(text, '\n') + 1;

	if (op->kind == APPEND) {
		assert_int_equal(text[0], ':');
		print_asked(op, ops);
		return bytes;
	}
	assert_int_equal(text[0], '$');
	snprintf(head, sizeof(head), " %c:%" PRIu64 ":", op->kind == LIST ? 'l' : 'r', op->key);
	put_text(ops, head);
	/* A list ends with a comma. */
	if (n > 0)
		put(ops, bytes, (size_t)n - (op->kind == LIST));
	else if (op->kind != LIST)
		put_text(ops, "-");
	if (op->kind == WRITE) {
		snprintf(head, sizeof(head), " w:%" PRIu64 ":%" PRIu64, op->key, op->value);
		put_text(ops, head);
	}
	return n < 0 ? bytes : bytes + n + 2;
}

/* True: the transaction was acknowledged. */
static bool run(struct move_recorder *r, const struct op *list, uint32_t n)
{
	move_history_bytes asked = { 0 }, told = { 0 };
	char line[LINE_MAX_BYTES];
	const char *at;
	bool is_done;

	for (uint32_t i = 0; i < n; i++)
		print_asked(&list[i], &asked);
	note(r, "invoke", &asked);
	vec_free(&asked);
	assert_true(move_client_do(&r->client, "MULTI"));
	for (uint32_t i = 0; i < n; i++) {
		print_command(&list[i], line);
		assert_true(move_client_do(&r->client, line));
	}
	is_done = move_client_do(&r->client, "EXEC") && r->client.out.bytes[0] == '*';
	if (!is_done) {
		note(r, "info", NULL);
		return false;
	}
	*resp_out_reserve(&r->client.out, 1) = '\0';
	at = strchr(r->client.out.bytes, '\n') + 1;
	for (uint32_t i = 0; i < n; i++)
		at = print_told(&list[i], at, &told);
	note(r, "ok", &told);
	vec_free(&told);
	return true;
}

static void *record(void *ctx)
{
	struct move_recorder *r = ctx;
	struct op list[OPS_MAX];
	bool is_done = true;

	while (is_done && !r->history->is_over) {
		uint32_t n = 1 + (uint32_t)rand_r(&r->seed) % OPS_MAX;

		for (uint32_t i = 0; i < n; i++)
			list[i] = draw(r);
		is_done = run(r, list, n);
	}
	return NULL;
}

void move_history_init(struct move_history *history)
{
	*history = (struct move_history){ .values = 1 };
	for (uint32_t i = 0; i < 2; i++) {
		pthread_mutex_init(&history->texts[i].lock, NULL);
		put_text(&history->texts[i].bytes, "oltp-history 1\n");
	}
}

void move_history_finish(struct move_history *history)
{
	for (uint32_t i = 0; i < 2; i++) {
		pthread_mutex_destroy(&history->texts[i].lock);
		vec_free(&history->texts[i].bytes);
	}
}

static void open_recorder(struct move_history *history, struct move_recorder *r,
			  struct move_rig *rig, uint32_t node)
{
	r->history = history;
	r->node = node;
	r->process = ++history->processes;
	move_client_open(&r->client, &rig->nodes[node]);
}

void move_history_begin(struct move_history *history, struct move_rig *rig, uint32_t seed)
{
	history->is_over = false;
	for (uint32_t i = 0; i < MOVE_HISTORY_CLIENTS; i++) {
		struct move_recorder *r = &history->recorders[i];

		open_recorder(history, r, rig, i % 2);
		r->client.gives_up = &history->is_over;
		r->seed = seed * MOVE_HISTORY_CLIENTS + i;
		pthread_create(&r->thread, NULL, record, r);
	}
}

void move_history_end(struct move_history *history)
{
	history->is_over = true;
	for (uint32_t i = 0; i < MOVE_HISTORY_CLIENTS; i++) {
		pthread_join(history->recorders[i].thread, NULL);
		move_client_close(&history->recorders[i].client);
	}
}

static void read_all(struct move_history *history, struct move_rig *rig, uint32_t node)
{
	uint64_t lists = (history->values / VALUES_OF_LISTS + 1) * LISTS;
	struct move_recorder r = { 0 };

	open_recorder(history, &r, rig, node);
	for (uint64_t key = 0; key < lists + REGISTERS; key++) {
		struct op op = { .kind = key < lists ? LIST : READ,
				 .key = key < lists ? key : key - lists };

		assert_true(run(&r, &op, 1));
	}
	move_client_close(&r.client);
}

uint64_t move_history_check(struct move_history *history, struct move_rig *rig, uint32_t node,
			    bool must_be_clean)
{
	static char *const files[] = { "source", "target" };
	const struct check_options options = { .model = CHECK_STRICT_SERIALIZABLE,
					       .anomalies_max = 3 };
	struct check_result result = { 0 };
	struct history parsed = { 0 };
	struct history_error error = { 0 };
	struct report report = { &parsed, &result, options.model, files, 0 };
	uint64_t n;

	read_all(history, rig, node);
	for (uint32_t i = 0; i < 2; i++) {
		const struct move_history_text *text = &history->texts[i];

		if (history_parse(&parsed, text->bytes.at, text->bytes.n, NULL, NULL, &error))
			fail_msg("%s, line %" PRIu64 ": %s", files[i], error.line, error.what);
	}
	assert_int_equal(check_history(&parsed, &options, &result), 0);
	assert_true(result.n_txns[HISTORY_OK] > 0);
	n = result.n_anomalies;
	print_message("%" PRIu64 " transactions, %" PRIu64 " of unknown outcome, %" PRIu64
		      " anomalies\n", result.n_txns[HISTORY_OK], result.n_txns[HISTORY_INFO], n);
	if (n && must_be_clean) {
		report_text(&report, stdout);
		fail_msg("%" PRIu64 " anomalies", n);
	}
	check_result_finish(&result);
	history_finish(&parsed);
	return n;
}
