# SPDX-License-Identifier: GPL-2.0-or-later
"""`rebalance`: eight VMs on cores that they share."""
