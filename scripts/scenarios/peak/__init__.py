# SPDX-License-Identifier: GPL-2.0-or-later
"""`peak`: an engine takes CPUs while traffic peaks."""
