/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See virt-shares.h. */
#include <errno.h>
#include <libvirt/virterror.h>
#include <unistd.h>
#include "backend/real/virt-error.h"
#include "backend/real/virt-shares.h"

/* The most that libvirt's protocol allows. */
#define MAX_PARAMS	16

/* The kernel gives this weight to a new cgroup. */
static unsigned long long usual(void)
{
	return access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? 100 : 1024;
}

/* The operator's own definition, if there is one. */
static unsigned long long defined(virDomainPtr dom)
{
	virTypedParameter params[MAX_PARAMS];
	unsigned long long shares = 0;
	int num = MAX_PARAMS;

	if (virDomainGetSchedulerParametersFlags(dom, params, &num, VIR_DOMAIN_AFFECT_CONFIG) < 0)
		return usual();
	if (virTypedParamsGetULLong(params, num, VIR_DOMAIN_SCHEDULER_CPU_SHARES, &shares) != 1 ||
	    shares == 0)
		shares = usual();
	virTypedParamsClear(params, num);
	return shares;
}

int ebb_virt_domain_set_shares(virConnectPtr conn, const uint8_t uuid[16], uint32_t shares,
			       struct ebb_err *err)
{
	virTypedParameter param = {
		.field = VIR_DOMAIN_SCHEDULER_CPU_SHARES, .type = VIR_TYPED_PARAM_ULLONG,
	};
	virDomainPtr dom = virDomainLookupByUUID(conn, uuid);
	int rc = 0;

	if (!dom)
		return ebb_virt_error(err, "libvirt does not find the domain");
	param.value.ul = shares ? shares : defined(dom);
	if (virDomainSetSchedulerParametersFlags(dom, &param, 1, VIR_DOMAIN_AFFECT_LIVE) < 0)
		rc = ebb_virt_error(err, "virDomainSetSchedulerParametersFlags");
	/* Either it has just stopped, or there is no such cgroup: libvirt's code is the same. */
	if (rc == -EBUSY)
		rc = virDomainIsActive(dom) == 1 ? -EOPNOTSUPP : -ESRCH;
	virDomainFree(dom);
	return rc;
}
