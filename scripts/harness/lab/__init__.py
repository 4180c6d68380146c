# SPDX-License-Identifier: GPL-2.0-or-later
"""A private libvirtd, the host agent and the VMs on it; oltp-node as a process."""
