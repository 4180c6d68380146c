# SPDX-License-Identifier: GPL-2.0-or-later
"""`scaleout`: two nodes with two-phase commit against one engine."""
