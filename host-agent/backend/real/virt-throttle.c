/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See virt-throttle.h. */
#include <errno.h>
#include <libvirt/virterror.h>
#include <stdlib.h>
#include "backend/real/virt-error.h"
#include "backend/real/virt-throttle.h"

/* The most that libvirt's protocol allows. */
#define MAX_PARAMS		16
#define DEFAULT_PERIOD_USEC	100000
/* The kernel takes no quota below a millisecond. */
#define LEAST_QUOTA_USEC	1000

struct limit {
	unsigned long long period;
	long long quota;		/* below 1: none */
};

static int get(virDomainPtr dom, unsigned int flags, struct limit *ret, struct ebb_err *err)
{
	virTypedParameter params[MAX_PARAMS];
	int num = MAX_PARAMS, rc = 0;

	if (virDomainGetSchedulerParametersFlags(dom, params, &num, flags) < 0)
		return ebb_virt_error(err, "virDomainGetSchedulerParametersFlags");
	if (virTypedParamsGetULLong(params, num, VIR_DOMAIN_SCHEDULER_VCPU_PERIOD,
				    &ret->period) != 1 ||
	    virTypedParamsGetLLong(params, num, VIR_DOMAIN_SCHEDULER_VCPU_QUOTA,
				   &ret->quota) != 1)
		rc = ebb_err_set(err, -EOPNOTSUPP, "libvirt has no vcpu_quota for the domain");
	virTypedParamsClear(params, num);
	return rc;
}

static int set(virDomainPtr dom, const struct limit *limit, struct ebb_err *err)
{
	virTypedParameter params[] = {
		{ .field = VIR_DOMAIN_SCHEDULER_VCPU_PERIOD, .type = VIR_TYPED_PARAM_ULLONG,
		  .value.ul = limit->period },
		{ .field = VIR_DOMAIN_SCHEDULER_VCPU_QUOTA, .type = VIR_TYPED_PARAM_LLONG,
		  .value.l = limit->quota },
	};

	if (virDomainSetSchedulerParametersFlags(dom, params, 2, VIR_DOMAIN_AFFECT_LIVE) < 0)
		return ebb_virt_error(err, "virDomainSetSchedulerParametersFlags");
	return 0;
}

/* The limit that the operator has defined, whether the domain is throttled or not. */
static struct limit defined(virDomainPtr dom)
{
	struct limit own;
	struct ebb_err err;

	/* One that is not persistent has no definition but the one that runs. */
	if (get(dom, VIR_DOMAIN_AFFECT_CONFIG, &own, &err) < 0 || own.quota <= 0)
		return (struct limit){ .period = DEFAULT_PERIOD_USEC, .quota = -1 };
	if (own.period == 0)
		own.period = DEFAULT_PERIOD_USEC;
	return own;
}

/* 1 if there was a throttle of ours, 0 if not. */
static int lift(virDomainPtr dom, struct ebb_err *err)
{
	struct limit now, own;
	int rc = get(dom, VIR_DOMAIN_AFFECT_LIVE, &now, err);

	if (rc < 0)
		return rc;
	if (now.period != EBB_THROTTLE_PERIOD_USEC)
		return 0;
	own = defined(dom);
	rc = set(dom, &own, err);
	if (rc < 0 && own.quota < 0) {
		/*
		 * With cgroup version 2 libvirt 8.3 writes -1, which the kernel refuses.  More than
		 * one CPU is no limit either: each vCPU is one thread.
		 */
		own.quota = 10 * DEFAULT_PERIOD_USEC;
		rc = set(dom, &own, err);
	}
	return rc < 0 ? rc : 1;
}

static int throttle(virDomainPtr dom, uint16_t permille, struct ebb_err *err)
{
	struct limit limit = {
		.period = EBB_THROTTLE_PERIOD_USEC,
		.quota = (long long)permille * EBB_THROTTLE_PERIOD_USEC / 1000,
	};
	const struct limit own = defined(dom);
	struct limit now;
	int rc;

	if (own.quota > 0 && (double)own.quota / own.period < (double)limit.quota / limit.period)
		limit.quota = (double)own.quota / own.period * limit.period;
	if (limit.quota < LEAST_QUOTA_USEC)
		limit.quota = LEAST_QUOTA_USEC;
	rc = set(dom, &limit, err);
	if (rc == 0)
		rc = get(dom, VIR_DOMAIN_AFFECT_LIVE, &now, err);
	/* Where it knows no threads of vCPUs libvirt takes a limit, and nobody is held to it. */
	if (rc == 0 && (now.quota != limit.quota || now.period != limit.period))
		rc = ebb_err_set(err, -EOPNOTSUPP, "libvirt has taken vcpu_quota %lld of %llu, "
				 "and says %lld of %llu", limit.quota, limit.period, now.quota,
				 now.period);
	return rc;
}

/* permille 0: lift it. */
static int change(virConnectPtr conn, const uint8_t uuid[16], uint16_t permille,
		  struct ebb_err *err)
{
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	int rc;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	rc = permille ? throttle(dom, permille, err) : lift(dom, err);
	/* Either it has just stopped, or there is no such cgroup: libvirt's code is the same. */
	if (rc == -EBUSY)
		rc = virDomainIsActive(dom) == 1 ? -EOPNOTSUPP : -ESRCH;
	virDomainFree(dom);
	return rc;
}

int ebb_virt_domain_throttle(virConnectPtr conn, const uint8_t uuid[16], uint16_t permille,
			     struct ebb_err *err)
{
	return change(conn, uuid, permille ? permille : 1, err);
}

int ebb_virt_domain_lift_throttle(virConnectPtr conn, const uint8_t uuid[16], struct ebb_err *err)
{
	return change(conn, uuid, 0, err);
}

int ebb_virt_lift_throttles(virConnectPtr conn, struct ebb_err *err)
{
	virDomainPtr *doms;
	int num = virConnectListAllDomains(conn, &doms, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	int lifted = 0, first = 0;

	if (num < 0)
		return ebb_virt_error(err, "libvirt does not list its domains");
	for (int i = 0; i < num; i++) {
		struct ebb_err own = { "" };
		int rc = lift(doms[i], &own);

		if (rc > 0)
			lifted++;
		/* No such cgroup, or it has stopped meanwhile: there is nothing to lift. */
		else if (rc < 0 && rc != -EOPNOTSUPP && rc != -EBUSY && rc != -ENOENT && !first)
			first = ebb_err_set(err, rc, "%.100s: %.300s", virDomainGetName(doms[i]),
					    own.text);
		virDomainFree(doms[i]);
	}
	free(doms);
	return first ? first : lifted;
}

static void be_quiet(void *ctx, virErrorPtr error)
{
	/* The caller gets the error in err; libvirt would print it besides. */
	(void)ctx;
	(void)error;
}

int ebb_virt_lift_throttles_at(const char *uri, struct ebb_err *err)
{
	virConnectPtr conn;
	int rc;

	virSetErrorFunc(NULL, be_quiet);
	conn = virConnectOpen(uri);
	if (!conn)
		return ebb_virt_error(err, "libvirt can not be reached");
	rc = ebb_virt_lift_throttles(conn, err);
	virConnectClose(conn);
	return rc;
}
