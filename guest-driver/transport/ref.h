/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts who uses the control device, so that no layer needs to know how it is freed. */
#ifndef EBB_REF_H
#define EBB_REF_H

#include <linux/kref.h>

struct ebb_ref {
	struct kref kref;
	void (*release)(struct kref *kref);
};

static inline void ebb_ref_get(struct ebb_ref *ref)
{
	kref_get(&ref->kref);
}

static inline void ebb_ref_put(struct ebb_ref *ref)
{
	kref_put(&ref->kref, ref->release);
}

#endif /* EBB_REF_H */
