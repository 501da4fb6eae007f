// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a variable's value as it was at one moment. A process that runs frees objects and makes others at the same
 * places: what is read piece by piece may be of two moments, though the pointers to it are what they were. So the value
 * is read several times. Each time begins with all that the time before needed, in one call of the kernel: every part
 * twice, with the pointer to it before, between and after, 100 ns apart; then all parts from the last to the first. A
 * value that was read from that alone, and was the same each time, was there.
 */
#ifndef SYMBOLS_PY_SNAPSHOT_H
#define SYMBOLS_PY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* A pointer that was read, and where. */
struct py_link {
	uint64_t word, at;
};

/* How often each part is read. */
#define PY_COPIES 3

struct py_snapshot_part {
	struct walk_part part;
	struct py_link link;       /* the pointer to it; all zero: none, it leads to all others */
	size_t offsets[PY_COPIES]; /* of its bytes */
	bool is_loose;             /* the pointer was not the same each time */
	bool is_used;              /* it was read from */
};

#define PY_LINKS 2048

/* All zero at first. */
struct py_snapshot {
	struct py_snapshot_part *parts; /* in the order in which they were needed first */
	size_t nr_parts, room;
	size_t nr_taken, near; /* parts in bytes; the one where the next read is looked for first */
	uint8_t *bytes;
	size_t bytes_room;
	bool has_missed, is_torn;       /* something was not in it; something was not the same */
	struct py_link links[PY_LINKS]; /* by what they lead to; later ones replace others */
	struct py_link last;            /* that led to what was read last */
};

/* Forgets which parts the last variable needed. */
void py_snapshot_forget(struct py_snapshot *s);
/* Reads the parts that were needed so far. Returns their bytes. */
size_t py_snapshot_take(struct py_snapshot *s, const struct walk_memory *memory);
/* Reads from the snapshot, or from memory what it does not have. Returns as struct walk_memory. */
int py_snapshot_read(struct py_snapshot *s, const struct walk_memory *memory, uint64_t addr, void *dst, size_t size);
/*
 * Reads an object's type in the same way. Returns false if it cannot be read, or nobody has a reference to the object:
 * it was freed meanwhile.
 */
bool py_snapshot_type(struct py_snapshot *s, const struct walk_memory *memory, const struct pybpf_layout *layout,
		      uint64_t object, uint64_t *type);
/* Returns whether all that was read since it was taken was there at one moment. */
bool py_snapshot_holds(const struct py_snapshot *s);
/* Returns how often to try in all, by what was read. */
unsigned py_snapshot_worth(const struct py_snapshot *s);
void py_snapshot_free(struct py_snapshot *s);

#endif
