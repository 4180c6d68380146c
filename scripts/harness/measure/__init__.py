# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures beside running VMs, by threads and processes of our own."""
