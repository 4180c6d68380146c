# SPDX-License-Identifier: GPL-2.0-or-later
"""`scale`: one VM grows to the whole host and back."""
