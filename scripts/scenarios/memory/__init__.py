# SPDX-License-Identifier: GPL-2.0-or-later
"""`memory`: CPUs and memory of a node are taken from a VM and given back."""
