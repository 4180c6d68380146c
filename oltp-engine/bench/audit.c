// SPDX-License-Identifier: GPL-2.0-or-later
/* See audit.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "audit.h"
#include "oltp-engine/src/base/clock.h"

struct audit {
	const struct bench_workload_ops *ops;
	void *state;
	int event_fd;
	pthread_t thread;
	bool is_running;	/* started and not collected */
	struct audit_result result;
};

int audit_create(const struct bench_workload_ops *ops, void *state, struct audit **ret_audit)
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return -ENOMEM;
	audit->ops = ops;
	audit->state = state;
	audit->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (audit->event_fd < 0) {
		free(audit);
		return -errno;
	}
	*ret_audit = audit;
	return 0;
}

void audit_destroy(struct audit *audit)
{
	struct audit_result result;

	if (!audit)
		return;
	audit_collect(audit, true, &result);
	close(audit->event_fd);
	free(audit);
}

int audit_fd(const struct audit *audit)
{
	return audit->event_fd;
}

static void *audit_main(void *arg)
{
	struct audit *audit = arg;

	audit->result.start_ns = clock_now_ns();
	audit->ops->audit(audit->state, &audit->result.found);
	audit->result.end_ns = clock_now_ns();
	eventfd_write(audit->event_fd, 1);
	return NULL;
}

int audit_start(struct audit *audit)
{
	int rc;

	if (audit->is_running)
		return -EBUSY;
	rc = -pthread_create(&audit->thread, NULL, audit_main, audit);
	audit->is_running = !rc;
	return rc;
}

bool audit_collect(struct audit *audit, bool wait, struct audit_result *ret_result)
{
	eventfd_t n;

	if (!audit->is_running || (eventfd_read(audit->event_fd, &n) && !wait))
		return false;
	pthread_join(audit->thread, NULL);
	/* It may have come after the look above. */
	eventfd_read(audit->event_fd, &n);
	audit->is_running = false;
	*ret_result = audit->result;
	return true;
}
