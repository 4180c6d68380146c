// SPDX-License-Identifier: GPL-2.0-or-later
/* See commands.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "procedures.h"
#include "oltp-engine/load/wire/reply.h"

#define NAME_BYTES	32u

static int name_row(char *name, uint64_t id)
{
	return snprintf(name, NAME_BYTES, "row:%" PRIu64, id);
}

static int write_counter(struct wire_bytes *out, const char *command, uint64_t id)
{
	char name[NAME_BYTES];
	int rc = wire_command(out, 2);

	snprintf(name, sizeof(name), "counter:%" PRIu64, id);
	rc = rc ? rc : wire_text(out, command);
	return rc ? rc : wire_text(out, name);
}

/* value_bytes 0: a command without a value. */
static int write_row(struct wire_bytes *out, const char *command, uint64_t id,
		     uint32_t value_bytes)
{
	char name[NAME_BYTES], value[LOAD_VALUE_MAX];
	int n = name_row(name, id);
	int rc = wire_command(out, value_bytes ? 3 : 2);

	rc = rc ? rc : wire_text(out, command);
	rc = rc ? rc : wire_text(out, name);
	if (rc || !value_bytes)
		return rc;
	memset(value, '.', value_bytes);
	memcpy(value, name, (size_t)n);
	value[n] = '|';
	return wire_argument(out, value, value_bytes);
}

static int name_record(char *name, uint64_t id)
{
	return snprintf(name, NAME_BYTES, "user:%" PRIu64, id);
}

/* Its name and one field, whose value begins with the name of the record and a bar. */
static int write_field(struct wire_bytes *out, uint64_t id, uint32_t field)
{
	char name[NAME_BYTES], value[LOAD_YCSB_FIELD_BYTES];
	int n = name_record(name, id), rc;

	memset(value, '.', sizeof(value));
	memcpy(value, name, (size_t)n);
	value[n] = '|';
	snprintf(name, sizeof(name), "field%u", field);
	rc = wire_text(out, name);
	return rc ? rc : wire_argument(out, value, sizeof(value));
}

/* "FCALL procedure 1 user:ID", of a command of n arguments. */
static int write_call(struct wire_bytes *out, size_t n, const char *procedure, uint64_t id)
{
	char name[NAME_BYTES];
	int rc = wire_command(out, n);

	name_record(name, id);
	rc = rc ? rc : wire_text(out, "FCALL");
	rc = rc ? rc : wire_text(out, procedure);
	rc = rc ? rc : wire_text(out, "1");
	return rc ? rc : wire_text(out, name);
}

static int write_record(struct wire_bytes *out, uint64_t id)
{
	char name[NAME_BYTES];
	int rc = wire_command(out, 2 + 2 * LOAD_YCSB_FIELDS);

	name_record(name, id);
	rc = rc ? rc : wire_text(out, "HSET");
	rc = rc ? rc : wire_text(out, name);
	for (uint32_t field = 0; !rc && field < LOAD_YCSB_FIELDS; field++)
		rc = write_field(out, id, field);
	return rc;
}

static int write_word(struct wire_bytes *out, const char *word)
{
	int rc = wire_command(out, 1);

	return rc ? rc : wire_text(out, word);
}

int load_write_info(struct wire_bytes *out)
{
	static const char *const words[] = { "INFO", "cpu", "memory", "relocation" };
	int rc = wire_command(out, 4);

	for (uint32_t i = 0; !rc && i < 4; i++)
		rc = wire_text(out, words[i]);
	return rc;
}

int load_write_greeting(struct wire_bytes *out, uint32_t version, const char *password,
			const char *name)
{
	int rc;

	if (version == 2 && !password)
		return write_word(out, "PING");
	if (version == 2) {
		rc = wire_command(out, 2);
		rc = rc ? rc : wire_text(out, "AUTH");
		return rc ? rc : wire_text(out, password);
	}
	rc = wire_command(out, password ? 7 : 4);
	rc = rc ? rc : wire_text(out, "HELLO");
	rc = rc ? rc : wire_text(out, "3");
	if (password) {
		rc = rc ? rc : wire_text(out, "AUTH");
		rc = rc ? rc : wire_text(out, "default");
		rc = rc ? rc : wire_text(out, password);
	}
	rc = rc ? rc : wire_text(out, "SETNAME");
	return rc ? rc : wire_text(out, name);
}

static bool is_transaction(const struct load_request *request)
{
	return request->kind <= LOAD_DELETE;
}

int load_write_request(struct wire_bytes *out, const struct load_request *request,
		       const struct load_shape *shape)
{
	int rc = is_transaction(request) ? write_word(out, "MULTI") : 0;

	if (procedures_has(request->kind))
		return procedures_write(out, request, shape);
	for (uint64_t id = request->first; !rc && id < request->first + request->n; id++) {
		switch (request->kind) {
		case LOAD_SELECT:
		case LOAD_GET:
			rc = write_row(out, "GET", id, 0);
			break;
		case LOAD_DELETE:
			rc = write_row(out, "DEL", id, 0);
			break;
		case LOAD_YCSB_READ:
			rc = write_call(out, 4, "ycsb_read", id);
			break;
		case LOAD_YCSB_UPDATE:
			rc = write_call(out, 6, "ycsb_update", id);
			rc = rc ? rc : write_field(out, id, request->field);
			break;
		case LOAD_YCSB_FILL:
			rc = write_record(out, id);
			break;
		case LOAD_COUNT:
			rc = write_counter(out, "INCR", id);
			break;
		case LOAD_READ_COUNTER:
			rc = write_counter(out, "GET", id);
			break;
		default:
			rc = write_row(out, "SET", id, shape->value_bytes);
			break;
		}
	}
	return rc || !is_transaction(request) ? rc : write_word(out, "EXEC");
}

uint32_t load_replies(const struct load_request *request)
{
	if (procedures_has(request->kind))
		return 1;
	return request->n + (is_transaction(request) ? 2 : 0);
}

static bool is_error(const struct reply_item *item)
{
	return item->type == '-' || item->type == '!';
}

static bool is_word(const struct reply_item *item, const char *word)
{
	return item->type == '+' && item->n == strlen(word) && !memcmp(item->bytes, word, item->n);
}

/* All fields with their values, in any order: a map, or with RESP2 an array. */
static bool is_record(const struct reply_item *head, uint64_t id, const char *bytes, size_t n,
		      size_t at)
{
	char name[NAME_BYTES];
	size_t name_n = (size_t)name_record(name, id);
	struct reply_item field, value;

	if ((head->type != '%' && head->type != '*') || head->integer != 2 * LOAD_YCSB_FIELDS)
		return false;
	for (uint32_t i = 0; i < LOAD_YCSB_FIELDS; i++) {
		if (reply_item(bytes, n, &at, &field) <= 0 ||
		    reply_item(bytes, n, &at, &value) <= 0 || value.type != '$' ||
		    value.n != LOAD_YCSB_FIELD_BYTES || memcmp(value.bytes, name, name_n) != 0 ||
		    value.bytes[name_n] != '|')
			return false;
	}
	return true;
}

static bool is_row(const struct reply_item *item, uint64_t id)
{
	char name[NAME_BYTES];
	size_t n = (size_t)name_row(name, id);

	return item->type == '$' && item->n > n && !memcmp(item->bytes, name, n) &&
	       item->bytes[n] == '|';
}

/* The value of a counter that may not be there yet. */
static bool read_counter(const struct reply_item *item, int64_t *ret_value)
{
	if (item->is_null) {
		*ret_value = 0;
		return true;
	}
	return item->type == '$' && !reply_integer(item->bytes, item->n, ret_value);
}

/* The reply to one command for one row or counter, in a transaction or outside. */
static enum load_verdict judge_one(const struct load_request *request, uint64_t id,
				   const struct reply_item *item, int64_t *ret_value)
{
	bool is_good;

	if (is_error(item))
		return LOAD_REFUSED;
	switch (request->kind) {
	case LOAD_SELECT:
	case LOAD_GET:
		is_good = is_row(item, id);
		break;
	case LOAD_DELETE:
		is_good = item->type == ':' && (item->integer == 0 || item->integer == 1);
		break;
	case LOAD_YCSB_UPDATE:
		is_good = item->type == ':' && item->integer == 1;
		break;
	case LOAD_YCSB_FILL:
		is_good = item->type == ':' && item->integer >= 0;
		break;
	case LOAD_COUNT:
		is_good = item->type == ':';
		*ret_value = item->integer;
		break;
	case LOAD_READ_COUNTER:
		is_good = read_counter(item, ret_value);
		break;
	default:
		is_good = is_word(item, "OK");
		break;
	}
	return is_good ? LOAD_GOOD : LOAD_WRONG;
}

static enum load_verdict judge_exec(const struct load_request *request,
				    const struct reply_item *head, const char *bytes, size_t n,
				    size_t at)
{
	enum load_verdict worst = LOAD_GOOD;
	int64_t value;

	/* EXEC gives null if the transaction was not executed. */
	if (head->is_null)
		return LOAD_REFUSED;
	if (head->type != '*' || head->integer != request->n)
		return LOAD_WRONG;
	for (uint32_t i = 0; i < request->n; i++) {
		struct reply_item item;
		enum load_verdict verdict = LOAD_WRONG;

		if (reply_item(bytes, n, &at, &item) > 0)
			verdict = judge_one(request, request->first + i, &item, &value);
		if (verdict > worst)
			worst = verdict;
	}
	return worst;
}

enum load_verdict load_judge(const struct load_request *request, const struct load_shape *shape,
			     uint32_t index, const char *bytes, size_t n,
			     struct load_answer *ret_answer)
{
	struct reply_item item;
	size_t at = 0;

	if (reply_item(bytes, n, &at, &item) <= 0)
		return LOAD_WRONG;
	if (is_error(&item))
		return LOAD_REFUSED;
	if (procedures_has(request->kind))
		return procedures_judge(request, shape, &item, bytes, n, at, ret_answer);
	if (request->kind == LOAD_YCSB_READ)
		return is_record(&item, request->first, bytes, n, at) ? LOAD_GOOD : LOAD_WRONG;
	if (!is_transaction(request))
		return judge_one(request, request->first + index, &item, &ret_answer->value);
	if (index == 0)
		return is_word(&item, "OK") ? LOAD_GOOD : LOAD_WRONG;
	if (index <= request->n)
		return is_word(&item, "QUEUED") ? LOAD_GOOD : LOAD_WRONG;
	return judge_exec(request, &item, bytes, n, at);
}
