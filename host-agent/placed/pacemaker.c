/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the tools of Pacemaker; see pacemaker.h.  What they print is read in parse.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/child.h"
#include "placed/pacemaker.h"
#include "util/text.h"

/* Of attrd_updater, for an attribute that nobody has set. */
#define EXIT_NO_SUCH	105
#define EXIT_EXISTS	108		/* of cibadmin */

static int run(const struct placed_pacemaker *p, const char *const *argv, char **ret_output,
	       struct ebb_err *err)
{
	char *output = NULL, failure[256] = "";
	int rc = placed_child_run(argv, p->limit_ms, &output, err);

	if (rc > 0)
		placed_pacemaker_failure(output, failure, sizeof(failure));
	if (*failure)
		ebb_err_set(err, rc, "%s", failure);
	if (ret_output && rc >= 0)
		*ret_output = output;
	else
		free(output);
	return rc;
}

static int act(const struct placed_pacemaker *p, const char *const *argv, struct ebb_err *err)
{
	const int rc = run(p, argv, NULL, err);

	return rc > 0 ? -EIO : rc;
}

#define ARGV(...)	((const char *const[]){ __VA_ARGS__, NULL })

int placed_pacemaker_self(struct placed_pacemaker *p, struct ebb_err *err)
{
	char *output = NULL;
	int rc = run(p, ARGV("crm_node", "--name"), &output, err);

	if (rc == 0) {
		output[strcspn(output, "\n")] = '\0';
		if (!*output || strlen(output) >= sizeof(p->self))
			rc = ebb_err_set(err, -EINVAL, "crm_node --name says \"%.100s\"", output);
		else
			ebb_text_copy(p->self, sizeof(p->self), output);
	}
	free(output);
	return rc > 0 ? -EIO : rc;
}

json_t *placed_pacemaker_read(const struct placed_pacemaker *p, json_t *complaints,
			      struct ebb_err *err)
{
	char *mon = NULL, *cib = NULL, *facts = NULL;
	json_t *all = NULL;
	int rc = run(p, ARGV("crm_mon", "--one-shot", "--output-as=xml"), &mon, err);

	if (rc == 0)
		rc = run(p, ARGV("cibadmin", "--query"), &cib, err);
	if (rc == 0) {
		/* -A and -Q as letters: the long names changed between versions. */
		rc = run(p, ARGV("attrd_updater", "-n", PLACED_FACTS, "-A", "-Q",
				 "--output-as=xml"), &facts, err);
		if (rc != 0 && rc != EXIT_NO_SUCH)
			json_array_append_new(complaints, json_sprintf(
				"facts of other hosts can not be read: %s", err->text));
		rc = 0;
	}
	if (rc == 0)
		all = placed_pacemaker_parse(mon, cib, facts ? facts : "", complaints, err);
	free(mon);
	free(cib);
	free(facts);
	return all;
}

int placed_pacemaker_tell(const struct placed_pacemaker *p, const char *facts, struct ebb_err *err)
{
	return act(p, ARGV("attrd_updater", "-n", PLACED_FACTS, "-U", facts, "-p"), err);
}

static int add_rule(const struct placed_pacemaker *p, const char *vm, struct ebb_err *err)
{
	char xml[8 * PLACED_NAME_SIZE + 512];
	int rc;

	snprintf(xml, sizeof(xml),
		 "<rsc_location id=\"" PLACED_SCORE "%s\" rsc=\"%s\">"
		 "<rule id=\"" PLACED_SCORE "%s-rule\" score-attribute=\"" PLACED_SCORE "%s\">"
		 "<expression id=\"" PLACED_SCORE "%s-defined\" attribute=\"" PLACED_SCORE "%s\" "
		 "operation=\"defined\"/></rule></rsc_location>", vm, vm, vm, vm, vm, vm);
	rc = run(p, ARGV("cibadmin", "--create", "-o", "constraints", "--xml-text", xml), NULL,
		 err);
	/* Another host was faster. */
	return rc == EXIT_EXISTS ? 0 : rc > 0 ? -EIO : rc;
}

int placed_pacemaker_act(const struct placed_pacemaker *p, const struct placed_action *a,
			 struct ebb_err *err)
{
	char name[PLACED_NAME_SIZE + 32], value[32], delay[16];

	snprintf(name, sizeof(name), PLACED_SCORE "%s", a->vm);
	snprintf(value, sizeof(value), "%lld", (long long)a->value);
	snprintf(delay, sizeof(delay), "%u", p->dampen_s);
	switch (a->type) {
	case PLACED_SET_SCORE:
		placed_score_format((int32_t)a->value, value);
		return act(p, ARGV("attrd_updater", "-n", name, "-U", value, "-d", delay), err);
	case PLACED_DROP_SCORE:
		return act(p, ARGV("attrd_updater", "-n", name, "-D"), err);
	case PLACED_SET_STICKINESS:
		return act(p, ARGV("crm_resource", "-r", a->vm, "--meta", "-p",
				   "resource-stickiness", "-v", value), err);
	case PLACED_SET_UTILIZATION:
		return act(p, ARGV("crm_resource", "-r", a->vm, "--utilization", "-p",
				   placed_utilization[a->resource], "-v", value), err);
	case PLACED_SET_CAPACITY:
		return act(p, ARGV("crm_attribute", "-N", p->self, "--utilization", "-n",
				   placed_utilization[a->resource], "-v", value), err);
	case PLACED_ADD_RULE:
		return add_rule(p, a->vm, err);
	case PLACED_SAY:
		break;
	}
	return 0;
}
