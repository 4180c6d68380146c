# SPDX-License-Identifier: GPL-2.0-or-later
"""Arithmetic and checks on recorded files. Pure: no file, no clock, no process."""
