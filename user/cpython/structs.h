/* SPDX-License-Identifier: Apache-2.0 */
/* Structs and values of CPython that are the same in all the versions that have them. */
#ifndef CPYTHON_STRUCTS_H
#define CPYTHON_STRUCTS_H

#include <stdint.h>

/* Py_AsyncioModuleDebugOffsets (Modules/_asynciomodule.c, the same in 3.14 and 3.15). */
struct cpython_asyncio_offsets {
	struct {
		uint64_t size, name, awaited_by, is_task, awaited_by_is_set, coro, node;
	} task;
	struct {
		uint64_t size, tasks_head;
	} interpreter;
	struct {
		uint64_t size, running_loop, running_task, tasks_head;
	} thread;
};

/* FRAME_OWNED_BY_CSTACK, the last of enum _frameowner (3.14, 3.15; pycore_interpframe_structs.h). */
#define CPYTHON_LAST_OWNER 4

/*
 * struct _stack_chunk (Include/cpython/pystate.h) begins with the previous chunk and its size in bytes: 16 KiB, doubled
 * until a frame fits (_PY_DATA_STACK_CHUNK_SIZE of 3.11 to 3.15). Others would be whole pages, too.
 */
struct cpython_stack_chunk {
	uint64_t previous, size;
};
#define CPYTHON_CHUNK_UNIT 4096

/* A deque behind its header (Modules/_collectionsmodule.c of 3.11 to 3.15). */
struct cpython_deque {
	uint64_t length, first, last; /* blocks: each has a link before its items */
	uint64_t begin;               /* in the first one */
};
/* Items of a block (BLOCKLEN). */
#define CPYTHON_DEQUE_BLOCK 64

/* A socket behind its header (PySocketSockObject, 3.7 to 3.15). */
struct cpython_socket {
	int32_t fd;
};

/*
 * What a trampoline calls, and how it ends (Python/asm_trampoline.S, 3.12 to 3.15), with a frame pointer or without.
 * The last byte of the call is at the address of a caller.
 */
#define CPYTHON_TRAMPOLINE_PLAIN    "\xff\xd1\x48\x83\xc4\x08\xc3"
#define CPYTHON_TRAMPOLINE_BY_FRAME "\xff\xd1\x5d\xc3"

#endif
