// SPDX-License-Identifier: Apache-2.0
/* Types and functions that the .c files of discovery share; no other room includes this. */
#ifndef DISCOVERY_INTERNAL_H
#define DISCOVERY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "container/container.h"
#include "discovery/discovery.h"
#include "base/elf_file.h"
#include "base/intern.h"
#include "base/procfs.h"

#define DISCOVERY_CODE_SEGMENTS 4

/*
 * Whether pthread_self() is not the thread pointer on this machine, and whether mutexes may have another size than
 * those of x86-64.
 */
#if defined(__x86_64__)
#define DISCOVERY_HAS_THREAD_BIAS   false
#define DISCOVERY_HAS_OTHER_MUTEXES false
#else
#define DISCOVERY_HAS_THREAD_BIAS   true
#define DISCOVERY_HAS_OTHER_MUTEXES true
#endif

enum discovery_kind {
	DISCOVERY_FILE_OTHER = 0, /* defines no Python runtime */
	DISCOVERY_FILE_FOREIGN,   /* an ELF file of another class or machine */
	DISCOVERY_FILE_PYTHON,
	DISCOVERY_FILE_REFUSED,
};

/* A Python's version, and the sources that tell it. */
struct discovery_version {
	int major, minor, micro; /* micro -1: unknown */
	char text[32];
	char source[64];
	bool debug_build;
};

/* What a Python's ELF file says; addresses as linked, 0 for none. */
struct discovery_runtime {
	struct discovery_version version;
	struct layout_build build;
	bool build_in_memory;    /* the file does not hold the debug offsets: read them from the process */
	uint64_t runtime;        /* _PyRuntime, or interp_head to 3.6 */
	uint64_t tstate_current; /* _PyThreadState_Current, to 3.6 */
	uint64_t code_type;
	char source[64];
};

/* One analysed file, with or without a Python. */
struct discovery_file {
	enum discovery_kind kind;
	uint64_t id; /* given by discovery_cache_add, the same for the same file in every helper */
	bool fixed;  /* ET_EXEC */
	struct elf_segment code[DISCOVERY_CODE_SEGMENTS];
	size_t code_count;
	/*
	 * An executable that refers to a library's variable can hold the variable itself (R_*_COPY), and then
	 * the library uses that one. Addresses as linked, 0 for none.
	 */
	uint64_t copied_runtime, copied_tstate_current, copied_code_type;
	size_t libraries;                  /* as elf_file_libraries() counts */
	struct pybpf_asyncio asyncio;      /* of a file with the module _asyncio; loaded is 0: of another */
	uint16_t thread_bias;              /* of a C library, as in struct pybpf_runtime; 0: of another file */
	struct discovery_runtime *runtime; /* DISCOVERY_FILE_PYTHON */
	char *refusal;                     /* DISCOVERY_FILE_REFUSED: a sentence, without the file's name */
};

/* Where symbols are looked up: .dynsym alone where it exports CPython's names, else .symtab too. */
struct discovery_symbols {
	struct elf_file *elf;
	bool all;   /* look in .symtab too */
	bool named; /* the runtime was found by name, so other names can be expected */
};

/* Returns whether name is defined; out may be NULL. */
bool discovery_symbol(const struct discovery_symbols *symbols, const char *name, struct elf_symbol *out);

/*
 * variables.c: decodes the load in PyInterpreterState_Head(), which is "return interp_head;" in 2.7 and 3.6. Returns 0,
 * or a negative errno.
 */
int discovery_decode_interp_head(const struct discovery_symbols *symbols, uint64_t *out);
/* Fills the layout's gil of a 2.7 or 3.6 whose interp_head is known; leaves it 0 if not all of it is found. */
void discovery_find_gil(const struct discovery_symbols *symbols, struct discovery_runtime *runtime);

/*
 * Finds the version from at least two sources that agree, or one that carries its own proof. offsets_hex is
 * the version in the debug offsets, or 0; old is true for an interpreter without _PyRuntime. Returns 0, or
 * -ENOTSUP with one sentence in *error.
 */
int discovery_find_version(const struct discovery_symbols *symbols, uint32_t offsets_hex, bool old,
			   struct discovery_version *out, struct error *error);

/* Fills out (zeroed) from an ELF file. Returns 0 or -ENOMEM. */
int discovery_analyse(struct elf_file *elf, struct discovery_file *out);
void discovery_file_clear(struct discovery_file *file);
/*
 * tstate_current.c: finds where _PyRuntime, at this address, has it if that is not known from a table; else
 * LAYOUT_NONE.
 */
void discovery_find_tstate_current(const struct discovery_symbols *symbols, struct discovery_runtime *runtime,
				   uint64_t address);
/* Decodes the address of the variable that arm64's code at `at` returns; 0: other code. */
uint64_t discovery_decode_tstate_current(const uint32_t *code, size_t count, uint64_t at, uint64_t runtime);
/* thread_bias.c: what the C library in this file has as thread_bias; 0: not a C library, or not known. */
uint16_t discovery_thread_bias(struct elf_file *elf);
/* The same from the instructions of arm64's pthread_self(). */
uint16_t discovery_decode_thread_bias(const uint32_t *code, size_t count);
/* asyncio.c: reads the offsets that the module _asyncio has (3.14+); loaded is 0: it is not in the file. */
void discovery_read_asyncio(struct elf_file *elf, struct pybpf_asyncio *out);
/* Writes the PyPy release of a libpypy to out, as "7.3.11"; "" when it is not found. */
void discovery_pypy_version(struct elf_file *elf, char *out, size_t size);

/* cache.c: analysed files. */
struct discovery_cache {
	struct intern files;
	uint32_t oldest; /* index of the oldest file, once the cache is full */
};

void discovery_cache_init(struct discovery_cache *cache);
void discovery_cache_free(struct discovery_cache *cache);
/* Returns the cached analysis of the file that st describes, or NULL; valid until the next discovery_cache_add(). */
const struct discovery_file *discovery_cache_find(const struct discovery_cache *cache, const struct stat *st);
/*
 * Adds file to the cache, which then owns its contents. Returns the cached copy, valid until the next call, or NULL
 * without memory.
 */
const struct discovery_file *discovery_cache_add(struct discovery_cache *cache, const struct stat *st,
						 struct discovery_file *file);

/* memo.c: mappings without a Python. */
struct discovery_memo {
	bool on; /* in a pass over many processes */
	struct intern mappings;
};

void discovery_memo_init(struct discovery_memo *memo);
/* Ends the pass: forgets all mappings. */
void discovery_memo_free(struct discovery_memo *memo);
/* Returns whether the mapping's file was found, in this pass, to have nothing to do with Python. */
bool discovery_memo_has(const struct discovery_memo *memo, const struct procfs_map *map);
void discovery_memo_add(struct discovery_memo *memo, const struct procfs_map *map);

/* What discovery remembers from one process to the next. */
struct discovery {
	struct discovery_cache cache;
	struct discovery_memo memo;
	struct container_cache *containers;
};

#endif
