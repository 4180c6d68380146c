/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The description of an emulated host. */
#include <errno.h>
#include <string.h>
#include "backend/emulated/emuspec.h"

/* The kernel refuses less. */
#define MIN_QUOTA_USEC	1000
/* Of the machine, for all cores. */
#define HOST_PERCENT	90

static int parse_number(const char **at, uint32_t max, uint32_t *ret)
{
	uint32_t n = 0;
	const char *p = *at;

	if (*p < '1' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (*p - '0');
		if (n > max)
			return -EINVAL;
	}
	*ret = n;
	*at = p;
	return 0;
}

/* A decimal fraction with at most three digits after the point, in thousandths. */
static int parse_permille(const char **at, uint32_t *ret)
{
	const char *p = *at;
	uint32_t n = 0;
	int decimals = 0;

	if (*p != '0' && *p != '1')
		return -EINVAL;
	n = *p++ - '0';
	if (*p == '.') {
		p++;
		for (; *p >= '0' && *p <= '9' && decimals < 3; p++, decimals++)
			n = n * 10 + (*p - '0');
		if (decimals == 0)
			return -EINVAL;
	}
	for (; decimals < 3; decimals++)
		n *= 10;
	if (n < 10 || n > 1000)
		return -EINVAL;
	*ret = n;
	*at = p;
	return 0;
}

/* Nothing, or "/Pms" and nothing more. */
static int parse_period(const char *p, uint32_t *ret)
{
	*ret = EBB_EMUSPEC_DEFAULT_PERIOD_MS;
	if (*p == '\0')
		return 0;
	if (*p++ != '/' || parse_number(&p, EBB_EMUSPEC_MAX_PERIOD_MS, ret) < 0)
		return -EINVAL;
	return strcmp(p, "ms") == 0 ? 0 : -EINVAL;
}

int ebb_emuspec_parse(const char *text, struct ebb_emuspec *ret, struct ebb_err *err)
{
	static const char prefix[] = "emulated:";
	const char *p = text + strlen(prefix);
	struct ebb_emuspec s;

	if (strncmp(text, prefix, strlen(prefix)) != 0 ||
	    parse_number(&p, EBB_EMUSPEC_MAX_SOCKETS, &s.sockets) < 0 || *p++ != 'x' ||
	    parse_number(&p, EBB_EMUSPEC_MAX_CORES, &s.cores) < 0 || *p++ != 'x' ||
	    parse_number(&p, EBB_EMUSPEC_MAX_THREADS, &s.threads) < 0 || *p++ != '@' ||
	    parse_permille(&p, &s.share_permille) < 0 || parse_period(p, &s.period_ms) < 0)
		return ebb_err_set(
			err, -EINVAL,
			"\"%s\" is no emulated host: write emulated:SxCxT@SHARE with "
			"1-%u sockets, 1-%u cores, 1-%u threads and a share of 0.01-1, for example "
			"emulated:2x4x1@0.25, or emulated:SxCxT@SHARE/PERIODms with a period of "
			"1-%u ms",
			text, EBB_EMUSPEC_MAX_SOCKETS, EBB_EMUSPEC_MAX_CORES,
			EBB_EMUSPEC_MAX_THREADS, EBB_EMUSPEC_MAX_PERIOD_MS);
	*ret = s;
	return 0;
}

static struct ebb_emuspec_quota quota_of(const struct ebb_emuspec *spec, uint32_t scale_permille)
{
	struct ebb_emuspec_quota q = { .period_usec = spec->period_ms * 1000 };

	/* The same period for a core and its threads: the kernel compares their ratios. */
	if ((uint64_t)q.period_usec * spec->share_permille < (uint64_t)MIN_QUOTA_USEC * 1000)
		q.period_usec = MIN_QUOTA_USEC * 1000 / spec->share_permille;
	q.quota_usec = (uint64_t)q.period_usec * spec->share_permille * scale_permille / 1000000;
	if (q.quota_usec < MIN_QUOTA_USEC)
		q.quota_usec = MIN_QUOTA_USEC;
	return q;
}

struct ebb_emuspec_quota ebb_emuspec_thread_quota(const struct ebb_emuspec *spec)
{
	return quota_of(spec, 1000);
}

struct ebb_emuspec_quota ebb_emuspec_core_quota(const struct ebb_emuspec *spec)
{
	return quota_of(spec, 1000 + 300 * (spec->threads - 1));
}

struct ebb_emuspec_quota ebb_emuspec_host_quota(const struct ebb_emuspec *spec, uint32_t num_cpus)
{
	struct ebb_emuspec_quota q = ebb_emuspec_core_quota(spec);
	const uint64_t all_usec = (uint64_t)spec->sockets * spec->cores * q.quota_usec;
	const uint64_t most_usec = (uint64_t)num_cpus * q.period_usec * HOST_PERCENT / 100;

	/* The kernel refuses a group that may use more than the one around it. */
	if (q.quota_usec < most_usec)
		q.quota_usec = all_usec <= most_usec ? 0 : most_usec;
	return q;
}
