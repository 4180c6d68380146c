# SPDX-License-Identifier: GPL-2.0-or-later
"""`contention`: an engine gives back CPUs that contention makes useless."""
