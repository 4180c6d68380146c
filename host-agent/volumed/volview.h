/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The description of a volume as JSON, for the control protocol and the file of volumes. */
#ifndef EBB_VOLUMED_VOLVIEW_H
#define EBB_VOLUMED_VOLVIEW_H

#include <jansson.h>
#include "volumed/volspec.h"

/* name, tenant, file, format and the numbers; null: a reservation or maximum that there is not. */
json_t *ebb_volview_spec(const struct ebb_volspec *spec);

#endif
