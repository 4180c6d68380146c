// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FCALL: procedures that run in the server, each in one transaction. Those of the TPC-C-like
 * workload are in tpcc/, here are those of YCSB ("Benchmarking Cloud Serving Systems with YCSB",
 * Cooper et al., 2010), whose records are hashes:
 *
 *   ycsb_read 1 KEY [FIELD ...]	all fields with their values, or the values of some
 *   ycsb_update 1 KEY FIELD VALUE ...	1: set in the record that is there; 0: there is none
 *   ycsb_txn N KEY ... OPS FIELD VALUE	for each key in turn one letter of OPS: "r" reads the
 *					field, "u" updates it; an array of what each answers
 */
#include <string.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/procedure.h"

/* Another command in the same transaction. args[0] is not looked at. */
static enum oltp_rc run_nested(struct call *c, enum oltp_rc (*run)(struct call *),
			       const struct resp_arg *args, uint32_t n)
{
	struct call nested = *c;
	enum oltp_rc rc;

	nested.args = args;
	nested.n = n;
	rc = run(&nested);
	c->n_keys = nested.n_keys;
	c->n_dead = nested.n_dead;
	return rc;
}

static enum oltp_rc ycsb_read(struct call *c, uint32_t n_keys)
{
	if (n_keys != 1)
		return answer_error(c, "ERR ycsb_read takes one key");
	return run_nested(c, c->n > 4 ? cmd_hmget : cmd_hgetall, c->args + 2, c->n - 2);
}

static enum oltp_rc update(struct call *c, const struct resp_arg *args, uint32_t n)
{
	size_t before = c->out->n;
	struct found found;
	enum oltp_rc rc = find_key(c, &args[1], ROW_HASH, true, &found);

	if (rc)
		return rc;
	if (found.row) {
		rc = run_nested(c, cmd_hset, args, n);
		if (rc || c->out->has_failed)
			return rc;
		/* Not how many fields are new. */
		resp_out_truncate(c->out, before);
	}
	resp_out_integer(c->out, found.row != NULL);
	return OLTP_OK;
}

static enum oltp_rc ycsb_update(struct call *c, uint32_t n_keys)
{
	if (n_keys != 1 || c->n < 6 || c->n % 2 != 0)
		return answer_error(c, "ERR ycsb_update takes one key, then fields and values");
	return update(c, c->args + 2, c->n - 2);
}

static enum oltp_rc ycsb_txn(struct call *c, uint32_t n_keys)
{
	const struct resp_arg *keys = c->args + 3, *ops = keys + n_keys, *field = ops + 1;

	if (c->n != 3 + n_keys + 3 || ops->n != n_keys)
		return answer_error(c, "ERR ycsb_txn takes keys, as many letters, a field and "
				       "a value");
	for (uint32_t i = 0; i < n_keys; i++) {
		if (ops->bytes[i] != 'r' && ops->bytes[i] != 'u')
			return answer_error(c, "ERR ycsb_txn knows the letters r and u");
		if (keys[i].n > KV_NAME_MAX)
			return answer_long_key(c);
	}
	if (field[0].n > KV_NAME_MAX || field[1].n > KV_VALUE_MAX)
		return answer_too_long(c);
	resp_out_array(c->out, n_keys);
	for (uint32_t i = 0; i < n_keys && !c->out->has_failed; i++) {
		const struct resp_arg args[] = { c->args[0], keys[i], field[0], field[1] };
		enum oltp_rc rc = ops->bytes[i] == 'r' ? run_nested(c, cmd_hget, args, 3) :
							 update(c, args, 4);

		/* A key of another type is answered as such in its place, like in EXEC. */
		if (rc && rc != KV_ANSWERED)
			return rc;
	}
	return OLTP_OK;
}

#define YCSB_PROCEDURES	3u

static const struct procedure ycsb_procedures[YCSB_PROCEDURES] = {
	{ "YCSB_READ", true, ycsb_read },
	{ "YCSB_UPDATE", false, ycsb_update },
	{ "YCSB_TXN", false, ycsb_txn },
};

static const struct procedure *find(const struct procedure *all, uint32_t n,
				    const struct resp_arg *name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (arg_is(name, all[i].name))
			return &all[i];
	}
	return NULL;
}

static enum oltp_rc call_procedure(struct call *c, bool only_reads)
{
	const struct procedure *procedure =
		find(ycsb_procedures, YCSB_PROCEDURES, &c->args[1]) ?:
		find(tpcc_procedures, TPCC_PROCEDURES, &c->args[1]);
	enum oltp_rc rc;
	int64_t n_keys;

	if (!procedure)
		return answer_error(c, "ERR Function not found");
	if (!number_parse(c->args[2].bytes, c->args[2].n, &n_keys))
		return answer_error(c, "ERR Bad number of keys provided");
	if (n_keys > (int64_t)c->n - 3)
		return answer_error(c, "ERR Number of keys can't be greater than number of args");
	if (n_keys < 0)
		return answer_error(c, "ERR Number of keys can't be negative");
	if (only_reads && !procedure->is_read_only)
		return answer_error(c, "ERR Can not execute a script with write flag using *_ro "
				       "command.");
	if (n_keys > 0 && c->args[3].n > KV_NAME_MAX)
		return answer_long_key(c);
	rc = procedure->run(c, (uint32_t)n_keys);
	return rc == KV_ANSWERED && c->has_written ? KV_UNDO : rc;
}

enum oltp_rc cmd_fcall(struct call *c)
{
	return call_procedure(c, false);
}

enum oltp_rc cmd_fcall_ro(struct call *c)
{
	return call_procedure(c, true);
}
