/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection to libvirt and its events. */
#include <errno.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "model/types.h"
#include "backend/real/virt.h"
#include "backend/real/virt-pool.h"

#define RETRY_FIRST_USEC	(200 * EBB_USEC_PER_MSEC)
#define RETRY_LONGEST_USEC	(5 * EBB_USEC_PER_SEC)
#define MAX_CALLBACKS		8
/* How long to wait for the thread at the end. */
#define JOIN_SEC		3

enum notice_type { NOTICE_CONNECTED, NOTICE_LOST, NOTICE_CHANGED };

/* From the thread to the loop. */
struct notice {
	struct notice *next;
	enum notice_type type;
	uint8_t uuid[16];
	char text[256];
};

struct ebb_virt {
	struct ebb_virt_config cfg;
	char *uri;
	struct ebb_virt_pool *pool;	/* for calls; events have a connection of their own */
	sd_event_source *source;
	int wake_fd;
	int stop_timer; /* of libvirt's loop; fires when the thread should look up */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stop_cond;
	/*
	 * Under the lock.
	 */
	struct notice *first, **last;
	bool stop;
	/*
	 * Of the thread.
	 */
	bool is_closed;
	int callbacks[MAX_CALLBACKS], num_callbacks;
};

static void post(struct ebb_virt *v, enum notice_type type, const uint8_t *uuid, const char *text)
{
	struct notice *n = calloc(1, sizeof(*n));
	uint64_t one = 1;

	/* Out of memory: the domain is looked at with its next event. */
	if (!n)
		return;
	n->type = type;
	if (uuid)
		memcpy(n->uuid, uuid, 16);
	snprintf(n->text, sizeof(n->text), "%s", text);
	pthread_mutex_lock(&v->lock);
	*v->last = n;
	v->last = &n->next;
	pthread_mutex_unlock(&v->lock);
	if (write(v->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- the thread ---- */

static void post_changed(struct ebb_virt *v, virDomainPtr dom, const char *what)
{
	uint8_t uuid[VIR_UUID_BUFLEN];

	if (virDomainGetUUID(dom, uuid) == 0)
		post(v, NOTICE_CHANGED, uuid, what);
}

static int on_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *arg)
{
	static const char *const names[] = {
		"defined", "undefined", "started", "suspended", "resumed", "stopped", "shutdown",
		"suspended to disk", "crashed",
	};

	(void)conn;
	(void)detail;
	post_changed(arg, dom, event >= 0 && event < (int)(sizeof(names) / sizeof(names[0])) ?
		     names[event] : "changed");
	return 0;
}

static void on_reboot(virConnectPtr conn, virDomainPtr dom, void *arg)
{
	(void)conn;
	post_changed(arg, dom, "rebooted");
}

static void on_tunable(virConnectPtr conn, virDomainPtr dom, virTypedParameterPtr params, int num,
		       void *arg)
{
	(void)conn;
	(void)params;
	(void)num;
	post_changed(arg, dom, "tuned");
}

static void on_device(virConnectPtr conn, virDomainPtr dom, const char *alias, void *arg)
{
	(void)conn;
	(void)alias;
	post_changed(arg, dom, "device added or removed");
}

static void on_metadata(virConnectPtr conn, virDomainPtr dom, int type, const char *uri, void *arg)
{
	(void)conn;
	(void)type;
	(void)uri;
	post_changed(arg, dom, "metadata changed");
}

static void on_close(virConnectPtr conn, int reason, void *arg)
{
	struct ebb_virt *v = arg;

	(void)conn;
	(void)reason;
	v->is_closed = true;
}

static int register_events(struct ebb_virt *v, virConnectPtr conn)
{
	const struct {
		int id;
		virConnectDomainEventGenericCallback fn;
	} events[] = {
		{ VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle) },
		{ VIR_DOMAIN_EVENT_ID_REBOOT, VIR_DOMAIN_EVENT_CALLBACK(on_reboot) },
		{ VIR_DOMAIN_EVENT_ID_TUNABLE, VIR_DOMAIN_EVENT_CALLBACK(on_tunable) },
		{ VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
		{ VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device) },
		{ VIR_DOMAIN_EVENT_ID_METADATA_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_metadata) },
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		int id = virConnectDomainEventRegisterAny(conn, NULL, events[i].id, events[i].fn, v,
							  NULL);

		if (id < 0)
			return -EIO;
		v->callbacks[v->num_callbacks++] = id;
	}
	return 0;
}

static void disconnect(struct ebb_virt *v, virConnectPtr conn)
{
	ebb_virt_pool_shut(v->pool);
	while (v->num_callbacks)
		virConnectDomainEventDeregisterAny(conn, v->callbacks[--v->num_callbacks]);
	virConnectUnregisterCloseCallback(conn, on_close);
	virConnectClose(conn);
}

static virConnectPtr try_connect(struct ebb_virt *v)
{
	virConnectPtr conn = virConnectOpen(v->uri);

	if (!conn)
		return NULL;
	v->is_closed = false;
	/* Not every driver has keepalive (the test driver has none): then it needs none. */
	virConnectSetKeepAlive(conn, EBB_VIRT_KEEPALIVE_SEC, EBB_VIRT_KEEPALIVE_COUNT);
	if (virConnectRegisterCloseCallback(conn, on_close, v, NULL) < 0 ||
	    register_events(v, conn) < 0) {
		disconnect(v, conn);
		return NULL;
	}
	ebb_virt_pool_open(v->pool);
	return conn;
}

static bool is_stopping(struct ebb_virt *v)
{
	bool stop;

	pthread_mutex_lock(&v->lock);
	stop = v->stop;
	pthread_mutex_unlock(&v->lock);
	return stop;
}

static void pause_for(struct ebb_virt *v, usec_t usec)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	usec += ts.tv_nsec / 1000;
	ts.tv_sec += usec / EBB_USEC_PER_SEC;
	ts.tv_nsec = usec % EBB_USEC_PER_SEC * 1000;
	pthread_mutex_lock(&v->lock);
	while (!v->stop && pthread_cond_timedwait(&v->stop_cond, &v->lock, &ts) == 0)
		;
	pthread_mutex_unlock(&v->lock);
}

static void *event_thread(void *arg)
{
	struct ebb_virt *v = arg;
	usec_t retry_usec = RETRY_FIRST_USEC;
	virConnectPtr conn = NULL;

	while (!is_stopping(v)) {
		if (!conn) {
			conn = try_connect(v);
			if (conn) {
				retry_usec = RETRY_FIRST_USEC;
				post(v, NOTICE_CONNECTED, NULL, "");
				continue;
			}
			if (retry_usec == RETRY_FIRST_USEC)
				post(v, NOTICE_LOST, NULL, virGetLastErrorMessage());
			pause_for(v, retry_usec);
			retry_usec *= 2;
			if (retry_usec > RETRY_LONGEST_USEC)
				retry_usec = RETRY_LONGEST_USEC;
			continue;
		}
		if (virEventRunDefaultImpl() < 0)
			pause_for(v, RETRY_FIRST_USEC);
		if (v->is_closed) {
			disconnect(v, conn);
			conn = NULL;
			post(v, NOTICE_LOST, NULL, "libvirt closed the connection");
		}
	}
	if (conn)
		disconnect(v, conn);
	return NULL;
}

/* ---- the loop's side ---- */

static int on_wake(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct ebb_virt *v = arg;
	struct notice *n;
	uint64_t count;

	(void)s;
	(void)revents;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	pthread_mutex_lock(&v->lock);
	n = v->first;
	v->first = NULL;
	v->last = &v->first;
	pthread_mutex_unlock(&v->lock);
	while (n) {
		struct notice *next = n->next;

		if (n->type == NOTICE_CONNECTED)
			v->cfg.connected(v->cfg.ctx);
		else if (n->type == NOTICE_LOST)
			v->cfg.lost(v->cfg.ctx, n->text);
		else
			v->cfg.changed(v->cfg.ctx, n->uuid, n->text);
		free(n);
		n = next;
	}
	return 0;
}

virConnectPtr ebb_virt_get(struct ebb_virt *v)
{
	return ebb_virt_pool_get(v->pool);
}

void ebb_virt_put(struct ebb_virt *v, virConnectPtr conn)
{
	ebb_virt_pool_put(v->pool, conn);
}

static void be_quiet(void *ctx, virErrorPtr error)
{
	/* Errors are returned and logged by the caller; libvirt would print them besides. */
	(void)ctx;
	(void)error;
}

static void on_stop_timer(int timer, void *arg)
{
	(void)arg;
	virEventUpdateTimeout(timer, -1);
}

static void init_locks(struct ebb_virt *v)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&v->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&v->stop_cond, &attr);
	pthread_condattr_destroy(&attr);
}

static int start_thread(struct ebb_virt *v)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&v->thread, NULL, event_thread, v);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	v->has_thread = rc == 0;
	if (rc == 0)
		pthread_setname_np(v->thread, "ebbd-libvirt");
	return rc;
}

int ebb_virt_create(sd_event *event, const struct ebb_virt_config *cfg, struct ebb_virt **ret,
		    struct ebb_err *err)
{
	struct ebb_virt *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return -ENOMEM;
	v->cfg = *cfg;
	v->last = &v->first;
	v->stop_timer = -1;
	init_locks(v);
	v->uri = strdup(cfg->uri);
	v->pool = ebb_virt_pool_create(cfg->uri, EBB_VIRT_KEEPALIVE_SEC * EBB_USEC_PER_SEC / 2);
	v->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = v->wake_fd < 0 || !v->uri || !v->pool ? -ENOMEM : 0;
	if (rc == 0)
		rc = sd_event_add_io(event, &v->source, v->wake_fd, EPOLLIN, on_wake, v);
	if (rc >= 0) {
		virSetErrorFunc(NULL, be_quiet);
		if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
			rc = ebb_err_set(err, -EIO, "libvirt can not be initialised: %s",
					 virGetLastErrorMessage());
	}
	if (rc >= 0) {
		v->stop_timer = virEventAddTimeout(-1, on_stop_timer, NULL, NULL);
		rc = v->stop_timer < 0 ? -ENOMEM : start_thread(v);
	}
	if (rc < 0) {
		ebb_virt_destroy(v);
		return rc;
	}
	*ret = v;
	return 0;
}

static int join_thread(struct ebb_virt *v)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += JOIN_SEC;
	return pthread_timedjoin_np(v->thread, NULL, &end) == 0 ? 0 : -EBUSY;
}

int ebb_virt_destroy(struct ebb_virt *v)
{
	if (!v)
		return 0;
	pthread_mutex_lock(&v->lock);
	v->stop = true;
	pthread_cond_broadcast(&v->stop_cond);
	pthread_mutex_unlock(&v->lock);
	if (v->stop_timer >= 0)
		virEventUpdateTimeout(v->stop_timer, 0);
	if (v->has_thread && join_thread(v) < 0)
		return -EBUSY;
	if (v->stop_timer >= 0)
		virEventRemoveTimeout(v->stop_timer);
	sd_event_source_disable_unref(v->source);
	if (v->wake_fd >= 0)
		close(v->wake_fd);
	while (v->first) {
		struct notice *n = v->first;

		v->first = n->next;
		free(n);
	}
	ebb_virt_pool_destroy(v->pool);
	pthread_cond_destroy(&v->stop_cond);
	pthread_mutex_destroy(&v->lock);
	free(v->uri);
	free(v);
	return 0;
}

void ebb_virt_run_dir(const char *uri, char ret_path[PATH_MAX])
{
	const char *socket = strstr(uri, "socket=");
	char path[PATH_MAX], *slash;

	strcpy(ret_path, "/run/libvirt");
	if (!socket)
		return;
	socket += strlen("socket=");
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(socket, "&"), socket);
	/* The socket may be named through a link from a shorter path. */
	if (!realpath(path, ret_path))
		strcpy(ret_path, path);
	slash = strrchr(ret_path, '/');
	if (slash)
		*slash = '\0';
}
