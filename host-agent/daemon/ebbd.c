/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbd: options, start and end. */
#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "daemon/agent.h"
#include "daemon/config.h"
#include "daemon/ctl-cmds.h"
#include "daemon/dryrun.h"
#include "daemon/history-charge.h"
#include "daemon/http.h"
#include "daemon/metrics.h"
#include "backend/real/real.h"
#include "backend/volumes/volumes.h"
#include "service/service.h"
#include "util/heap.h"
#include "util/version.h"
#include "backend/emulated/emuhost.h"
#include "backend/real/hostshare.h"
#include "backend/real/hosttopo.h"
#include "backend/real/virt-throttle.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/log.h"

#define DEFAULT_CONFIG	"/etc/ebb/ebbd.conf"
#define DRYRUN_VMS	3
/* Longer than any call that normally ends: libvirt gives an unplug 5 s. */
#define END_USEC	(6 * EBB_USEC_PER_SEC)

struct options {
	struct ebb_service_options service;
	struct ebb_config config;
	bool is_cleanup;
	uint32_t dryrun_vms;		/* 0: no dry run */
};

struct daemon {
	struct ebb_config config;
	int lock_fd;
	bool is_emulated;
	struct ebb_emuspec spec;
	struct ebb_host *host;
	struct ebb_emuhost *emuhost;
	struct ebb_workers *workers;
	struct ebb_agent agent;
	struct ebb_volumes *volumes;
	struct ebb_dryrun *dryrun;
	struct ebb_ctl *ctl;
	struct ebb_http *http;
};

/* ---- options ---- */

const char *argp_program_version = "ebbd " EBB_VERSION;

enum { OPT_DRY_RUN = 256, OPT_CLEANUP };

static const struct argp_option argp_options[] = {
	EBB_SERVICE_OPTIONS(DEFAULT_CONFIG),
	{ "dry-run", OPT_DRY_RUN, "VMS", OPTION_ARG_OPTIONAL,
	  "Touch nothing: run with simulated VMs (3 unless VMS says otherwise)", 0 },
	{ "cleanup", OPT_CLEANUP, NULL, 0,
	  "Remove cgroups and throttles that a killed ebbd with this configuration left, and exit",
	  0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	unsigned long num_vms = DRYRUN_VMS;
	char *end = "";

	switch (key) {
	case OPT_DRY_RUN:
		if (arg)
			num_vms = strtoul(arg, &end, 10);
		if (*end || num_vms < 1 || num_vms > EBB_DRYRUN_MAX_VMS)
			argp_error(state, "--dry-run=%s: allowed: 1 to %u", arg,
				   EBB_DRYRUN_MAX_VMS);
		o->dryrun_vms = num_vms;
		return 0;
	case OPT_CLEANUP:
		o->is_cleanup = true;
		return 0;
	default:
		return ebb_service_parse(key, arg, &o->service);
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse_option,
	.doc = "The host agent of Ebb: moves CPUs and memory between running VMs.",
};

static int read_config(struct options *o, struct ebb_err *err)
{
	const struct ebb_service_options *given = &o->service;
	int rc;

	ebb_config_default(&o->config);
	rc = ebb_config_load(&o->config, given->config_path ? given->config_path : DEFAULT_CONFIG,
			     err);
	if (rc == -ENOENT && !given->config_path) {
		err->text[0] = '\0';
		rc = 0;
	}
	for (size_t i = 0; rc == 0 && i < given->num_settings; i++)
		rc = ebb_config_set(&o->config, given->settings[i], err);
	return rc < 0 ? rc : ebb_config_finish(&o->config, err);
}

/* ---- start ---- */

/* One instance for each run_dir.  The lock ends with the process, however it ends. */
static int take_lock(struct daemon *d, struct ebb_err *err)
{
	char path[PATH_MAX], pid[32] = "";
	size_t len = 0;
	int rc = ebb_service_folder("run_dir", d->config.run_dir, 0755, err);

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/ebbd.lock", d->config.run_dir);
	rc = ebb_service_lock(path, 0, &d->lock_fd, err);
	if (d->lock_fd < 0)
		return rc;
	if (rc < 0) {
		ebb_fs_read(path, pid, sizeof(pid), &len);
		pid[strcspn(pid, "\n")] = '\0';
		return ebb_err_set(err, -EBUSY, "another ebbd (process %s) uses run_dir %.200s",
				   pid, d->config.run_dir);
	}
	len = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(d->lock_fd, 0) < 0 || write(d->lock_fd, pid, len) != (ssize_t)len)
		return ebb_err_set(err, -EIO, "%s can not be written", path);
	return 0;
}

static int make_host(struct daemon *d, bool is_dryrun, struct ebb_err *err)
{
	int rc;

	d->host = calloc(1, sizeof(*d->host));
	if (!d->host)
		return -ENOMEM;
	d->is_emulated = strcmp(d->config.host, "auto") != 0;
	if (d->is_emulated) {
		rc = ebb_emuspec_parse(d->config.host, &d->spec, err);
		if (rc == 0)
			rc = ebb_hosttopo_emulated(&d->spec, d->host, err);
		if (rc == 0 && d->config.host_reserve[0])
			ebb_log(LOG_WARNING, "host_reserve",
				EBB_KS("cpus", d->config.host_reserve),
				EBB_KS("ignored", "the cores of an emulated host are shares of all "
				       "CPUs, none of which is kept for the host"));
	} else {
		rc = ebb_hosttopo_real(d->config.host_reserve, NULL, d->host, err);
	}
	if (rc == 0)
		rc = ebb_hostshare_set(d->host, d->config.shared_cores, err);
	/* Nothing is real of an emulated host in a dry run: it may be larger than the machine. */
	for (uint16_t n = 0; rc == 0 && is_dryrun && d->is_emulated && n < d->host->num_nodes; n++)
		d->host->memory_mib[n] = EBB_MAX_POOL_MIB;
	if (rc == 0 && d->config.pool_mib != EBB_CONFIG_AUTO)
		rc = ebb_hosttopo_pools(d->host, d->config.pool_mib, err);
	return rc;
}

/* Of the boot of the host, and of where the history is.  FNV-1a. */
static uint64_t writer_id(const char *state_dir)
{
	char boot[EBB_BOOT_ID_SIZE];
	uint64_t hash = 0xcbf29ce484222325;

	ebb_history_boot_id(boot);
	for (const char *p = boot; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3;
	for (const char *p = state_dir; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3;
	return hash ? hash : 1;
}

static int make_state(struct daemon *d, struct ebb_err *err)
{
	const struct ebb_policy_ops *policy = ebb_policy_find(d->config.policy);
	struct ebb_state_config cfg;
	char known[256] = "";

	for (size_t i = 0; ebb_policy_at(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s",
			 ebb_policy_at(i)->name);
	if (!policy)
		return ebb_err_set(err, -EINVAL,
				   "policy=%.64s: there is no such policy; there are%s",
				   d->config.policy, known);
	ebb_state_config_default(&cfg);
	cfg.alloc = (struct ebb_alloc){ .alloc = ebb_heap_alloc, .free = ebb_heap_free };
	cfg.count_threads = d->config.count_threads;
	cfg.writer = writer_id(d->config.state_dir);
	cfg.lacks_quorum = !d->config.quorum;
	cfg.pressure = d->config.pressure;
	cfg.promise = d->config.promise;
	cfg.mem_overhead_bytes = (uint64_t)d->config.memory_overhead_mib << 20;
	cfg.meter_usec = d->config.meter_interval_ms * EBB_USEC_PER_MSEC;
	cfg.leave_usec = d->config.memory_leave_ms * EBB_USEC_PER_MSEC;
	d->agent.state = ebb_state_create(&cfg, d->host, policy);
	return d->agent.state ? 0 : -ENOMEM;
}

static int make_history(struct daemon *d, bool is_dryrun, struct ebb_err *err)
{
	char path[PATH_MAX];
	int rc = 0;

	snprintf(path, sizeof(path), "%s/history.db", d->config.state_dir);
	if (!is_dryrun)
		rc = ebb_service_folder("state_dir", d->config.state_dir, 0700, err);
	if (rc < 0)
		return rc;
	rc = ebb_history_open(is_dryrun ? NULL : path, d->config.history_rows, d->workers,
			      d->agent.event, &d->agent.history, err);
	if (rc == 0)
		ebb_history_keep(d->agent.history, d->config.ledger_hours);
	if (rc == 0 && err->text[0])
		ebb_log(LOG_WARNING, "history_set_aside", EBB_KS("file", path),
			EBB_KS("error", err->text));
	return rc;
}

/* ebb-volumed has both sockets in its run_dir. */
static void find_nbd_socket(const char *control, char ret[PATH_MAX])
{
	const char *slash = strrchr(control, '/');

	snprintf(ret, PATH_MAX, "%.*s%s", slash ? (int)(slash - control) : 0, control,
		 slash ? "/nbd.sock" : "");
}

static int make_real(struct daemon *d, struct ebb_err *err)
{
	struct ebb_real_config cfg = {
		.libvirt_uri = d->config.libvirt_uri, .host = d->host, .workers = d->workers,
		.sink = ebb_agent_sink(&d->agent),
		.window = d->config.pressure.hot_window_s * EBB_USEC_PER_SEC,
		.meter_interval = d->config.meter_interval_ms * EBB_USEC_PER_MSEC,
	};
	char link_dir[PATH_MAX], nbd_socket[PATH_MAX];
	int rc;

	find_nbd_socket(d->config.volume_socket, nbd_socket);
	cfg.nbd_socket = nbd_socket;
	rc = ebb_setting_group("link_group", d->config.link_group, &cfg.link_group, err);
	if (rc == 0 && d->is_emulated)
		rc = ebb_emuhost_create(&d->spec, d->config.emu_group, &d->emuhost, err);
	if (rc < 0)
		return rc;
	snprintf(link_dir, sizeof(link_dir), "%s/link", d->config.run_dir);
	rc = ebb_fs_mkdirs(link_dir, 0755);
	if (rc < 0)
		return ebb_err_set(err, rc, "can not create %.300s: %s", link_dir, strerror(-rc));
	cfg.link_dir = link_dir;
	cfg.emuhost = d->emuhost;
	rc = ebb_real_create(d->agent.event, &cfg, &d->agent.real, err);
	if (rc == 0)
		d->agent.backend = ebb_real_backend(d->agent.real);
	return rc;
}

static int make_dryrun(struct daemon *d, uint32_t num_vms, struct ebb_err *err)
{
	int rc = ebb_dryrun_create(&d->agent, d->host, num_vms, &d->dryrun);

	if (rc < 0)
		return ebb_err_set(err, rc, "the simulation can not be set up: %s", strerror(-rc));
	d->agent.backend = ebb_dryrun_backend(d->dryrun);
	return 0;
}

/* In front of the backend that there is. */
static int make_volumes(struct daemon *d, struct ebb_err *err)
{
	struct ebb_fact none = { .type = EBB_FACT_VOLUMES_LOST };
	struct ebb_volumes_config cfg;
	int rc;

	if (!d->config.volume_socket[0]) {
		strcpy(none.u.volumes_lost.text, "volume_socket is not set in ebbd.conf");
		return ebb_agent_report(&d->agent, &none);
	}
	ebb_volumes_config_default(&cfg);
	cfg.path = d->config.volume_socket;
	cfg.owner = d->config.volume_owner;
	cfg.inner = d->agent.backend;
	cfg.sink = ebb_agent_sink(&d->agent);
	cfg.meter_usec = d->config.meter_interval_ms * EBB_USEC_PER_MSEC;
	rc = ebb_volumes_create(d->agent.event, &cfg, &d->volumes);
	if (rc < 0)
		return ebb_err_set(err, rc, "volume_socket=%.200s: %s", cfg.path, strerror(-rc));
	d->agent.backend = ebb_volumes_backend(d->volumes);
	return 0;
}

static char *metrics_text(void *ctx)
{
	return ebb_metrics_text(((struct ebb_agent *)ctx)->state, ebb_clock_mono_usec());
}

/* VMs are not to be without their agent because something else has the port. */
static void make_http(struct daemon *d)
{
	struct ebb_http_config cfg = {
		.text = metrics_text, .ctx = &d->agent, .life_usec = EBB_HTTP_LIFE_USEC,
		.fresh_usec = EBB_HTTP_FRESH_USEC,
	};
	struct ebb_err err = { "" };
	int rc;

	if (!d->config.metrics_listen[0])
		return;
	rc = ebb_http_address(d->config.metrics_listen, &cfg.addr, &err);
	if (rc == 0)
		rc = ebb_http_create(d->agent.event, &cfg, &d->http, &err);
	if (rc < 0)
		ebb_log(LOG_ERR, "metrics_listen", EBB_KS("address", d->config.metrics_listen),
			EBB_KS("error", err.text[0] ? err.text : strerror(-rc)));
	else
		ebb_log(LOG_INFO, "metrics_listen", EBB_KS("address", d->config.metrics_listen),
			EBB_KI("port", ebb_http_port(d->http)));
}

/*
 * Deadlines are met and cores handed on while VMs keep every CPU busy: in front of them, for the
 * moments that it takes.  Only this thread: a library's, or one that writes to the disk, could
 * keep a CPU from VMs for long.  Of the workers the urgent one does as this thread
 * (backend/real/workers.h).
 * Without the right to, all works, only later.
 */
static void go_before_vms(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) < 0)
		ebb_log(LOG_NOTICE, "no_realtime", EBB_KS("error", strerror(errno)));
}

static int start(struct daemon *d, const struct options *o, struct ebb_err *err)
{
	const struct ebb_ctl_config ctl = {
		.idle_usec = EBB_CTL_IDLE_USEC, .handle = ebb_ctl_handle, .ctx = &d->agent,
	};
	int rc = make_host(d, o->dryrun_vms != 0, err);

	if (rc == 0)
		rc = take_lock(d, err);
	if (rc == 0)
		rc = make_state(d, err);
	if (rc == 0)
		rc = sd_event_new(&d->agent.event);
	if (rc >= 0)
		rc = ebb_service_watch_signals(d->agent.event, NULL, NULL);
	if (rc >= 0 && !o->dryrun_vms)
		go_before_vms();
	if (rc >= 0)
		rc = ebb_workers_create(d->agent.event, d->config.workers, &d->workers);
	if (rc >= 0)
		rc = make_history(d, o->dryrun_vms != 0, err);
	if (rc >= 0)
		rc = ebb_agent_init(&d->agent);
	if (rc >= 0)
		rc = o->dryrun_vms ? make_dryrun(d, o->dryrun_vms, err) : make_real(d, err);
	if (rc >= 0)
		rc = make_volumes(d, err);
	if (rc >= 0)
		rc = ebb_service_ctl(d->agent.event, d->config.run_dir, d->config.control_group,
				     ctl, &d->ctl, err);
	if (rc >= 0)
		make_http(d);
	if (rc >= 0 && d->dryrun)
		rc = ebb_dryrun_begin(d->dryrun);
	return rc < 0 ? rc : 0;
}

/* ---- end ---- */

/*
 * VMs keep running and keep what they hold; only throttles and what an emulated host changed are
 * undone.  Returns false when a thread is stuck: then nothing more may be freed.
 */
static bool end(struct daemon *d)
{
	struct ebb_err err = { "" };
	bool is_stuck;

	ebb_ctl_destroy(d->ctl);
	ebb_http_destroy(d->http);
	is_stuck = ebb_workers_destroy(d->workers, END_USEC) < 0;
	if (!is_stuck && d->agent.real && !d->is_emulated)
		ebb_real_lift_all(d->agent.real);
	if (!is_stuck && d->agent.backend.ops && !d->dryrun)
		d->agent.backend.ops->destroy(d->agent.backend.be);
	if (!is_stuck)
		ebb_volumes_destroy(d->volumes);
	if (d->emuhost && ebb_emuhost_destroy(d->emuhost, &err) < 0)
		ebb_log(LOG_ERR, "emulated_host", EBB_KS("error", err.text));
	if (is_stuck) {
		ebb_log(LOG_ERR, "stop", EBB_KS("error", "a call to libvirt does not return"));
		return false;
	}
	ebb_agent_finish(&d->agent);
	ebb_dryrun_destroy(d->dryrun);
	ebb_history_close(d->agent.history);
	ebb_state_destroy(d->agent.state);
	sd_event_unref(d->agent.event);
	free(d->host);
	if (d->lock_fd >= 0)
		close(d->lock_fd);
	return true;
}

static int cleanup(struct daemon *d)
{
	struct ebb_err err = { "" };
	int rc = take_lock(d, &err);

	if (rc == 0)
		rc = ebb_emuhost_cleanup(d->config.emu_group, &err);
	/* On an emulated host nobody is throttled, and it may be one without libvirt. */
	if (rc == 0 && strcmp(d->config.host, "auto") == 0)
		rc = ebb_virt_lift_throttles_at(d->config.libvirt_uri, &err);
	if (rc < 0) {
		ebb_log(LOG_ERR, "cleanup", EBB_KS("error", err.text));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct daemon d = { .lock_fd = -1 };
	struct ebb_err err = { "" };
	int rc;

	ebb_service_begin(&argp, argc, argv, &o);
	rc = read_config(&o, &err);
	free(o.service.settings);
	if (rc < 0) {
		ebb_service_log_error("config", rc, &err);
		return EXIT_FAILURE;
	}
	d.config = o.config;
	ebb_log_set_level(d.config.log_level);
	if (o.is_cleanup)
		return cleanup(&d);
	/* Once, before there are threads that make JSON objects. */
	json_object_seed(0);
	d.agent.host_spec = d.config.host;
	rc = start(&d, &o, &err);
	if (rc < 0) {
		ebb_service_log_error("start", rc, &err);
	} else {
		ebb_log(LOG_NOTICE, "ready", EBB_KS("version", EBB_VERSION),
			EBB_KS("host", d.config.host), EBB_KI("nodes", d.host->num_nodes),
			EBB_KI("cores", d.host->num_cores), EBB_KS("policy", d.config.policy),
			EBB_KS("backend", d.agent.backend.ops->name));
		sd_notify(0, "READY=1");
		rc = ebb_service_run(d.agent.event);
	}
	if (!end(&d))
		_exit(EXIT_FAILURE);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
