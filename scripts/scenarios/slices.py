# SPDX-License-Identifier: GPL-2.0-or-later
"""Arithmetic on samples of slices (sliced_run.py). Pure; no opinion on what is good."""
import statistics


def slice_tps(samples):
    """{(variant, tenants, remote_ops, turn): throughput of all databases of a slice together}"""
    sums = {}
    for s in samples:
        key = (s.variant, s.tenants, s.remote_ops, s.turn)
        sums[key] = sums.get(key, 0.0) + (s.tps or 0.0)
    return sums


def medians(sums):
    """{(variant, tenants, remote_ops): (median over the turns, half of their range, turns)}"""
    groups = {}
    for (variant, tenants, remote, _), tps in sums.items():
        groups.setdefault((variant, tenants, remote), []).append(tps)
    return {key: (statistics.median(v), (max(v) - min(v)) / 2, len(v))
            for key, v in groups.items()}
