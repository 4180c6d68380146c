// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oltp-volume: shows what is in a volume, which may be in use, or makes one.
 * Exit status: 0, 1 (could not, or it could not be printed), 64 (usage).
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oltp_volume.h"

const char *argp_program_version = "oltp-volume 1 (Ebb)";

struct arguments {
	const char *path;
	bool is_format, is_forced;
};

static const struct argp_option options[] = {
	{ "format", 'F', NULL, 0, "make an empty volume of it, unless it may hold something", 0 },
	{ "force", 'f', NULL, 0, "with --format: whatever it holds", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'F':
		a->is_format = true;
		break;
	case 'f':
		a->is_forced = true;
		break;
	case ARGP_KEY_ARG:
		if (a->path)
			argp_error(state, "one PATH only");
		a->path = arg;
		break;
	case ARGP_KEY_END:
		if (!a->path)
			argp_error(state, "which PATH?");
		if (a->is_forced && !a->is_format)
			argp_error(state, "--force needs --format");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* One extent a line: file, its length, which of its bytes, where they are on the device. */
static void print_extent(void *ctx, const struct oltp_volume_extent *extent)
{
	bool *has_head = ctx;

	if (!*has_head)
		printf("%-28s %12s %12s %14s %12s\n", "file", "bytes", "from", "on device at",
		       "extent");
	*has_head = true;
	printf("%-28s %12" PRIu64 " %12" PRIu64 " %14" PRIu64 " %12" PRIu64 "\n", extent->name,
	       extent->file_bytes, extent->file_offset, extent->offset, extent->bytes);
}

static void print_info(const struct oltp_volume_info *info)
{
	printf("volume ");
	for (uint32_t i = 0; i < sizeof(info->uuid); i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info->uuid[i]);
	printf(": generation %" PRIu64 ", %" PRIu64 " MiB, %" PRIu64 " MiB free, units of %u KiB, "
	       "%u files, %u extents\n", info->generation, info->bytes >> 20,
	       info->free_bytes >> 20, info->unit_bytes >> 10, info->n_files, info->n_extents);
}

static int list(const char *path)
{
	struct oltp_volume_info info;
	bool has_head = false;
	int rc = oltp_volume_list(path, &info, print_extent, &has_head);

	if (!rc)
		print_info(&info);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PATH",
		.doc = "Shows which files are in a volume of oltp-server or oltp-bench, and where "
		       "on the device; it may be in use. PATH is a block device or a file.",
	};
	struct arguments a = { 0 };
	int rc;

	argp_err_exit_status = 64;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	rc = a.is_format ? oltp_volume_format(a.path, a.is_forced) : list(a.path);
	if (rc) {
		fprintf(stderr, "oltp-volume: %s: %s%s\n", a.path, oltp_volume_strerror(rc),
			rc == -EEXIST || rc == -ENOTEMPTY ? "; see --force" : "");
		return 1;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "oltp-volume: standard output: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}
