# SPDX-License-Identifier: GPL-2.0-or-later
"""Arithmetic on samples of slices (sliced_run.py). Pure; no opinion on what is good."""
import statistics

from . import delivery


def slice_tps(samples, tps_of=lambda s: s.tps):
    """{(variant, tenants, remote_ops, turn): throughput of all databases of a slice together}, of
    those slices in which it is known of all."""
    found = {}
    for s in samples:
        found.setdefault((s.variant, s.tenants, s.remote_ops, s.turn), []).append(tps_of(s))
    return {key: sum(tps) for key, tps in found.items() if None not in tps}


def given(sample):
    """CPU time of a database within its slice; None: not known."""
    if sample.cpu_ms is None or sample.cpu_due_ms is None:
        return None
    return delivery.Delivered(sample.cpu_ms / 1000, sample.cpu_due_ms / 1000)


def full_tps(sample):
    """Throughput of a slice, had all CPU time come that was due; None: not known."""
    of_slice = given(sample)
    return None if of_slice is None else of_slice.full(sample.tps)


def missing_pct(samples):
    """{(variant, tenants, remote_ops): CPU time missing, median over the turns}; None: not known"""
    turns, groups = {}, {}
    for s in samples:
        turns.setdefault((s.variant, s.tenants, s.remote_ops, s.turn), []).append(given(s))
    for (variant, tenants, remote, _), parts in turns.items():
        groups.setdefault((variant, tenants, remote), []).append(
            delivery.missing_pct(delivery.total(parts)))
    return {key: None if None in v else statistics.median(v) for key, v in groups.items()}


def medians(sums):
    """{(variant, tenants, remote_ops): (median over the turns, half of their range, turns)}"""
    groups = {}
    for (variant, tenants, remote, _), tps in sums.items():
        groups.setdefault((variant, tenants, remote), []).append(tps)
    return {key: (statistics.median(v), (max(v) - min(v)) / 2, len(v))
            for key, v in groups.items()}
