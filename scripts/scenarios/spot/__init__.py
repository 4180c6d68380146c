# SPDX-License-Identifier: GPL-2.0-or-later
"""`spot`: three VMs join and leave a host."""
