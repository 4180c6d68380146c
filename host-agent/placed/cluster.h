/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cluster as one host sees it at one moment: the facts that the hosts tell each other, and
 * Pacemaker's nodes, resources and attributes.  Plain data; pacemaker.c and report.c
 * gather it, decide.c and model.c read it.
 *
 * Facts of a host are the value of its node attribute PLACED_FACTS, compact JSON:
 *
 *   {"v":1,"cap":[4000,2048,0],"ready":true,"moving":"","vms":{"db1":{
 *    "c":"spot","s":0,"a":7200,"u":[900,512,0],"p":[1800,640,0],
 *    "m":[1800,640,0],"f":[1000,256,0],"on":true,"mv":"relieves node 0 ..."}}}
 *
 * Amounts are in the order of enum place_resource; 0 as a capacity: the resource is not limited.
 * c: class; s: 1 for a secondary; a: age in seconds; u: use now; p: most within the last day; m:
 * most since it was first seen (may be missing); f: what must not be oversold; on: it works for
 * clients; mv: ebbd recommends to move it, and why.
 *
 * The whole cluster as JSON; "quorum" is null while nobody knows ("ebbctl place --facts FILE",
 * "ebb-placed --dump"):
 *
 *   {"quorum":true,"hosts":{"h1":{"online":true,"facts":{...},"scores":{"db1":1000},
 *    "utilization":{"ebb-cpu":4000,"ebb-memory":2048},"domains":{"ebb-fault-domain":"rack1"}}},
 *    "resources":{"db1":{"host":"h1","settled":true,"busy":false,"class":"oltp","stickiness":50,
 *    "rule":true,"migrates":true,"utilization":{"ebb-cpu":1000,"ebb-memory":256}}},
 *    "rules":[...]}	(rules.h)
 */
#ifndef EBB_PLACED_CLUSTER_H
#define EBB_PLACED_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "place/place.h"
#include "util/err.h"

#define PLACED_VERSION		1	/* of the facts; hosts with another are not understood */
#define PLACED_FACTS		"ebb-facts"	/* node attribute, not in the CIB */
#define PLACED_SCORE		"ebb-score-"	/* node attribute, with the name of the VM */
#define PLACED_FAULT_DOMAIN	"ebb-fault-domain"	/* node attributes of the operator's */
#define PLACED_UPGRADE_DOMAIN	"ebb-upgrade-domain"
#define PLACED_NAME_SIZE	64	/* of hosts, VMs and classes, with the NUL */
#define PLACED_WHY_SIZE		192	/* a reason of ebbd fits (EBB_TEXT_SIZE) */
#define PLACED_MAX_HOSTS	64
#define PLACED_MAX_VMS		4096
#define PLACED_MAX_RULES	16384

/* Scores: 0 to PLACED_SCORE_MOST, or one of these. */
#define PLACED_SCORE_MOST	1000
#define PLACED_SCORE_NEVER	(-1000000)	/* Pacemaker's -INFINITY */
#define PLACED_SCORE_NONE	(-2000000)	/* there is no such attribute */
#define PLACED_SCORE_LIE	(-3000000)	/* the value is none of these */

/* Names of utilization attributes by enum place_resource; NULL: Pacemaker does not count it. */
extern const char *const placed_utilization[PLACE_N_RESOURCES];

enum placed_domain { PLACED_FAULT, PLACED_UPGRADE, PLACED_N_DOMAINS };

extern const char *const placed_domains[PLACED_N_DOMAINS];	/* their attributes */

struct placed_host {
	char name[PLACED_NAME_SIZE];
	bool is_online;			/* a member that may run resources, says Pacemaker */
	bool has_facts;			/* they are there, and of our version */
	uint32_t version;		/* of its facts; 0: it tells none, or they make no sense */
	bool is_ready;			/* its ebbd and libvirtd answer */
	double capacity[PLACE_N_RESOURCES];	/* 0: not limited */
	double utilization[PLACE_N_RESOURCES];	/* capacity for Pacemaker; -1: not set */
	char moving[PLACED_NAME_SIZE];	/* VM that it is sending elsewhere; "": none */
	/*
	 * Index of the first host in the same domain.  To Pacemaker all hosts without the attribute
	 * are in one.
	 */
	int domains[PLACED_N_DOMAINS];
};

struct placed_vm {
	char name[PLACED_NAME_SIZE];
	/*
	 * As told by the host on which Pacemaker has the VM, whatever other hosts say; for a VM
	 * that runs nowhere, the last report.
	 */
	bool is_known;			/* somebody told it once */
	char class[PLACED_NAME_SIZE];
	enum place_role role;
	uint32_t age_s;
	double use[PLACE_N_RESOURCES], peak[PLACE_N_RESOURCES], most[PLACE_N_RESOURCES];
	double floor[PLACE_N_RESOURCES];
	bool is_active;
	bool should_move;
	char why[PLACED_WHY_SIZE];	/* it should move */
	int host;			/* whose ebbd runs it; -1: none */
	int other_host;			/* another host that says so, too; -1: none */
	/* As Pacemaker has it. */
	bool is_resource;
	bool is_settled;		/* started on one host, managed, and nothing is wrong */
	bool is_busy;			/* it is being started, stopped or moved */
	bool can_migrate;		/* Pacemaker may move it live */
	int started_on;			/* -1: nowhere */
	int32_t stickiness;		/* -1: not set */
	double utilization[PLACE_N_RESOURCES];	/* -1: not set */
	bool has_rule;			/* a location rule takes its scores */
	int32_t scores[PLACED_MAX_HOSTS];	/* that stand now */
	int set;			/* index of the first VM of those that must be together */
	int next;			/* index of the next one of them; -1: none */
};

enum placed_rule_type { PLACED_TOGETHER, PLACED_APART, PLACED_BAN };

/* A constraint of the operator's; of one about several VMs there is a rule for each pair. */
struct placed_rule {
	char id[PLACED_NAME_SIZE];
	enum placed_rule_type type;
	enum place_scope scope;		/* of APART */
	bool has_influence;		/* of APART: what vm wants counts against other's wishes */
	int vm;				/* of APART the one that has to avoid the other one */
	int other;			/* VM; of BAN the host */
};

/* A score attribute of a VM that is no resource. */
struct placed_stray {
	int host;
	char vm[PLACED_NAME_SIZE];
};

#define PLACED_MAX_STRAYS	32	/* more are found when these are gone */
#define PLACED_MAX_COMPLAINTS	256	/* more are left out */

struct placed_cluster {
	bool has_quorum;		/* this host belongs to the part that has it */
	bool is_quorum_known;		/* not while a coordinator is elected: nothing is done */
	struct placed_host hosts[PLACED_MAX_HOSTS];	/* by name */
	int num_hosts;
	struct placed_vm *vms;		/* by name; from malloc() */
	int num_vms;
	struct placed_rule *rules;	/* from malloc() */
	int num_rules;
	struct placed_stray strays[PLACED_MAX_STRAYS];
	int num_strays;
	/* Facts that were left out because they make no sense, a line each, for the log. */
	json_t *complaints;
};

/*
 * Reads the cluster's JSON.  What one host says wrongly is left out, with a complaint; -EINVAL only
 * if it is no such object at all, -ENOSPC if there are more hosts or resources than fit.  On
 * success the caller frees with placed_cluster_finish().
 */
int placed_cluster_read(const json_t *from, struct placed_cluster *ret, struct ebb_err *err);
void placed_cluster_finish(struct placed_cluster *c);

/* Copies from before the VMs of which no host tells now: their host may have died. */
void placed_cluster_remember(struct placed_cluster *c, const struct placed_cluster *before);

/* Index, -1 if there is none. */
int placed_host_find(const struct placed_cluster *c, const char *name);
int placed_vm_find(const struct placed_cluster *c, const char *name);
/* Where it is, or would be. */
int placed_vm_place(const struct placed_cluster *c, const char *name);

/*
 * The rule that keeps the VM, or one that must be with it, off the host; NULL: there is none.
 * where: the host of each VM of the cluster, -1: none; NULL: as Pacemaker has them.
 */
const struct placed_rule *placed_rule_against(const struct placed_cluster *c,
					      const struct placed_vm *vm, int host,
					      const int *where);

/* Whether two hosts are one within the scope of an APART rule. */
bool placed_rule_joins(const struct placed_cluster *c, const struct placed_rule *rule, int a,
		       int b);

/* Letters, digits and ".-_", not too long: fits a resource of Pacemaker and an attribute. */
bool placed_name_ok(const char *name);

/* The value of a score attribute: a number from 0 to PLACED_SCORE_MOST, NEVER, or LIE. */
int32_t placed_score_parse(const char *text);
/* As Pacemaker wants it, of a score that may stand (0 to MOST, NEVER). */
void placed_score_format(int32_t score, char ret[16]);

#endif
