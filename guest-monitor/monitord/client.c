// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One application: checks what it says, keeps it, answers.  It is not trusted:
 * whatever it sends, the worst that happens is that it is dropped.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "monitor.h"

#define NS_PER_MS	1000000ull

/* Messages read from one application before it is the next one's turn. */
#define TURN_MESSAGES	16

struct ebb_client *ebb_client_create(int fd, uint64_t now_ns)
{
	struct ebb_client *client = calloc(1, sizeof(*client));
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	int bytes = EBB_MONITOR_SEND_BYTES;

	if (!client)
		return NULL;
	/* Without either the client is still served: a larger queue, pid 0 in the log. */
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	client->fd = fd;
	client->pid = cred.pid;
	client->hello_by_ns = now_ns + EBB_MSG_HELLO_TIMEOUT_MS * NS_PER_MS;
	return client;
}

void ebb_client_destroy(struct ebb_client *client)
{
	if (!client)
		return;
	close(client->fd);
	free(client->values);
	free(client);
}

void ebb_client_drop(struct ebb_client *client, const char *why)
{
	if (client->state == EBB_CLIENT_DEAD)
		return;
	if (why)
		ebb_log("application %s, process %d, dropped: %s",
			client->name[0] ? client->name : "(unnamed)", (int)client->pid, why);
	client->state = EBB_CLIENT_DEAD;
}

static void client_send(struct ebb_client *client, const void *msg, size_t bytes)
{
	ssize_t n = send(client->fd, msg, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n == (ssize_t)bytes)
		return;
	/* The socket buffer is the bounded queue. */
	if (n < 0 && errno == EAGAIN)
		ebb_client_drop(client, "does not read");
	else
		ebb_client_drop(client, n < 0 && errno != EPIPE ? strerror(errno) : NULL);
}

static void welcome_send(struct ebb_client *client, int error)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_WELCOME, 0);

	msg.welcome.error = (uint32_t)error;
	client_send(client, &msg, bytes);
}

static struct ebb_client *registered_find(struct ebb_monitor *monitor, const char *name)
{
	for (size_t i = 0; i < monitor->num_clients; i++) {
		struct ebb_client *other = monitor->clients[i];

		if (other->state == EBB_CLIENT_REGISTERED && strcmp(other->name, name) == 0)
			return other;
	}
	return NULL;
}

/* A process may start again before the end of the one before it has been noticed. */
static bool is_hung_up(const struct ebb_client *client)
{
	struct pollfd p = { .fd = client->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

static size_t registered_count(const struct ebb_monitor *monitor)
{
	size_t num = 0;

	for (size_t i = 0; i < monitor->num_clients; i++)
		if (monitor->clients[i]->state == EBB_CLIENT_REGISTERED)
			num++;
	return num;
}

static int hello_judge(struct ebb_monitor *monitor, const struct ebb_msg_hello *hello)
{
	struct ebb_client *other;

	if (!ebb_msg_name_is_valid(hello->name))
		return EINVAL;
	other = registered_find(monitor, hello->name);
	if (other && is_hung_up(other))
		ebb_client_drop(other, NULL);
	else if (other)
		return EEXIST;
	if (registered_count(monitor) >= EBB_MONITOR_MAX_APPS)
		return EUSERS;
	return 0;
}

static void hello_handle(struct ebb_monitor *monitor, struct ebb_client *client,
			 const struct ebb_msg_hello *hello, uint64_t now_ns)
{
	int error = hello_judge(monitor, hello);

	if (ebb_msg_name_is_valid(hello->name))
		strcpy(client->name, hello->name);
	welcome_send(client, error);
	if (error) {
		ebb_client_drop(client, strerror(error));
		return;
	}
	if (client->state == EBB_CLIENT_DEAD)
		return;
	client->state = EBB_CLIENT_REGISTERED;
	ebb_store_hello(&client->store, &hello->counters, now_ns);
	monitor->is_divide_due = true;
}

static bool is_claimed(const struct ebb_divide_app *divide, const struct ebb_msg_owned *owned)
{
	uint32_t i = 0;

	for (uint32_t node = 0; node < EBB_MAX_NODES; node++) {
		bool is_named = i < owned->num_nodes && owned->nodes[i].node == node;
		uint64_t cpus = is_named ? owned->nodes[i].cpus : 0;
		uint64_t bytes = is_named ? owned->nodes[i].mem_bytes : 0;

		if (divide->nodes[EBB_DIVIDE_CPU][node].claimed != cpus ||
		    divide->nodes[EBB_DIVIDE_MEM][node].claimed != bytes)
			return false;
		i += is_named;
	}
	return true;
}

static void owned_handle(struct ebb_monitor *monitor, struct ebb_client *client,
			 const struct ebb_msg_owned *owned)
{
	struct ebb_divide_app *divide = &client->divide;
	bool is_adding = owned->flags & EBB_MSG_OWNED_ADDING;

	client->has_values = owned->flags & EBB_MSG_OWNED_VALUES;

	/*
	 * No other application gets more or less because this one begins to wait for CPUs, and it
	 * may need this CPU for its request.
	 */
	if (is_adding && is_claimed(divide, owned)) {
		divide->is_adding = true;
		return;
	}
	for (uint32_t node = 0; node < EBB_MAX_NODES; node++) {
		divide->nodes[EBB_DIVIDE_CPU][node].claimed = 0;
		divide->nodes[EBB_DIVIDE_MEM][node].claimed = 0;
	}
	for (uint32_t i = 0; i < owned->num_nodes; i++) {
		const struct ebb_msg_owned_node *n = &owned->nodes[i];

		divide->nodes[EBB_DIVIDE_CPU][n->node].claimed = n->cpus;
		divide->nodes[EBB_DIVIDE_MEM][n->node].claimed = n->mem_bytes;
	}
	divide->is_adding = is_adding;
	monitor->is_divide_due = true;
}

static void ack_handle(struct ebb_monitor *monitor, struct ebb_client *client,
		       const struct ebb_msg_ack *ack, uint64_t now_ns)
{
	if (ack->seq < client->acked_seq || ack->seq > client->sent_seq) {
		ebb_client_drop(client, "acknowledged what was not sent");
		return;
	}
	if (ebb_divide_is_absent(&client->divide, now_ns))
		monitor->is_divide_due = true;
	client->acked_seq = ack->seq;
	client->divide.silent_since_ns = ack->seq == client->sent_seq ? 0 : now_ns;
	/* What did not fit into the window before may go now. */
	ebb_client_publish(client, &monitor->view, now_ns);
}

static void stats_handle(struct ebb_monitor *monitor, struct ebb_client *client,
			 const struct ebb_msg_stats_get *get)
{
	const struct ebb_client *subject = client;
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_STATS, get->hdr.id);

	if (get->name[0])
		subject = registered_find(monitor, get->name);
	if (subject)
		ebb_store_get(&subject->store, &monitor->guest, &msg.stats);
	else
		msg.stats.error = ENOENT;
	client_send(client, &msg, bytes);
}

/* It may be one for a number that this side has yet to see. */
static void vom_handle(struct ebb_client *client, const struct ebb_msg_vom *vom)
{
	if (!client->values)
		client->values = calloc(1, sizeof(*client->values));
	/* Without memory it is left out. */
	if (client->values)
		memcpy(client->values, vom, vom->hdr.size);
}

static void message_handle(struct ebb_monitor *monitor, struct ebb_client *client,
			   const union ebb_msg *msg, uint64_t now_ns)
{
	bool is_hello = msg->hdr.type == EBB_MSG_HELLO;

	if (is_hello != (client->state == EBB_CLIENT_NEW)) {
		ebb_client_drop(client, "message out of turn");
		return;
	}
	switch (msg->hdr.type) {
	case EBB_MSG_HELLO:
		hello_handle(monitor, client, &msg->hello, now_ns);
		break;
	case EBB_MSG_OWNED:
		owned_handle(monitor, client, &msg->owned);
		break;
	case EBB_MSG_ACK:
		ack_handle(monitor, client, &msg->ack, now_ns);
		break;
	case EBB_MSG_REPORT:
		ebb_store_report(&client->store, &monitor->sums, &msg->report, now_ns);
		ebb_monitor_reported(monitor, now_ns);
		break;
	case EBB_MSG_VOM:
		vom_handle(client, &msg->vom);
		break;
	case EBB_MSG_STATS_GET:
		stats_handle(monitor, client, &msg->stats_get);
		break;
	default:
		ebb_client_drop(client, "message for applications");
		break;
	}
}

void ebb_client_receive(struct ebb_monitor *monitor, struct ebb_client *client, uint64_t now_ns)
{
	for (int i = 0; i < TURN_MESSAGES && client->state != EBB_CLIENT_DEAD; i++) {
		const char *what;
		union ebb_msg msg;
		/* MSG_TRUNC: the true size also of a message that is too long. */
		ssize_t n = recv(client->fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);
		int r;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			ebb_client_drop(client, NULL);
			return;
		}
		r = ebb_msg_check(&msg, (size_t)n, &what);
		if (r == 0) {
			message_handle(monitor, client, &msg, now_ns);
		} else if (r == -EPROTO) {
			ebb_log("process %d speaks version %u, not %u", (int)client->pid,
				msg.hdr.version, EBB_MSG_VERSION);
			if (client->state == EBB_CLIENT_NEW)
				welcome_send(client, EPROTO);
			ebb_client_drop(client, NULL);
		} else {
			ebb_log("process %d sent a message with a wrong %s", (int)client->pid,
				what);
			ebb_client_drop(client, "malformed message");
		}
	}
}

static void shares_fill(const struct ebb_client *client, const struct ebb_view *view,
			struct ebb_msg_shares *msg)
{
	msg->num_nodes = view->num_nodes;
	msg->flags = client->is_alone ? EBB_MSG_SHARES_ALONE : 0;
	msg->mem_promise_mib = client->promise_mib;
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		const struct ebb_view_node *v = &view->nodes[i];
		const struct ebb_divide_node *cpu =
			&client->divide.nodes[EBB_DIVIDE_CPU][v->node];
		const struct ebb_divide_node *mem =
			&client->divide.nodes[EBB_DIVIDE_MEM][v->node];
		struct ebb_msg_share *share = &msg->nodes[i];

		share->node = v->node;
		share->held = v->held;
		share->limit = v->limit;
		share->owned = (uint32_t)cpu->owned;
		share->offered = (uint32_t)cpu->offered;
		share->demanded = (uint32_t)cpu->demanded;
		share->tier = v->tier;
		share->deadline_ns = cpu->demanded ? v->deadline_ns : 0;
		share->mem_held_bytes = v->mem_held_bytes;
		share->mem_limit_bytes = v->mem_limit_bytes;
		share->mem_owned_bytes = mem->owned;
		share->mem_offered_bytes = mem->offered;
		share->mem_demanded_bytes = mem->demanded;
		share->mem_deadline_ns = mem->demanded ? v->mem_deadline_ns : 0;
	}
}

void ebb_client_publish(struct ebb_client *client, const struct ebb_view *view, uint64_t now_ns)
{
	union ebb_msg msg;
	size_t bytes = ebb_msg_init(&msg, EBB_MSG_SHARES, 0);

	if (client->state != EBB_CLIENT_REGISTERED ||
	    client->sent_seq - client->acked_seq >= EBB_MSG_WINDOW)
		return;
	/* It sees by itself what changes; told, it would only be woken for nothing. */
	if (client->is_alone && client->sent.flags & EBB_MSG_SHARES_ALONE)
		return;
	shares_fill(client, view, &msg.shares);
	if (client->sent_seq && client->sent.flags == msg.shares.flags &&
	    client->sent.num_nodes == msg.shares.num_nodes &&
	    client->sent.mem_promise_mib == msg.shares.mem_promise_mib &&
	    memcmp(client->sent.nodes, msg.shares.nodes, sizeof(msg.shares.nodes)) == 0)
		return;
	msg.shares.seq = ++client->sent_seq;
	if (client->divide.silent_since_ns == 0)
		client->divide.silent_since_ns = now_ns;
	client->sent = msg.shares;
	client_send(client, &msg, bytes);
}
