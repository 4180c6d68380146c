# SPDX-License-Identifier: GPL-2.0-or-later
# After throttle, whose VMs go before everything else on the machine for moments in which a cluster
# would not hear of its hosts.
$(eval $(call check_step_full,cluster,vm,900,build qemu guest-image throttle,tests/cluster/run \
	test_lab test_agents test_placed))
$(eval $(call check_step_full,cluster-kills,vm,3600,build qemu guest-image,tests/cluster/run test_kills))
