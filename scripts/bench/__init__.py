# SPDX-License-Identifier: GPL-2.0-or-later
"""What benchmarks share: the shape of their summary.json, its table and its page."""
