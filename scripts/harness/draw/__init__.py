# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures as inline SVG. Pure."""
