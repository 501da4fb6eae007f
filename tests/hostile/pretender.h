// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of the pretender: the objects of a Python that it imitates, and the lies about them. */
#ifndef PRETENDER_H
#define PRETENDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpython/layout.h"

#define MAJOR 3 /* MINOR is the Makefile's */

#define WORKERS 2
#define NAMES   12
#define ROOT    NAMES /* one more code object, of the frame nearest the root in a deep stack */
#define LINES   8     /* a code object's lines: 100 * (its number + 1) and the next ones */
#define CHAIN   24    /* frames of an honest stack */
/* Longer than a walk is (PYBPF_MAX_WALK), and than a search for a thread (PYBPF_MAX_THREADS). */
#define DEEP       100000
#define CROWD      100000
#define CIRCLE     1000
#define INTERPS    4
#define LONG_TABLE (16 << 20) /* the longest line table that is read from a process */
#define PAGED      16         /* pages that come and go, each with a frame, a code object and a name */
/* Bytes from one object to the next: an address then ends in 0, which is no string's state. */
#define OBJECT      256
#define CODE_SIZE   1024
#define TSTATE_SIZE 1024

/* A thread that is sampled. */
struct worker {
	uint8_t *tstate, *frames;
	pthread_t thread;
	uint64_t random;
};

struct world {
	struct layout_build build;
	struct pybpf_layout l;
	uint8_t *interps;
	uint8_t *codes, *names, *files, *table;
	uint8_t *deep, *circle, *costly; /* frames */
	uint8_t *long_table;             /* of the code objects of `costly` */
	uint8_t *crowd, *ring;           /* thread states */
	uint8_t *paged;
	size_t page;
	int paged_fd;
	struct worker workers[WORKERS];
};

extern struct world world;
extern char _PyRuntime[];

/* Fields of the objects; PYBPF_NO_OFFSET is no field. */
void put_u64(uint8_t *object, uint16_t offset, uint64_t value);
void put_u32(uint8_t *object, uint16_t offset, uint32_t value);
void put_u8(uint8_t *object, uint16_t offset, uint8_t value);

/* Objects by number. */
uint8_t *interp_at(unsigned int i);
uint8_t *code_at(unsigned int i);
uint8_t *name_at(unsigned int i);
uint8_t *file_at(unsigned int i);
uint8_t *deep_at(unsigned int i);
uint8_t *frame_at(const struct worker *w, unsigned int i);

/* world.c: makes all objects, and sets right what lies may have changed. */
extern const char *const name_texts[NAMES];
void world_make(void);
void world_set_right(struct worker *w);
/* A frame that calls from code object `code`; caller may be NULL. */
void frame_set(uint8_t *frame, unsigned int code, const uint8_t *caller, unsigned int line);
/* offset: bytes from the first instruction. */
void frame_set_position(uint8_t *frame, const uint8_t *code, unsigned int offset);

/* lies.c */
typedef void lie(struct worker *w);
/* The lie of that name, or NULL. */
lie *lie_find(const char *name);
/* Takes pages away and puts them back, for ever. */
void *take_pages(void *unused);

#endif
