# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured beside VMs while they run, by threads and processes of our own."""
