// SPDX-License-Identifier: Apache-2.0
/* Analyses one ELF file: whether it holds a Python runtime, which one, and where. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "discovery/internal.h"

/* Most bytes of a libpypy's .data that are searched for its release; PyPy 7.3's has 18 MB. */
#define PYPY_SCAN_MAX   (32ULL * 1024 * 1024)
#define PYPY_SCAN_CHUNK (64 * 1024)

void discovery_pypy_version(struct elf_file *elf, char *out, size_t size)
{
	/* RPython puts its prebuilt strings, sys.version among them, in .data. */
	static const char mark[] = "PyPy ";
	const size_t overlap = sizeof(mark) + 16;
	struct elf_section data;
	char *chunk;

	out[0] = '\0';
	if (elf_file_section(elf, ".data", &data))
		return;
	chunk = malloc(PYPY_SCAN_CHUNK);
	for (uint64_t at = 0; chunk && at < data.size && at < PYPY_SCAN_MAX; at += PYPY_SCAN_CHUNK - overlap) {
		ssize_t n = elf_file_read(elf, data.addr + at, chunk, PYPY_SCAN_CHUNK);
		const char *hit = chunk, *end = chunk + n;

		if (n <= (ssize_t)overlap)
			break;
		for (; (hit = memmem(hit, end - hit, mark, strlen(mark))); hit++) {
			const char *version = hit + strlen(mark), *p = version;

			while (p < end && ((*p >= '0' && *p <= '9') || *p == '.'))
				p++;
			if (p == end || p - version < 3 || p - version > 12 || *p != ' ')
				continue;
			snprintf(out, size, "%.*s", (int)(p - version), version);
			goto done;
		}
	}
done:
	free(chunk);
}

static bool is_pypy(struct elf_file *elf)
{
	const char *soname = elf_file_soname(elf);
	struct elf_symbol symbol;

	return (soname && !strncmp(soname, "libpypy", 7)) ||
	       !elf_file_dynamic_symbol(elf, "pypy_main_startup", &symbol);
}

struct anchor {
	struct discovery_symbols symbols;
	bool old; /* _PyThreadState_Current, no _PyRuntime */
	uint64_t addr;
	uint64_t size; /* 0: unknown */
	const char *source;
};

/* Finds the runtime by the symbols in .dynsym, which a build with a shared library or an exported API has. */
static bool find_exported(struct elf_file *elf, struct discovery_file *file, struct anchor *out)
{
	struct elf_symbol symbol;

	*out = (struct anchor){.symbols = {.elf = elf, .named = true}};
	if (!elf_file_dynamic_symbol(elf, "_PyRuntime", &symbol)) {
		out->addr = symbol.value;
		out->size = symbol.size;
		out->source = ".dynsym _PyRuntime";
	} else if (!elf_file_dynamic_symbol(elf, "_PyThreadState_Current", &symbol)) {
		out->old = true;
		out->addr = symbol.value;
		out->source = ".dynsym _PyThreadState_Current";
	}
	if (out->source && !elf_file_dynamic_symbol(elf, "PyInterpreterState_Head", &symbol))
		return true;
	/* A library's variable that was copied into an executable comes without the library's functions. */
	if (out->source)
		*(out->old ? &file->copied_tstate_current : &file->copied_runtime) = out->addr;
	if (!elf_file_dynamic_symbol(elf, "PyCode_Type", &symbol))
		file->copied_code_type = symbol.value;
	return false;
}

static bool find_anchor(struct elf_file *elf, struct discovery_file *file, struct anchor *out)
{
	struct elf_section section;
	struct elf_symbol symbol;

	if (find_exported(elf, file, out))
		return true;
	*out = (struct anchor){.symbols = {.elf = elf, .all = true}};
	/* GENERATE_DEBUG_SECTION(PyRuntime, _PyRuntimeState _PyRuntime), Python/pylifecycle.c, since 3.10. */
	if (!elf_file_section(elf, ".PyRuntime", &section) && section.addr) {
		out->addr = section.addr;
		out->source = "section .PyRuntime";
		return true;
	}
	out->symbols.named = true;
	if (!elf_file_symbol(elf, "_PyRuntime", &symbol) && symbol.value != file->copied_runtime) {
		out->addr = symbol.value;
		out->size = symbol.size;
		out->source = ".symtab _PyRuntime";
	} else if (!elf_file_symbol(elf, "_PyThreadState_Current", &symbol) &&
		   symbol.value != file->copied_tstate_current) {
		out->old = true;
		out->addr = symbol.value;
		out->source = ".symtab _PyThreadState_Current";
	}
	return out->source;
}

/* 2.7 and 3.6: no _PyRuntime; interp_head is a static variable. */
static int find_old_runtime(const struct anchor *anchor, struct discovery_runtime *out, struct error *error)
{
	struct elf_symbol head;

	out->tstate_current = anchor->addr;
	if (!elf_file_symbol(anchor->symbols.elf, "interp_head", &head)) {
		out->runtime = head.value;
		snprintf(out->source, sizeof(out->source), "%s, .symtab interp_head", anchor->source);
	} else if (!discovery_decode_interp_head(&anchor->symbols, &out->runtime)) {
		snprintf(out->source, sizeof(out->source), "%s, PyInterpreterState_Head's code", anchor->source);
	} else {
		return error_set(error, -ENOTSUP,
				 "Python %s keeps its interpreters in the variable interp_head, which was stripped "
				 "from it, and the code of PyInterpreterState_Head and PyInterpreterState_New does not "
				 "show it; use an interpreter that is not stripped",
				 out->version.text);
	}
	discovery_find_gil(&anchor->symbols, out);
	return 0;
}

static int find_table(const struct anchor *anchor, struct discovery_runtime *out, struct error *error)
{
	const struct discovery_version *version = &out->version;
	const struct cpython_build *facts = cpython_facts_of(version->major, version->minor)->build;
	bool trace_refs = discovery_symbol(&anchor->symbols, "_Py_AddToAllObjects", NULL);

	if (!facts->debug_traces_refs && trace_refs)
		return error_set(error, -ENOTSUP,
				 "Python %s was built with --with-trace-refs, whose objects have another layout; use "
				 "a build "
				 "without it",
				 version->text);
	if (!layout_from_table(version->major, version->minor, version->debug_build, &out->build)) {
		if (DISCOVERY_HAS_OTHER_MUTEXES)
			discovery_find_tstate_current(&anchor->symbols, out, anchor->addr);
		return 0;
	}
	if (facts->has_debug_offsets)
		error_set(error, -ENOTSUP,
			  "Python %s has no debug offsets at its _PyRuntime; pybpf cannot know its layout",
			  version->text);
	else
		error_set(error, -ENOTSUP, "it is Python %s%s; pybpf reads " CPYTHON_SUPPORTED, version->text,
			  version->debug_build ? " (a debug build)" : "");
	return -ENOTSUP;
}

static int analyse_runtime(const struct anchor *anchor, struct discovery_runtime *out, struct error *error)
{
	uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
	struct elf_symbol code_type;
	uint32_t hex = 0;
	ssize_t n = 0;
	int err;

	if (!anchor->old)
		n = elf_file_read(anchor->symbols.elf, anchor->addr, bytes, sizeof(bytes));
	if (n > 0 && layout_has_debug_offsets(bytes, n)) {
		struct error offsets;

		if (layout_from_debug_offsets(bytes, n, &out->build, &offsets))
			return error_set(error, -ENOTSUP, "its debug offsets are not usable: %s", offsets.text);
		hex = out->build.version_hex;
	}
	err = discovery_find_version(&anchor->symbols, hex, anchor->old, &out->version, error);
	if (err)
		return err;
	if (!hex && cpython_facts_of(out->version.major, out->version.minor)->build->has_debug_offsets)
		out->build_in_memory = true;
	else if (!hex)
		err = find_table(anchor, out, error);
	if (err)
		return err;
	if (anchor->old) {
		err = find_old_runtime(anchor, out, error);
		if (err)
			return err;
	} else {
		out->runtime = anchor->addr;
		snprintf(out->source, sizeof(out->source), "%s", anchor->source);
	}
	if (anchor->size && !out->build_in_memory && !anchor->old &&
	    out->build.runtime_interp_head + 8ULL > anchor->size)
		return error_set(error, -ENOTSUP, "its _PyRuntime has %llu bytes, too few for Python %s",
				 (unsigned long long)anchor->size, out->version.text);
	if (discovery_symbol(&anchor->symbols, "PyCode_Type", &code_type))
		out->code_type = code_type.value;
	return 0;
}

int discovery_analyse(struct elf_file *elf, struct discovery_file *out)
{
	struct error error;
	char pypy[16];
	struct anchor anchor;
	int err;

	out->fixed = elf_file_is_fixed(elf);
	out->code_count = elf_file_code_segments(elf, out->code, DISCOVERY_CODE_SEGMENTS);
	out->thread_bias = DISCOVERY_HAS_THREAD_BIAS ? discovery_thread_bias(elf) : 0;
	out->libraries = elf_file_libraries(elf);
	discovery_read_asyncio(elf, &out->asyncio);
	if (is_pypy(elf)) {
		discovery_pypy_version(elf, pypy, sizeof(pypy));
		error_set(&error, -ENOTSUP, "this is PyPy%s%s; pybpf reads CPython only: use PyPy's own vmprof",
			  pypy[0] ? " " : "", pypy);
		goto refuse;
	}
	if (!find_anchor(elf, out, &anchor))
		return 0;
	out->copied_code_type = 0;
	out->runtime = calloc(1, sizeof(*out->runtime));
	if (!out->runtime)
		return -ENOMEM;
	out->kind = DISCOVERY_FILE_PYTHON;
	err = analyse_runtime(&anchor, out->runtime, &error);
	if (!err)
		return 0;
refuse:
	discovery_file_clear(out);
	out->refusal = strdup(error.text);
	if (!out->refusal)
		return -ENOMEM;
	out->kind = DISCOVERY_FILE_REFUSED;
	return 0;
}

void discovery_file_clear(struct discovery_file *file)
{
	free(file->runtime);
	free(file->refusal);
	file->runtime = NULL;
	file->refusal = NULL;
}
