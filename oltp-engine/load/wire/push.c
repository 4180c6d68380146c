// SPDX-License-Identifier: GPL-2.0-or-later
/* See push.h. */
#include <errno.h>
#include <string.h>

#include "push.h"
#include "reply.h"

static bool is_text(const struct reply_item *item)
{
	return (item->type == '$' || item->type == '+') && !item->is_null;
}

int push_parse(const char *bytes, size_t n, struct push_relocate *ret_push)
{
	static const char kind[] = "ebb-relocate";
	struct reply_item head, name, address, count;
	struct push_relocate push;
	size_t at = 0;

	if (reply_item(bytes, n, &at, &head) <= 0 || head.type != '>' || head.integer < 1 ||
	    reply_item(bytes, n, &at, &name) <= 0)
		return -EPROTO;
	if (!is_text(&name) || name.n != strlen(kind) || memcmp(name.bytes, kind, name.n))
		return 0;
	/* Elements behind these are for later versions. */
	if (head.integer < 3 || reply_item(bytes, n, &at, &address) <= 0 || !is_text(&address) ||
	    reply_item(bytes, n, &at, &count) <= 0 || count.type != ':')
		return -EPROTO;
	if (!address.n || address.n >= sizeof(push.address) ||
	    memchr(address.bytes, 0, address.n) || count.integer < 0 || count.integer > UINT32_MAX)
		return -EPROTO;
	memcpy(push.address, address.bytes, address.n);
	push.address[address.n] = 0;
	push.count = (uint32_t)count.integer;
	*ret_push = push;
	return 1;
}
