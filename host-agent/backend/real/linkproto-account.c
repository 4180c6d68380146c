/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See linkproto-account.h. */
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include "backend/real/linkproto-account.h"
#include "backend/real/virtio_ebb_link.h"

_Static_assert(EBB_CLASS_RESERVED == 0 && EBB_CLASS_SPOT == 1 && EBB_CLASS_MAX == 2,
	       "order of the classes in struct virtio_ebb_link_account");
_Static_assert(sizeof(struct virtio_ebb_link_account) % 8 == 0, "it is an array of le64");

/* More than that no VM counts in its life; twice as much still fits 64 bits. */
#define COUNTER_MAX	(1ull << 62)

static void get_ledger(const struct virtio_ebb_link_ledger *in, struct ebb_ledger *ret)
{
	*ret = (struct ebb_ledger){
		.metered_usec = le64toh(in->metered_usec), .wanted = le64toh(in->wanted),
		.promised = le64toh(in->promised), .got = le64toh(in->got),
		.violated = le64toh(in->violated), .unclear = le64toh(in->unclear),
		.num_intervals = le64toh(in->num_intervals),
		.num_violations = le64toh(in->num_violations),
		.num_unclear = le64toh(in->num_unclear),
	};
}

int ebb_linkproto_decode_account(const void *payload, struct ebb_account *ret,
				 struct ebb_err *err)
{
	const struct virtio_ebb_link_account *in = payload;
	const __le64 *all = payload;

	if (in->writer == 0)
		return ebb_err_set(err, -EPROTO, "ACCOUNT of writer 0");
	for (size_t i = 1; i < sizeof(*in) / sizeof(*all); i++)
		if (le64toh(all[i]) > COUNTER_MAX)
			return ebb_err_set(err, -EPROTO, "counter %zu of ACCOUNT is %llu", i,
					   (unsigned long long)le64toh(all[i]));
	*ret = (struct ebb_account){ .writer = le64toh(in->writer),
				     .age = le64toh(in->age_usec) };
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		ret->core_usec[k] = le64toh(in->core_usec[k]);
		ret->mib_usec[k] = le64toh(in->mib_usec[k]);
	}
	get_ledger(&in->cpu, &ret->cpu);
	get_ledger(&in->mem, &ret->mem);
	return 0;
}
