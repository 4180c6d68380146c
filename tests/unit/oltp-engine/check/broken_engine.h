/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An engine with a fault planted in it: the linker puts functions of this file in the place of some
 * of the engine's (--wrap), which break what the engine's own do. Nothing of that is in the engine.
 */
#ifndef BROKEN_ENGINE_H
#define BROKEN_ENGINE_H

enum broken {
	BROKEN_NOTHING,
	BROKEN_READ_LOCK,	/* given up as soon as the row has been read */
	BROKEN_SCAN_LOCK,	/* the same, of rows that were scanned */
	BROKEN_WRITE_LOCK,	/* given up before the row is changed, long before the commit */
	BROKEN_NOTES,		/* what was missing is not looked for again: phantoms */
	BROKEN_UNDO,		/* an abort leaves what was written */
};

/* Before there are workers. */
void broken_engine_set(enum broken what);

#endif
