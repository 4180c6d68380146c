// SPDX-License-Identifier: BSD-3-Clause
/*
 * Making and checking the messages of proto.h.
 */
#include <errno.h>
#include <string.h>

#include "guest-monitor/proto.h"

static size_t msg_size(uint16_t type)
{
	switch (type) {
	case EBB_MSG_HELLO:
		return sizeof(struct ebb_msg_hello);
	case EBB_MSG_OWNED:
		return sizeof(struct ebb_msg_owned);
	case EBB_MSG_ACK:
		return sizeof(struct ebb_msg_ack);
	case EBB_MSG_REPORT:
		return sizeof(struct ebb_msg_report);
	case EBB_MSG_STATS_GET:
		return sizeof(struct ebb_msg_stats_get);
	case EBB_MSG_VOM:
		return sizeof(struct ebb_msg_vom);
	case EBB_MSG_WELCOME:
		return sizeof(struct ebb_msg_welcome);
	case EBB_MSG_SHARES:
		return sizeof(struct ebb_msg_shares);
	case EBB_MSG_STATS:
		return sizeof(struct ebb_msg_stats);
	default:
		return 0;
	}
}

size_t ebb_msg_init(union ebb_msg *msg, uint16_t type, uint32_t id)
{
	memset(msg, 0, msg_size(type));
	msg->hdr.magic = EBB_MSG_MAGIC;
	msg->hdr.version = EBB_MSG_VERSION;
	msg->hdr.type = type;
	msg->hdr.size = (uint32_t)msg_size(type);
	msg->hdr.id = id;
	return msg->hdr.size;
}

size_t ebb_msg_vom_bytes(uint32_t num_buckets)
{
	return offsetof(struct ebb_msg_vom, buckets) +
	       num_buckets * sizeof(struct ebb_vom_bucket);
}

/* Is that the size of that message? */
static int is_size(const union ebb_msg *msg, size_t bytes)
{
	if (msg->hdr.size != bytes)
		return 0;
	if (msg->hdr.type != EBB_MSG_VOM)
		return bytes == msg_size(msg->hdr.type);
	return bytes >= ebb_msg_vom_bytes(0) && msg->vom.num_buckets <= EBB_VOM_MAX_BUCKETS &&
	       bytes == ebb_msg_vom_bytes(msg->vom.num_buckets);
}

/* By hand, as isalnum() depends on the locale. */
static int name_char_is_valid(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

int ebb_msg_name_is_valid(const char *name)
{
	size_t len = strnlen(name, EBB_MSG_NAME_BYTES);

	if (len == 0 || len >= EBB_MSG_NAME_BYTES)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (!name_char_is_valid(name[i]))
			return 0;
	return 1;
}

static int is_zero(const void *data, size_t bytes)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < bytes; i++)
		if (p[i])
			return 0;
	return 1;
}

/* The name itself is judged by the receiver; here only that it ends and is padded. */
static int name_is_padded(const char name[EBB_MSG_NAME_BYTES])
{
	size_t len = strnlen(name, EBB_MSG_NAME_BYTES);

	return len < EBB_MSG_NAME_BYTES && is_zero(name + len, EBB_MSG_NAME_BYTES - len);
}

static int is_mem_amount(uint64_t bytes)
{
	return bytes <= EBB_MSG_MEM_MAX && bytes % EBB_MSG_MEM_STEP == 0;
}

static const char *owned_check(const struct ebb_msg_owned *m)
{
	if (m->flags & ~(EBB_MSG_OWNED_ADDING | EBB_MSG_OWNED_VALUES))
		return "flags";
	if (m->num_nodes > EBB_MAX_NODES)
		return "number of nodes";
	for (uint32_t i = 0; i < m->num_nodes; i++) {
		if (m->nodes[i].node >= EBB_MAX_NODES)
			return "node";
		if (i > 0 && m->nodes[i].node <= m->nodes[i - 1].node)
			return "order of nodes";
		if (!is_mem_amount(m->nodes[i].mem_bytes))
			return "amount of memory";
	}
	if (!is_zero(&m->nodes[m->num_nodes],
		     (EBB_MAX_NODES - m->num_nodes) * sizeof(m->nodes[0])))
		return "unused nodes";
	return NULL;
}

static const char *vom_check(const struct ebb_msg_vom *m)
{
	if (!m->seq)
		return "number";
	for (uint32_t i = 0; i < m->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &m->buckets[i];

		if (b->node >= EBB_MAX_NODES)
			return "node";
		if (i > 0 && (b->node < b[-1].node ||
			      (b->node == b[-1].node && b->value <= b[-1].value)))
			return "order of buckets";
		if (!b->kib)
			return "amount of memory";
		if (b->reserved)
			return "reserved field";
	}
	return NULL;
}

static const char *shares_check(const struct ebb_msg_shares *m)
{
	if (m->flags & ~EBB_MSG_SHARES_ALONE)
		return "flags";
	if (m->reserved)
		return "reserved field";
	if (m->num_nodes > EBB_MAX_NODES)
		return "number of nodes";
	for (uint32_t i = 0; i < m->num_nodes; i++) {
		const struct ebb_msg_share *share = &m->nodes[i];

		if (share->tier >= VIRTIO_EBB_TIER_MAX)
			return "tier";
		if (share->reserved)
			return "reserved field";
		if (!is_mem_amount(share->mem_owned_bytes) ||
		    !is_mem_amount(share->mem_offered_bytes) ||
		    !is_mem_amount(share->mem_demanded_bytes))
			return "amount of memory";
	}
	if (!is_zero(&m->nodes[m->num_nodes],
		     (EBB_MAX_NODES - m->num_nodes) * sizeof(m->nodes[0])))
		return "unused nodes";
	return NULL;
}

static const char *body_check(const union ebb_msg *msg)
{
	switch (msg->hdr.type) {
	case EBB_MSG_HELLO:
		return name_is_padded(msg->hello.name) ? NULL : "name";
	case EBB_MSG_OWNED:
		return owned_check(&msg->owned);
	case EBB_MSG_STATS_GET:
		return name_is_padded(msg->stats_get.name) ? NULL : "name";
	case EBB_MSG_VOM:
		return vom_check(&msg->vom);
	case EBB_MSG_WELCOME:
		return msg->welcome.reserved ? "reserved field" : NULL;
	case EBB_MSG_SHARES:
		return shares_check(&msg->shares);
	case EBB_MSG_STATS:
		return msg->stats.reserved || msg->stats.reserved2 ? "reserved field" : NULL;
	default:
		return NULL;
	}
}

int ebb_msg_check(const union ebb_msg *msg, size_t bytes, const char **ret_what)
{
	const struct ebb_msg_hdr *hdr = &msg->hdr;
	const char *what = NULL;

	if (bytes < sizeof(*hdr))
		what = "size";
	else if (hdr->magic != EBB_MSG_MAGIC)
		what = "magic";
	else if (hdr->version != EBB_MSG_VERSION)
		return -EPROTO;
	else if (msg_size(hdr->type) == 0)
		what = "type";
	else if (!is_size(msg, bytes))
		what = "size";
	else if (hdr->id && hdr->type != EBB_MSG_STATS_GET && hdr->type != EBB_MSG_STATS)
		what = "id";
	else
		what = body_check(msg);
	if (!what)
		return 0;
	*ret_what = what;
	return -EBADMSG;
}
