// SPDX-License-Identifier: Apache-2.0
/* Text of bounded length, and the quoted texts of Python's repr(). */
#ifndef SYMBOLS_PY_OUT_H
#define SYMBOLS_PY_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text; it is UTF-8. */
#define PY_OUT_MAX (32 * 1024)
/* Stands for what is left out at the end. */
#define PY_OUT_MORE "..."

/* Where the address of an object can be put into its text, as repr() has it: between "<Point" and " x=1>". */
struct py_mark {
	uint32_t begin, at; /* bytes: where begins what the object is called, "Point", and where the address goes */
	uint64_t object;
};
/* Most objects of a text that are marked. */
#define PY_OUT_MARKS 256

struct py_out {
	size_t size, room; /* room: at most PY_OUT_MAX */
	bool full;         /* something found no room: nothing is added any more */
	uint32_t nr_marks;
	struct py_mark marks[PY_OUT_MARKS]; /* in their order in the text */
	char bytes[PY_OUT_MAX + sizeof(PY_OUT_MORE)];
};

void py_out_begin(struct py_out *out, size_t room);
void py_out_add(struct py_out *out, const char *bytes, size_t size);
void py_out_text(struct py_out *out, const char *text);
void py_out_print(struct py_out *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Marks the end of the text so far as the place of an object's address; begin: where begins
 * what the object is called. */
void py_out_mark(struct py_out *out, size_t begin, uint64_t object);
/* Takes back what was added since it had that size. */
void py_out_return(struct py_out *out, size_t size);
/* Puts a text in place of what was added from one size to another. */
void py_out_replace(struct py_out *out, size_t from, size_t to, const char *text);
/* Adds PY_OUT_MORE if something found no room, and the NUL. */
void py_out_end(struct py_out *out);

/* What repr() escapes. */
enum py_quote {
	PY_QUOTE_TEXT,  /* str: what cannot be printed */
	PY_QUOTE_ASCII, /* 2.7's unicode: all but ASCII */
	PY_QUOTE_BYTES, /* bytes: likewise, as \xNN */
	PY_QUOTE_ARRAY, /* bytearray: as bytes, and "'" in whatever quotes */
};

struct py_text {
	const uint8_t *units;
	const uint8_t *hidden; /* a byte for each unit, not 0: PY_OUT_HIDDEN stands for it and those beside it */
	size_t count;
	unsigned unit; /* bytes of each, 1, 2 or 4, little-endian */
	bool cut;      /* there are more than these */
};
#define PY_OUT_HIDDEN "<hidden>"

/* Adds a text in quotes, as repr() does. */
void py_out_quoted(struct py_out *out, const struct py_text *text, enum py_quote quote);
/* Adds a number as repr() does: the shortest text that is this number. with_point: "1.0" and not "1". */
void py_out_double(struct py_out *out, double number, bool with_point);
/* Likewise for a number of single precision. */
void py_out_float(struct py_out *out, float number);
/* Adds an integer of digits of 30 bits, the lowest first, which this changes. */
void py_out_integer(struct py_out *out, bool negative, uint32_t *digits, size_t count);

#endif
