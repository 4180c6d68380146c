// SPDX-License-Identifier: GPL-2.0-or-later
/* See recover_files.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_format.h"
#include "recover_files.h"

#define DIGITS	16u

struct listing {
	struct recover_files files;
	int rc;
};

/* Exactly: prefix, 16 digits as they are printed, suffix. */
static bool is_named(const char *name, const char *prefix, const char *suffix,
		     uint64_t *ret_number)
{
	size_t length = strlen(prefix);
	uint64_t number = 0;

	if (strncmp(name, prefix, length) || strlen(name) < length + DIGITS ||
	    strcmp(name + length + DIGITS, suffix))
		return false;
	for (uint32_t i = 0; i < DIGITS; i++) {
		char c = name[length + i];

		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret_number = number;
	return true;
}

/* The room doubles at each power of two. */
static int push(uint64_t **numbers, size_t *n, uint64_t number)
{
	if ((*n & (*n - 1)) == 0) {
		uint64_t *more = realloc(*numbers, (*n ? *n * 2 : 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		*numbers = more;
	}
	(*numbers)[(*n)++] = number;
	return 0;
}

static void see(void *ctx, const char *name)
{
	struct listing *listing = ctx;
	struct recover_files *files = &listing->files;
	uint64_t number;
	int rc = 0;

	if (is_named(name, "log-", "", &number))
		rc = push(&files->segments, &files->n_segments, number);
	else if (is_named(name, "checkpoint-", "", &number))
		rc = push(&files->checkpoints, &files->n_checkpoints, number);
	else if (is_named(name, "checkpoint-", CHECKPOINT_TEMP_SUFFIX, &number))
		rc = push(&files->temps, &files->n_temps, number);
	listing->rc = listing->rc ?: rc;
}

int recover_files_list(const struct log_io *io, const char *dir, struct recover_files *ret_files)
{
	struct listing listing = { .rc = 0 };
	int rc = io->ops->list(io->ctx, dir, see, &listing);

	rc = rc ?: listing.rc;
	if (rc)
		recover_files_finish(&listing.files);
	else
		*ret_files = listing.files;
	return rc;
}

void recover_files_finish(struct recover_files *files)
{
	free(files->segments);
	free(files->checkpoints);
	free(files->temps);
	*files = (struct recover_files){ .n_segments = 0 };
}
