/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of ebbd: an ini file and -o key=value, described in ebbd.conf(5). */
#ifndef EBB_DAEMON_CONFIG_H
#define EBB_DAEMON_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "model/pressure.h"
#include "model/promise.h"
#include "service/settings.h"
#include "util/err.h"

#define EBB_CONFIG_AUTO		UINT32_MAX

struct ebb_config {
	char libvirt_uri[EBB_SETTING_SIZE];
	char run_dir[EBB_SETTING_SIZE];
	char state_dir[EBB_SETTING_SIZE];
	char host[EBB_SETTING_SIZE];	/* "auto" or "emulated:SxCxT@share" */
	char host_reserve[EBB_SETTING_SIZE];	/* CPUs of a real host that VMs do not get */
	char emu_group[EBB_SETTING_SIZE];	/* cgroup of an emulated host */
	char policy[EBB_SETTING_SIZE];
	char link_group[EBB_SETTING_SIZE];	/* "": root only; "auto": kvm if there */
	char control_group[EBB_SETTING_SIZE]; /* "": root only */
	char metrics_listen[EBB_SETTING_SIZE]; /* see daemon/http.h; "": nowhere */
	bool count_threads;
	bool quorum;			/* the host has it when ebbd starts */
	char volume_socket[EBB_SETTING_SIZE]; /* control socket of ebb-volumed; "": none */
	char volume_owner[EBB_SETTING_SIZE]; /* who sets promises there: 1 to 127 bytes */
	char shared_cores[EBB_SETTING_SIZE]; /* see backend/real/hostshare.h */
	/* MiB of each node of the host for pools, 0 to EBB_MAX_POOL_MIB; EBB_CONFIG_AUTO */
	uint32_t pool_mib;
	uint32_t memory_overhead_mib;		/* of every QEMU; 64 to 65536 */
	uint32_t memory_leave_ms;		/* before a deadline; 0 (never) to 1000 */
	struct ebb_pressure pressure;
	struct ebb_promise_config promise;
	uint32_t meter_interval_ms;		/* promises are judged over it; 100 to 60000 */
	uint32_t ledger_hours;			/* its intervals are kept; 0 to 8784 */
	uint32_t workers;			/* 2 to 64 */
	uint32_t history_rows;			/* 1000 to 10000000 */
	int log_level;				/* LOG_ERR to LOG_DEBUG */
};

void ebb_config_default(struct ebb_config *c);

/* -errno with "FILE:LINE: ..."; c may be half changed then. */
int ebb_config_load(struct ebb_config *c, const char *path, struct ebb_err *err);

/* "key=value" as on the command line. */
int ebb_config_set(struct ebb_config *c, const char *assignment, struct ebb_err *err);

/*
 * Completes keys that depend on others: fills emu_group and volume_owner from run_dir where they
 * were not given.
 * Thresholds must be in order.
 */
int ebb_config_finish(struct ebb_config *c, struct ebb_err *err);

#endif
