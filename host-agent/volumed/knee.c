/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The depth to use a disk with. */
#include "volumed/knee.h"

size_t ebb_knee_find(const struct ebb_knee_point *points, size_t num)
{
	uint64_t most = 0;
	size_t i = 0;

	for (size_t k = 0; k < num; k++)
		most = points[k].iops > most ? points[k].iops : most;
	while (i < num - 1 && points[i].iops * 100 < most * EBB_KNEE_PERCENT)
		i++;
	return i;
}
