# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a scenario step by step and records it."""
