# SPDX-License-Identifier: GPL-2.0-or-later
"""`broker`: memory goes from a cold database to a warm one, once under each policy."""
