/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Constraints that the operator has given Pacemaker: VMs that must be together (affinity), VMs that
 * must not (anti-affinity), hosts that are banned.  Pacemaker keeps them by itself; they are read
 * so that scores and plans do not ask for moves that Pacemaker will refuse. ebb-placed itself adds
 * only rules that take scores to the CIB, none of these.
 *
 * In the cluster's JSON:
 *
 *   "rules":[{"id":"c1","type":"together","vms":["db1","db2"]},
 *    {"id":"c2","type":"apart","vms":["db1","db3"],"within":"ebb-fault-domain","influence":false},
 *    {"id":"c3","type":"ban","vms":["db1"],"hosts":["h2"]}]
 *
 * id: of the constraint.  vms of "apart": each is placed by Pacemaker before those behind it, which
 * have to avoid it.  within: the node attribute that must differ; without it the host.  influence:
 * what a later one prefers counts against an earlier one also while that runs.
 */
#ifndef EBB_PLACED_RULES_H
#define EBB_PLACED_RULES_H

#include <libxml/tree.h>
#include "placed/cluster.h"

/*
 * Reads the constraints of a CIB: the "rules" of the cluster's JSON.  hosts: {name: {node
 * attribute: value}}; resources: that of the cluster's JSON.  A constraint about VMs that is not
 * understood makes a complaint.  Returns a new reference.
 */
json_t *placed_rules_parse(xmlNode *constraints, const json_t *hosts, const json_t *resources,
			   json_t *complaints);

/*
 * Reads "rules"; hosts and VMs are there already.  Rules about other hosts and VMs are left out.  A
 * text in ret_complaint: two rules contradict each other, or there are too many; which is left out.
 * -ENOMEM.
 */
int placed_rules_read(struct placed_cluster *c, const json_t *from, char *ret_complaint,
		      size_t size);

#endif
