/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The vCPUs in a domain's XML; private to metadata*.c. */
#ifndef EBB_IO_METADATA_VCPUS_H
#define EBB_IO_METADATA_VCPUS_H

#include "backend/real/metadata.h"
#include "backend/real/metadata-xml.h"

/* Fills sla.num_nodes, num_vcpus, vcpus and is_enabled. */
int ebb_metadata_vcpus(const struct ebb_metaxml *x, xmlNode *domain, struct ebb_metadata *m);

#endif
