# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that scenarios, benchmarks and tests with VMs share. Knows no scenario.

Rooms from the bottom up; scripts/check-layers says which may import which:
record (files of a run), judge (arithmetic on them), draw (figures), lab (libvirtd, agent, VMs),
measure (CPU time, speed, samples), stage (a run step by step), report (summary and page).
"""
