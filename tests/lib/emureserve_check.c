/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A busy thread with a promise beside 24 busy ones without, all on one emulated core.  What counts
 * is the thread's part of the CPU time that the core delivered: other programs of the machine may
 * take time from the core as a whole, but have no effect on that part.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emuhost.h"
#include "backend/emulated/emureserve.h"
#include "tests/lib/busy_threads.h"
#include "tests/lib/emureserve_check.h"
#include "util/clock.h"
#include "util/fs.h"

#define NUM_THREADS	25
/* The core has delivered so much when its division is judged. */
#define ENOUGH_USEC	900000u
#define MEASUREMENTS_MAX	5u
#define SHARE_PERMILLE	300
#define PERIOD_MS	500
/*
 * A maximum has periods of its own.  So the thread may have one of them more or less than the core
 * in that time, each with 300 thousandths of what the core delivers in a period.
 */
#define ONE_PERIOD	(300 * SHARE_PERMILLE * PERIOD_MS / ENOUGH_USEC)

struct check {
	struct ebb_emuhost *host;
	struct busy busy;
	char *text;
	size_t size;
	uint64_t measured_usec;		/* that the last measurement took */
	unsigned slack;			/* for a half, thousandths of the core */
};

#define FAIL(c, ...)	(snprintf((c)->text, (c)->size, __VA_ARGS__), -1)

/* The first thread's part of what the core delivers, in thousandths. */
static int measure(struct check *c, uint32_t *ret_permille)
{
	uint64_t since;
	int rc;

	/* What the scheduler owes from before is paid back soon. */
	usleep(200000);
	since = ebb_clock_mono_usec();
	rc = busy_measure(&c->busy, ENOUGH_USEC, ret_permille);
	c->measured_usec = ebb_clock_mono_usec() - since;
	return rc < 0 ? FAIL(c, "the load can not be measured: %s", strerror(-rc)) : 0;
}

static int reserve(struct check *c, uint16_t keep, uint16_t rest, uint16_t max)
{
	const struct ebb_emureserve r = { .keep = keep, .rest = rest, .max = max };
	uint32_t core, rank;
	int rc = ebb_emuhost_reserve(c->host, c->busy.tids[0], 0, 0, &r);

	if (rc < 0)
		return FAIL(c, "a promise of %u: %s", keep, strerror(-rc));
	for (int i = 0; i < NUM_THREADS; i++)
		if (ebb_emuhost_where(c->host, c->busy.tids[i], &core, &rank) < 0 || core || rank)
			return FAIL(c, "with a promise of %u thread %d is not on core 0", keep, i);
	return 0;
}

/* The number that the kernel gave to the group of a thread: the newer the group, the higher. */
static int group_number(struct check *c, int i, ino_t *ret)
{
	char text[65536], path[PATH_MAX];
	struct ebb_cgroup cg;
	struct stat st;
	int rc = ebb_fs_read("/proc/self/mountinfo", text, sizeof(text), NULL);

	if (rc == 0)
		rc = ebb_cgroup_find(text, &cg, NULL);
	if (rc == 0)
		rc = ebb_cgroup_of_thread(&cg, c->busy.tids[i], "cpu", path, sizeof(path));
	if (rc < 0 || stat(path, &st) < 0)
		return FAIL(c, "the group of thread %d is not found", i);
	*ret = st.st_ino;
	return 0;
}

/* Else what the end of a period costs would be lost by the promise. */
static int rest_is_newest(struct check *c, int promised)
{
	ino_t kept, rest;

	if (group_number(c, promised, &kept) < 0 || group_number(c, promised + 1, &rest) < 0)
		return -1;
	return rest > kept ? 0 : FAIL(c, "the group of the rest is older than one with a promise");
}

/*
 * Other programs disturb a measurement, above all in an emulated guest that waits for the CPUs of
 * its host. One that fits is enough: a kernel that divides the core wrongly gives none.
 */
static int expect(struct check *c, const char *what, uint32_t least, uint32_t most, uint32_t *ret)
{
	for (uint32_t i = 0; i < MEASUREMENTS_MAX; i++) {
		if (measure(c, ret) < 0)
			return -1;
		if (*ret >= least && *ret <= most)
			return 0;
	}
	return FAIL(c, "%s: %u permille of the core in the last of %u measurements, should be "
		    "%u to %u", what, *ret, MEASUREMENTS_MAX, least, most);
}

/*
 * A maximum is a part of the whole core.  Where other programs leave less of it, that is more of
 * what it delivers: so much of that, in thousandths, in the last measurement.
 */
static uint32_t of_delivered(const struct check *c, uint32_t permille)
{
	uint64_t whole_usec = c->measured_usec * SHARE_PERMILLE / 1000;

	return permille * (whole_usec > ENOUGH_USEC ? whole_usec : ENOUGH_USEC) / ENOUGH_USEC;
}

/*
 * The first thread has a maximum: permille of the core.  Without, it would have `free` of what the
 * core delivers; where others leave it so little that both are the same, nothing can be judged.
 */
static int expect_most(struct check *c, uint32_t permille, uint32_t slack, uint32_t free,
		       uint32_t *ret)
{
	bool is_judged = false;

	for (uint32_t i = 0; i < MEASUREMENTS_MAX; i++) {
		uint32_t most;

		if (measure(c, ret) < 0)
			return -1;
		most = of_delivered(c, permille) + slack;
		if (*ret <= most && most < free)
			return 0;
		is_judged = is_judged || most < free;
	}
	if (!is_judged)
		return 0;
	return FAIL(c, "at most %u permille: %u of what the core delivered in the last of %u "
		    "measurements, which took %u ms", permille, *ret, MEASUREMENTS_MAX,
		    (unsigned)(c->measured_usec / 1000));
}

/* The first thread leaves the core and comes back: its promise is still in force. */
static int come_back(struct check *c)
{
	if (ebb_emuhost_place(c->host, c->busy.pid, c->busy.tids[0], 1, 0) < 0 ||
	    ebb_emuhost_place(c->host, c->busy.pid, c->busy.tids[0], 0, 0) < 0)
		return FAIL(c, "the thread with a promise can not change cores");
	return 0;
}

/* Where nothing is promised, the core needs no groups. */
static int stay_plain(struct check *c)
{
	char path[80], text[1024];

	if (reserve(c, 0, 1000, 0) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/cgroup", c->busy.pid, c->busy.tids[0]);
	if (ebb_fs_read(path, text, sizeof(text), NULL) < 0 || !strstr(text, "/c0\n"))
		return FAIL(c, "without a promise the thread is not in the core's own group");
	return 0;
}

/* The first thread has a maximum among the rest; another gets a promise, so the rest is anew. */
static int renewed(struct check *c)
{
	const struct ebb_emureserve r = { .keep = 100, .rest = 900 };
	uint32_t capped;
	int rc = ebb_emuhost_reserve(c->host, c->busy.tids[1], 0, 0, &r);

	if (rc < 0)
		return FAIL(c, "a promise to a second thread: %s", strerror(-rc));
	if (rest_is_newest(c, 1) < 0)
		return -1;
	return expect_most(c, 10, 14, 35, &capped);
}

static int check_parts(struct check *c)
{
	uint32_t flat, kept, small, most, none;

	for (int i = 0; i < NUM_THREADS; i++)
		if (ebb_emuhost_place(c->host, c->busy.pid, c->busy.tids[i], 0, 0) < 0)
			return FAIL(c, "thread %d can not be placed", i);
	if (stay_plain(c) < 0 || expect(c, "no promises", 0, 100, &flat) < 0 ||
	    reserve(c, 500, 500, 0) < 0 || rest_is_newest(c, 0) < 0 || come_back(c) < 0 ||
	    expect(c, "50 per cent promised", 500 - c->slack, 500 + c->slack, &kept) < 0 ||
	    reserve(c, 200, 800, 0) < 0 ||
	    expect(c, "20 per cent promised", 200 - c->slack * 3 / 5, 200 + c->slack * 3 / 5,
		   &small) < 0 ||
	    reserve(c, 500, 500, 300) < 0 ||
	    expect_most(c, 300, ONE_PERIOD, 500, &most) < 0 ||
	    reserve(c, 0, 1000, 0) < 0 ||
	    expect(c, "no promise any more", 0, 100, &none) < 0 ||
	    reserve(c, 0, 1000, 10) < 0 || renewed(c) < 0)
		return -1;
	snprintf(c->text, c->size, "beside 24 busy threads: nothing promised %u permille, 500 "
		 "promised %u, 200 promised %u, at most 300 %u, no longer promised %u", flat, kept,
		 small, most, none);
	return 0;
}

int emureserve_check(const char *name, unsigned slack, char *text, size_t size)
{
	/* Long periods: the end of each costs precision (emureserve.h). */
	const struct ebb_emuspec spec = {
		.sockets = 1, .cores = 2, .threads = 1, .share_permille = SHARE_PERMILLE,
		.period_ms = PERIOD_MS,
	};
	struct check c = { .text = text, .size = size, .slack = slack };
	struct ebb_err err = { "" };
	int rc = busy_start(&c.busy, NUM_THREADS);

	if (rc < 0)
		rc = FAIL(&c, "can not start a load");
	else if (ebb_emuhost_create(&spec, name, &c.host, &err) < 0)
		rc = FAIL(&c, "creating the host: %s", err.text);
	else
		rc = check_parts(&c);
	busy_stop(&c.busy);
	if (ebb_emuhost_destroy(c.host, &err) < 0 && rc == 0)
		rc = FAIL(&c, "removing the host at the end: %s", err.text);
	return rc;
}
