/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pool memory: <ebb:memory>, and what the rest of a domain's XML says; private to metadata*.c. */
#ifndef EBB_IO_METADATA_MEM_H
#define EBB_IO_METADATA_MEM_H

#include "backend/real/metadata.h"
#include "backend/real/metadata-xml.h"

/*
 * After the vCPUs and <ebb:cpu>.  memory: the <ebb:memory> element, whose shape was checked, or
 * NULL.  Fills the memory half of the SLA, boot_bytes, pool_blocks and mem_blocks.
 */
int ebb_metadata_mem(const struct ebb_metaxml *x, xmlNode *domain, xmlNode *memory, bool is_live,
		     struct ebb_metadata *m);

#endif
