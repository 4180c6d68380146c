# SPDX-License-Identifier: GPL-2.0-or-later
"""`tenants`: a VM for each tenant against one engine with partitions."""
