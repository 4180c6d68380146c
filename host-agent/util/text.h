/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text in UTF-8 that does not fit is cut between characters, never within one: half a character is
 * not valid UTF-8, and JSON allows nothing else.  Pure: no state, no I/O.
 */
#ifndef EBB_UTIL_TEXT_H
#define EBB_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the character at s; 0: there is none, or it is no UTF-8. */
static inline size_t ebb_text_char(const char *s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t c = (uint8_t)s[0];
	const size_t len = c < 0x80 ? c != 0 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 :
			   c < 0xf8 ? 4 : 0;
	uint32_t value = len > 1 ? c & (0x7fu >> len) : c;

	for (size_t i = 1; i < len; i++) {
		if (((uint8_t)s[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | ((uint8_t)s[i] & 0x3f);
	}
	if (len > 1 && (value < least[len] || value > 0x10ffff || (value >> 11) == 0x1b))
		return 0;
	return len;
}

/* Takes out what is no UTF-8, such as the first half of a character where the text was cut. */
static inline void ebb_text_clean(char *text)
{
	char *to = text;

	while (*text) {
		const size_t len = ebb_text_char(text);

		memmove(to, text, len);
		to += len;
		text += len ? len : 1;
	}
	*to = '\0';
}

/* As much of the text as fits into size bytes with its NUL. */
static inline void ebb_text_copy(char *ret, size_t size, const char *text)
{
	const size_t len = strnlen(text, size - 1);

	memmove(ret, text, len);
	ret[len] = '\0';
	ebb_text_clean(ret);
}

/*
 * A name for people: at most so many characters, up to EBB_LABEL_MOST.  Of a longer one the middle
 * is left out, as names that begin alike often end differently.  Nothing may be found by it.
 */
#define EBB_LABEL_MOST	40
struct ebb_text_label {
	char text[4 * EBB_LABEL_MOST + 1];
};

static inline struct ebb_text_label ebb_text_label(const char *name, size_t most)
{
	const size_t at_end = most / 3, at_begin = most - at_end - 3;
	struct ebb_text_label label;
	size_t count = 0, used = 0;

	for (const char *s = name; *s; s += ebb_text_char(s) ? ebb_text_char(s) : 1)
		count++;
	for (size_t i = 0; *name; i++) {
		const size_t len = ebb_text_char(name);

		if (count <= most || i < at_begin || i >= count - at_end) {
			memcpy(label.text + used, name, len);
			used += len;
		} else if (i < at_begin + 3) {
			label.text[used++] = '.';
		}
		name += len ? len : 1;
	}
	label.text[used] = '\0';
	return label;
}

#endif
