// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MULTI, EXEC and WATCH. EXEC is one transaction: the watched keys are read first, so they are as
 * they were until it commits, then all that was queued is run. What was queued and watched is
 * dropped by kv_run, once EXEC is not to be tried again.
 *
 * A key that comes has another stamp than any key before. One that was absent at WATCH and is at
 * EXEC may have come and gone: then a key of its part has been removed. Now and then that was
 * another key: EXEC does nothing then, and the client tries again.
 */
#include <string.h>

#include "oltp-engine/server/kv/private.h"

enum oltp_rc cmd_multi(struct call *c)
{
	if (c->s->in_multi)
		return answer_error(c, "ERR MULTI calls can not be nested");
	c->s->in_multi = true;
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

enum oltp_rc cmd_discard(struct call *c)
{
	if (!c->s->in_multi)
		return answer_error(c, "ERR DISCARD without MULTI");
	session_end_multi(c->s);
	kv_session_unwatch(c->s);
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

static enum oltp_rc stamp_of(struct call *c, const struct resp_arg *name, uint64_t *ret_stamp)
{
	struct found found;
	enum oltp_rc rc = find_any(c, name, false, &found);

	if (!rc)
		*ret_stamp = found.row ? found.row->stamp : 0;
	return rc;
}

static bool is_watched(const struct kv_session *s, uint32_t n, const struct resp_arg *name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (s->watched[i].n == name->n && !memcmp(s->watched[i].name, name->bytes, name->n))
			return true;
	}
	return false;
}

enum oltp_rc cmd_watch(struct call *c)
{
	struct kv_session *s = c->s;

	if (s->in_multi)
		return answer_error(c, "ERR WATCH inside MULTI is not allowed");
	if (session_watch_room(s, c->n - 1))
		return answer_error(c, "ERR too many keys are watched, or there is no memory");
	for (uint32_t i = 1; i < c->n; i++) {
		const struct resp_arg *name = &c->args[i];
		struct watched *watched = &s->watched[s->n_watched + c->n_watched];
		enum oltp_rc rc;

		if (is_watched(s, s->n_watched + c->n_watched, name))
			continue;
		watched->removals = keyspace_removals(&c->kv->ks, name);
		rc = stamp_of(c, name, &watched->stamp);
		if (rc)
			return rc;
		watched->n = name->n;
		memcpy(watched->name, name->bytes, name->n);
		c->n_watched++;
	}
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

enum oltp_rc cmd_unwatch(struct call *c)
{
	/* Within EXEC the keys have been compared already, and go with it. */
	if (!c->is_exec)
		kv_session_unwatch(c->s);
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

static enum oltp_rc has_changed(struct call *c, bool *ret_has)
{
	*ret_has = false;
	for (uint32_t i = 0; i < c->s->n_watched && !*ret_has; i++) {
		const struct watched *watched = &c->s->watched[i];
		const struct resp_arg name = { watched->name, watched->n };
		uint64_t stamp;
		enum oltp_rc rc = stamp_of(c, &name, &stamp);

		if (rc)
			return rc;
		*ret_has = stamp != watched->stamp ||
			   (!stamp && keyspace_removals(&c->kv->ks, &name) != watched->removals);
	}
	return OLTP_OK;
}

static enum oltp_rc run_queued(struct call *c, const struct queued *queued)
{
	struct call each = *c;
	enum oltp_rc rc;

	each.command = queued->command;
	each.args = queued->args;
	each.n = queued->n_args;
	each.is_exec = true;
	rc = each.command->run(&each);
	c->n_keys = each.n_keys;
	c->n_dead = each.n_dead;
	return rc == KV_ANSWERED ? OLTP_OK : rc;
}

enum oltp_rc cmd_exec(struct call *c)
{
	size_t before = c->out->n, last = before;
	bool is_changed;
	enum oltp_rc rc;

	if (!c->s->in_multi)
		return answer_error(c, "ERR EXEC without MULTI");
	if (c->s->is_dirty)
		return answer_error(c, "EXECABORT Transaction discarded because of previous "
				       "errors.");
	rc = has_changed(c, &is_changed);
	if (rc)
		return rc;
	if (is_changed) {
		resp_out_null_array(c->out);
		return OLTP_OK;
	}
	resp_out_array(c->out, c->s->n_queued);
	for (const struct queued *q = c->s->first; !rc && q && !c->out->has_failed; q = q->next) {
		last = c->out->n;
		rc = run_queued(c, q);
	}
	/* Of the reply the error is left: nothing has happened. */
	if (rc == KV_UNDO)
		resp_out_cut(c->out, before, last);
	return rc;
}
