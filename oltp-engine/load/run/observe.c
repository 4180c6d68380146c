// SPDX-License-Identifier: GPL-2.0-or-later
/* See observe.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "commands.h"
#include "observe.h"
#include "oltp-engine/load/wire/conn.h"
#include "oltp-engine/load/wire/info.h"

struct watched {
	struct wire_address address;
	struct wire_conn conn;
	uint64_t asked, answered;	/* by the number of the question; 0: none */
	bool is_greeted;
	struct observation last;
};

struct observe {
	const char *password;
	int epoll_fd;
	uint32_t n;
	uint64_t question;
	struct watched nodes[LOAD_NODES_MAX];
};

struct observe *observe_create(const char *password)
{
	struct observe *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->password = password;
	o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (o->epoll_fd >= 0)
		return o;
	free(o);
	return NULL;
}

void observe_destroy(struct observe *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		wire_conn_free(&o->nodes[i].conn);
	close(o->epoll_fd);
	free(o);
}

void observe_node(struct observe *o, uint32_t n, const struct wire_address *address)
{
	if (n != o->n)
		return;
	o->nodes[n] = (struct watched){ .address = *address, .conn.fd = -1 };
	o->n++;
}

/* Whatever goes wrong: the connection is given up, and made again with the next question. */
static void lose(struct watched *w)
{
	wire_conn_close(&w->conn);
	w->asked = 0;
	w->is_greeted = false;
}

static void ask(struct observe *o, uint32_t node)
{
	struct watched *w = &o->nodes[node];
	bool is_new = w->conn.fd < 0;

	/* One that has not answered the last question need not be asked again. */
	if (w->asked)
		return;
	if (is_new && load_write_greeting(&w->conn.out, 3, o->password, LOAD_OBSERVER_NAME))
		return lose(w);
	w->asked = o->question;
	if (load_write_info(&w->conn.out) ||
	    (is_new ? wire_conn_open(&w->conn, &w->address, o->epoll_fd, node) :
		      wire_conn_send(&w->conn)))
		lose(w);
}

void observe_ask(struct observe *o)
{
	o->question++;
	for (uint32_t i = 0; i < o->n; i++)
		ask(o, i);
}

static double number_of(const struct reply_item *text, const char *name)
{
	double value;

	return info_number(text->bytes, text->n, name, &value) ? value : -1;
}

static void take_info(struct watched *w, const struct reply_item *text)
{
	double user = number_of(text, "used_cpu_user"), sys = number_of(text, "used_cpu_sys");

	w->last = (struct observation){
		.cpu_s = user < 0 || sys < 0 ? -1 : user + sys,
		.resident_bytes = number_of(text, "resident_bytes"),
		.cold_bytes = number_of(text, "cold_bytes"),
		.link_sent_bytes = number_of(text, "relocation_link_sent_bytes"),
		.link_received_bytes = number_of(text, "relocation_link_received_bytes"),
	};
	w->answered = w->asked;
	w->asked = 0;
}

/* false: the connection is of no use. */
static bool take_reply(struct watched *w, const char *bytes, size_t n)
{
	struct reply_item item;
	size_t at = 0;

	if (reply_item(bytes, n, &at, &item) <= 0 || item.type == '-')
		return false;
	if (item.type == '>')
		return true;
	if (!w->is_greeted) {
		w->is_greeted = true;
		return true;
	}
	if (!w->asked || (item.type != '=' && item.type != '$') || item.is_null)
		return false;
	take_info(w, &item);
	return true;
}

static void serve(struct watched *w, uint32_t events)
{
	int broken = wire_conn_serve(&w->conn, events), found;
	bool is_good = true;
	const char *bytes;
	size_t n;

	while (is_good && (found = wire_conn_reply(&w->conn, &bytes, &n)) > 0) {
		is_good = take_reply(w, bytes, n);
		wire_conn_consume(&w->conn, n);
	}
	if (!is_good || found < 0 || broken)
		lose(w);
}

void observe_turn(struct observe *o)
{
	struct epoll_event events[LOAD_NODES_MAX];
	int n = epoll_wait(o->epoll_fd, events, LOAD_NODES_MAX, 0);

	for (int i = 0; i < n; i++)
		serve(&o->nodes[events[i].data.u64], events[i].events);
}

bool observe_read(const struct observe *o, uint32_t node, struct observation *ret)
{
	if (node >= o->n || !o->question || o->nodes[node].answered != o->question)
		return false;
	*ret = o->nodes[node].last;
	return true;
}
