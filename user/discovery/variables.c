// SPDX-License-Identifier: Apache-2.0
/* Finds static variables of 2.7 and 3.6: by their symbols, or in the code of short functions that read them. */
#include <errno.h>
#include <string.h>

#include "cpython/facts.h"
#include "discovery/arm64.h"
#include "discovery/internal.h"

#if defined(__x86_64__)
/* Bytes of a function that are read; PyInterpreterState_New has some 150 to 260 bytes in 2.7 and 3.6. */
#define STORING_CODE_MAX 1024

/* Returns whether the function stores a register to that address. */
static bool is_stored_to(const struct discovery_symbols *symbols, const char *name, uint64_t addr)
{
	uint8_t code[STORING_CODE_MAX];
	struct elf_symbol function;
	int32_t distance;
	ssize_t n;

	if (!discovery_symbol(symbols, name, &function))
		return false;
	n = elf_file_read(symbols->elf, function.value, code,
			  function.size < sizeof(code) ? function.size : sizeof(code));
	/* mov [rip + disp32], any register */
	for (ssize_t at = 0; at + 7 <= n; at++) {
		if ((code[at] & 0xfb) != 0x48 || code[at + 1] != 0x89 || (code[at + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, code + at + 3, sizeof(distance));
		if (function.value + at + 7 + (int64_t)distance == addr)
			return true;
	}
	return false;
}

/* The first instruction of a function that reads a variable, whose address is relative to the next instruction. */
struct load {
	uint8_t bytes[3]; /* before the distance */
	uint8_t rest;     /* bytes of the instruction after it */
};

/* Decodes the load of a variable at the start of a function. Returns 0, or -ENOENT. */
static int decode_load(const struct discovery_symbols *symbols, const char *name, uint64_t *out)
{
	static const struct {
		uint8_t size, bytes[4];
	} prologue[] = {
		{4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
		{1, {0x55}},                   /* push rbp */
		{3, {0x48, 0x89, 0xe5}},       /* mov rbp, rsp */
		{2, {0x31, 0xc0}},             /* xor eax, eax */
	};
	static const struct load loads[] = {
		{{0x48, 0x8b, 0x05}, 0}, /* mov rax, [rip + disp32] */
		{{0x48, 0x83, 0x3d}, 1}, /* cmp qword [rip + disp32], 0 */
	};
	struct elf_symbol function;
	uint8_t code[24];
	size_t at = 0;
	int32_t distance;

	if (!discovery_symbol(symbols, name, &function) ||
	    elf_file_read(symbols->elf, function.value, code, sizeof(code)) != sizeof(code))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(prologue) / sizeof(prologue[0]); i++)
		if (!memcmp(code + at, prologue[i].bytes, prologue[i].size))
			at += prologue[i].size;
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		size_t next = at + sizeof(loads[i].bytes) + sizeof(distance);

		if (memcmp(code + at, loads[i].bytes, sizeof(loads[i].bytes)))
			continue;
		memcpy(&distance, code + at + sizeof(loads[i].bytes), sizeof(distance));
		*out = function.value + next + loads[i].rest + (int64_t)distance;
		return 0;
	}
	return -ENOENT;
}
#else
/* Instructions of a function that are read; PyInterpreterState_New of 2.7 has 38. */
#define STORING_CODE_MAX 256
#define LOADING_CODE_MAX 4 /* bti, adrp, add, ldr */

/* Reads the function's code, at most `most` instructions. Returns their number. */
static size_t read_code(const struct discovery_symbols *symbols, const char *name, uint32_t *code, size_t most,
			uint64_t *at)
{
	struct elf_symbol function;
	size_t size = most * sizeof(*code);
	ssize_t n;

	if (!discovery_symbol(symbols, name, &function))
		return 0;
	*at = function.value;
	n = elf_file_read(symbols->elf, function.value, code, function.size < size ? function.size : size);
	return n < 0 ? 0 : (size_t)n / sizeof(*code);
}

static bool is_stored_to(const struct discovery_symbols *symbols, const char *name, uint64_t addr)
{
	uint32_t code[STORING_CODE_MAX];
	uint64_t at = 0;
	size_t count = read_code(symbols, name, code, STORING_CODE_MAX, &at);

	return discovery_decodes_store(code, count, at, addr);
}

static int decode_load(const struct discovery_symbols *symbols, const char *name, uint64_t *out)
{
	uint32_t code[LOADING_CODE_MAX];
	uint64_t at = 0;
	size_t count = read_code(symbols, name, code, LOADING_CODE_MAX, &at);

	*out = discovery_decode_first_load(code, count, at);
	return *out ? 0 : -ENOENT;
}
#endif

int discovery_decode_interp_head(const struct discovery_symbols *symbols, uint64_t *out)
{
	/* "return interp_head;" */
	if (decode_load(symbols, "PyInterpreterState_Head", out))
		return -ENOENT;
	/* "interp_head = interp;" */
	return is_stored_to(symbols, "PyInterpreterState_New", *out) ? 0 : -ENOENT;
}

/* Finds 2.7's interpreter_lock in the code of two functions. Returns 0, or -ENOENT. */
static int decode_interpreter_lock(const struct discovery_symbols *symbols, uint64_t *out)
{
	/* "return interpreter_lock != 0;" */
	if (decode_load(symbols, "PyEval_ThreadsInitialized", out))
		return -ENOENT;
	/* "interpreter_lock = PyThread_allocate_lock();" */
	return is_stored_to(symbols, "PyEval_InitThreads", *out) ? 0 : -ENOENT;
}

/* Writes how far the variable is from interp_head. Returns 0, or -ERANGE: no build is that large. */
static int put_distance(const struct discovery_runtime *runtime, uint64_t addr, int32_t *out)
{
	int64_t distance = (int64_t)(addr - runtime->runtime);

	*out = (int32_t)distance;
	return distance && *out == distance ? 0 : -ERANGE;
}

static int find_gil_27(const struct discovery_symbols *symbols, const struct discovery_runtime *runtime,
		       struct pybpf_gil_variables *out)
{
	struct elf_symbol lock;

	if (elf_file_symbol(symbols->elf, "interpreter_lock", &lock) && decode_interpreter_lock(symbols, &lock.value))
		return -ENOENT;
	return put_distance(runtime, lock.value, &out->lock)
		       ?: put_distance(runtime, runtime->tstate_current, &out->last_holder);
}

static int find_gil_36(const struct discovery_symbols *symbols, const struct discovery_runtime *runtime,
		       struct pybpf_gil_variables *out)
{
	const struct {
		const char *name;
		int32_t *out;
		uint64_t size; /* at least */
	} variables[] = {
		{"gil_last_holder", &out->last_holder, 8},
		{"gil_locked", &out->locked, 4},
		{"gil_switch_number", &out->switch_number, 8},
		{"gil_cond", &out->cond, 48},
		{"gil_mutex", &out->mutex, 40},
		{"switch_cond", &out->switch_cond, 48},
		{"switch_mutex", &out->switch_mutex, 40},
	};
	struct elf_symbol found;

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (elf_file_symbol(symbols->elf, variables[i].name, &found) || found.size < variables[i].size ||
		    put_distance(runtime, found.value, variables[i].out))
			return -ENOENT;
	}
	return 0;
}

void discovery_find_gil(const struct discovery_symbols *symbols, struct discovery_runtime *runtime)
{
	const struct cpython_build *facts = cpython_facts_of(runtime->version.major, runtime->version.minor)->build;
	struct pybpf_gil_variables found = {0};

	if (!(facts->holder_is_current ? find_gil_27 : find_gil_36)(symbols, runtime, &found))
		runtime->build.layout.gil = found;
}
