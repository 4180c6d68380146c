# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' experiments on real VMs: runner, verdicts and report (docs/scenarios.md)."""
