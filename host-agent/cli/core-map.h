/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A map of the shared cores: who runs on which, and how busy. */
#ifndef EBB_CLI_CORE_MAP_H
#define EBB_CLI_CORE_MAP_H

#include <jansson.h>

/* Of the answer to "host"; prints nothing where there are no shared cores. */
void core_map_print(const json_t *host);

#endif
