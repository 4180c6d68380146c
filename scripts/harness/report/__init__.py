# SPDX-License-Identifier: GPL-2.0-or-later
"""summary.json and report.html, and the words in them."""
