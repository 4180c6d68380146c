// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One attempt at one request: what may be run at all, the transaction around it, and what becomes
 * of a failure.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"

#define ARGS_SHOWN	128u	/* bytes of the arguments that an error message repeats */

/* However EXEC ends, what was queued and watched has ended with it. */
static void end_exec(struct kv_session *s, const struct command *command)
{
	if (command && command->run == cmd_exec) {
		session_end_multi(s);
		kv_session_unwatch(s);
	}
}

void kv_give_up(struct kv_session *s, enum oltp_rc rc, struct resp_out *out)
{
	out->version = s->version;
	switch (rc) {
	case OLTP_NO_MEMORY:
		resp_out_error(out, "OOM command not allowed: the database has no room for it");
		break;
	case OLTP_FULL:
		resp_out_error(out, "ERR too many or too large keys for one transaction");
		break;
	case OLTP_LOST:
		/* With a log they come back by themselves: clients know this error, and wait. */
		if (oltp_durable_epoch(s->kv->engine) != UINT64_MAX)
			resp_out_error(out, "LOADING memory with this key was taken away, "
					    "it is being read again");
		else
			resp_out_error(out, "ERR memory with this key was taken away, "
					    "and there is no log");
		break;
	case OLTP_IO:
		resp_out_error(out, "IOERR the disk has failed, for the log or for this key");
		/*
		 * It may have been a field of a dead hash: so that not every request fails because
		 * of it, those rest until another hash dies, or the next start.
		 */
		atomic_store_explicit(&s->kv->meta.n_dead, 0, memory_order_relaxed);
		break;
	default:
		resp_out_error(out, "ERR internal error");
		break;
	}
	end_exec(s, atomic_load_explicit(&s->last, memory_order_relaxed));
	session_leave(s);
}

static void refuse_unknown(struct call *c)
{
	char shown[ARGS_SHOWN + 8] = "";
	uint32_t n = 0;

	for (uint32_t i = 1; i < c->n && n < ARGS_SHOWN; i++) {
		uint32_t left = ARGS_SHOWN - n;
		uint32_t bytes = c->args[i].n < left ? c->args[i].n : left;

		n += (uint32_t)snprintf(shown + n, sizeof(shown) - n, "'%.*s' ", (int)bytes,
					c->args[i].bytes);
		if (n > ARGS_SHOWN)
			n = ARGS_SHOWN;
	}
	resp_out_errorf(c->out, "ERR unknown command '%.*s', with args beginning with: %s",
			(int)(c->args[0].n < ARGS_SHOWN ? c->args[0].n : ARGS_SHOWN),
			c->args[0].bytes, shown);
}

/* No key may be longer than rows have room for. */
static bool has_good_keys(const struct call *c)
{
	const struct command *command = c->command;
	uint32_t first = (uint32_t)command->first_key, last;

	if (!first)
		return true;
	last = command->last_key < 0 ? c->n - (uint32_t)-command->last_key :
				       (uint32_t)command->last_key;
	for (uint32_t i = first; i <= last; i += (uint32_t)command->key_step) {
		if (c->args[i].n > KV_NAME_MAX)
			return false;
	}
	return true;
}

/* False: an error was appended. */
static bool is_allowed(struct call *c)
{
	const struct command *command = c->command;

	if (c->s->is_restricted && !(command && command->flags & CMD_RESTRICTED)) {
		resp_out_error(c->out, "ERR this database moves to another node");
		c->after = KV_CLOSE;
	} else if (!command) {
		refuse_unknown(c);
	} else if (command->arity > 0 ? c->n != (uint32_t)command->arity :
					c->n < (uint32_t)-command->arity) {
		answer_arity(c);
	} else if (!c->s->is_authenticated && !(command->flags & CMD_NO_AUTH)) {
		resp_out_error(c->out, "NOAUTH Authentication required.");
	} else if (!has_good_keys(c)) {
		answer_long_key(c);
	} else if (c->s->in_multi && (command->flags & CMD_NO_MULTI)) {
		resp_out_error(c->out, "ERR Command not allowed inside a transaction");
	} else {
		return true;
	}
	c->s->is_dirty = c->s->in_multi;
	return false;
}

static void queue(struct call *c)
{
	int rc = session_queue(c->s, c->command, c->args, c->n);

	if (!rc) {
		resp_out_simple(c->out, "QUEUED");
		return;
	}
	c->s->is_dirty = true;
	if (rc == -E2BIG)
		resp_out_error(c->out, "ERR too many commands, or too large ones, in MULTI");
	else
		resp_out_error(c->out, "OOM no memory to queue the command");
}

/* What the transaction changes of the database as a whole. After a failure the caller aborts. */
static enum oltp_rc commit(struct call *c)
{
	struct meta *meta = &c->kv->meta;
	enum oltp_rc rc = OLTP_OK;

	if (c->n_keys)
		rc = meta_count_keys(meta, c->worker, c->n_keys);
	rc = rc ?: oltp_txn_commit(c->worker);
	if (rc)
		return rc;
	if (c->n_keys)
		atomic_fetch_add_explicit(&meta->n_keys, c->n_keys, memory_order_relaxed);
	if (c->n_dead)
		atomic_fetch_add_explicit(&meta->n_dead, c->n_dead, memory_order_relaxed);
	c->s->n_watched += c->n_watched;
	c->s->flush_from = c->flush_from;
	return OLTP_OK;
}

static enum oltp_rc transact(struct call *c, uint64_t *ret_epoch)
{
	enum oltp_rc rc = oltp_txn_begin(c->worker);

	if (rc)
		return rc;
	rc = c->command->run(c);
	/* A reply that cannot be shown whole: the command is not to have had an effect. */
	if (c->out->has_failed)
		rc = rc == OLTP_CONFLICT || rc == OLTP_COLD || rc == KV_MORE ? rc : KV_ANSWERED;
	else if (!rc || rc == KV_ANSWERED)
		rc = commit(c);
	if (rc) {
		oltp_txn_abort(c->worker);
		return rc;
	}
	*ret_epoch = oltp_worker_epoch(c->worker);
	if (!(c->command->flags & CMD_READ))
		c->s->pins.epoch = *ret_epoch;
	return OLTP_OK;
}

/* Transactions of the database's own that are due before that of the command. */
static enum oltp_rc prepare(struct call *c, bool retry)
{
	bool makes_hashes = c->command->flags & CMD_WRITE || c->command->run == cmd_exec;
	struct meta *meta = &c->kv->meta;

	if (makes_hashes && meta_lacks_ids(meta)) {
		enum oltp_rc rc = meta_reserve_ids(meta, c->worker);

		if (rc)
			return rc;
	}
	/* Not again at a retry, so that this command is not held up by the same row for ever. */
	if (!retry && atomic_load_explicit(&meta->n_dead, memory_order_relaxed))
		return hash_reap(c->kv, c->worker);
	return OLTP_OK;
}

static enum oltp_rc run(struct call *c, bool retry, uint64_t *ret_epoch)
{
	enum oltp_rc rc;

	if (!(c->command->flags & CMD_TXN)) {
		rc = c->command->run(c);
		return rc == KV_ANSWERED ? OLTP_OK : rc;
	}
	rc = prepare(c, retry) ?: transact(c, ret_epoch);
	return rc == KV_UNDO ? OLTP_OK : rc;
}

/* call_enter has said what then. */
static enum oltp_rc stay_out(struct call *c, enum kv_after *ret_after)
{
	*ret_after = c->after;
	if (c->after != KV_WAIT)
		end_exec(c->s, c->command);
	return OLTP_OK;
}

enum oltp_rc kv_run(struct kv_session *s, struct oltp_worker *worker, const struct resp_arg *args,
		    uint32_t n_args, bool retry, struct resp_out *out, uint64_t *ret_epoch,
		    enum kv_after *ret_after)
{
	struct call c = {
		.kv = s->kv,
		.s = s,
		.worker = worker,
		.command = command_find(s->kv, &args[0]),
		.args = args,
		.n = n_args,
		.out = out,
	};
	size_t before = out->n;
	struct call first;
	enum oltp_rc rc;

	*ret_epoch = 0;
	*ret_after = KV_GO_ON;
	out->version = s->version;
	if (!retry) {
		atomic_store_explicit(&s->n_commands, s->n_commands + 1, memory_order_relaxed);
		s->flush_from = 0;
	}
	atomic_store_explicit(&s->last, c.command, memory_order_relaxed);
	if (!is_allowed(&c)) {
		*ret_after = c.after;
		return OLTP_OK;
	}
	if (s->in_multi && !(c.command->flags & CMD_AT_ONCE)) {
		queue(&c);
		return OLTP_OK;
	}
	c.flush_from = s->flush_from;
	first = c;
	if (!call_enter(&c))
		return stay_out(&c, ret_after);
	/* Each round needs more units than the one before: there are not many. */
	while ((rc = run(&c, retry, ret_epoch)) == KV_MORE) {
		resp_out_truncate(out, before);
		c = first;
		retry = true;
		if (!call_enter_again(&c))
			return stay_out(&c, ret_after);
	}
	if (rc == OLTP_CONFLICT || rc == OLTP_COLD) {
		resp_out_truncate(out, before);
		return rc;
	}
	if (out->has_failed) {
		resp_out_truncate(out, before);
		resp_out_error(out, "ERR the reply is too large, or there is no memory for it");
	} else if (rc) {
		resp_out_truncate(out, before);
		kv_give_up(s, rc, out);
	}
	end_exec(s, c.command);
	session_leave(s);
	*ret_after = c.after;
	if (c.after == KV_AGAIN)
		*ret_epoch = 0;
	return OLTP_OK;
}
