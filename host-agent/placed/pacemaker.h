/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pacemaker by its own command line tools, which run as children with a time limit: crm_mon,
 * cibadmin and attrd_updater to read; attrd_updater, crm_attribute, crm_resource and cibadmin to
 * change something.
 */
#ifndef EBB_PLACED_PACEMAKER_H
#define EBB_PLACED_PACEMAKER_H

#include <jansson.h>
#include "placed/decide.h"
#include "util/err.h"

struct placed_pacemaker {
	unsigned limit_ms;		/* for one program */
	unsigned dampen_s;		/* attributes that change within it are one transition */
	char self[PLACED_NAME_SIZE];	/* name of this node */
};

/*
 * The cluster as JSON (cluster.h), without facts that nobody tells; complaints: an array to which
 * texts are added.  NULL: Pacemaker does not answer, or makes no sense.
 */
json_t *placed_pacemaker_read(const struct placed_pacemaker *p, json_t *complaints,
			      struct ebb_err *err);

/* The name of this node; to be called once, when Pacemaker runs. */
int placed_pacemaker_self(struct placed_pacemaker *p, struct ebb_err *err);

/* Facts of this host, compact JSON, into attrd alone: they are no reason for a transition. */
int placed_pacemaker_tell(const struct placed_pacemaker *p, const char *facts, struct ebb_err *err);

/* One action but SAY.  -EIO: the tool refused; its word is in err. */
int placed_pacemaker_act(const struct placed_pacemaker *p, const struct placed_action *a,
			 struct ebb_err *err);

/*
 * The three texts that the above reads, for tests: output of `crm_mon --output-as=xml`, `cibadmin
 * --query` and `attrd_updater --query --output-as=xml` ("" for none).
 */
json_t *placed_pacemaker_parse(const char *mon, const char *cib, const char *facts,
			       json_t *complaints, struct ebb_err *err);

/* The error in output of a tool with --output-as=xml, which says it nowhere else; "": none. */
void placed_pacemaker_failure(const char *output, char *ret, size_t size);

#endif
