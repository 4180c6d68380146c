# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that a run leaves behind: how they are written and read. Knows nothing above."""
