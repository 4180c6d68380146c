# SPDX-License-Identifier: GPL-2.0-or-later
#
# The pure half of the host agent (core and policies) and the fake backend.
