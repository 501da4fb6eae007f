// SPDX-License-Identifier: Apache-2.0
#include "pysym.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "log.h"
#include "pysym_lines.h"
#include "pysym_string.h"
#include "walk_user.h"

struct process {
	uint32_t proc_id;
	pid_t pid;
	char comm[64];
	struct pybpf_layout layout;
	UT_hash_handle hh;
};

struct code_key {
	uint64_t code;
	uint32_t sig;
	uint32_t proc_id;
};

struct code {
	struct code_key key;
	const struct process *process;
	char *name;
	const char *file; /* in the table of files */
	uint8_t *lines;
	uint32_t lines_size;
	int32_t first_line;
	bool hidden;
	UT_hash_handle hh;
};

struct position_key {
	const struct code *code;
	int64_t position;
};

struct position {
	struct position_key key;
	int32_t line;
	uint32_t cookie;
	UT_hash_handle hh;
};

/* A path as the code objects of one process have it, and what is printed. */
struct file {
	char *key; /* "PROC_ID:PATH": another process may see another file there */
	const char *shown;
	UT_hash_handle hh;
};

struct pysym {
	enum pysym_line_mode mode;
	bool full_filenames;
	struct process *processes;
	struct code *codes;
	struct position *positions;
	struct file *files;
	struct pysym_counters counters;
	uint32_t lines_read; /* bytes */
};

/* What stands where a name could not be had. */
static const char unnamed[] = "[unnamed]";

struct pysym *pysym_new(enum pysym_line_mode mode, bool full_filenames)
{
	struct pysym *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->mode = mode;
	s->full_filenames = full_filenames;
	return s;
}

void pysym_free(struct pysym *s)
{
	struct process *process, *next_process;
	struct code *code, *next_code;
	struct position *position, *next_position;
	struct file *file, *next_file;

	if (!s)
		return;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, s->positions, position, next_position) {
		HASH_DEL(s->positions, position);
		free(position);
	}
	HASH_ITER (hh, s->codes, code, next_code) {
		HASH_DEL(s->codes, code);
		free(code->name);
		free(code->lines);
		free(code);
	}
	HASH_ITER (hh, s->files, file, next_file) {
		HASH_DEL(s->files, file);
		free(file->key);
		free(file);
	}
	HASH_ITER (hh, s->processes, process, next_process) {
		HASH_DEL(s->processes, process);
		free(process);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	free(s);
}

int pysym_add_process(struct pysym *s, uint32_t proc_id, pid_t pid, const char *comm, const struct pybpf_layout *layout)
{
	struct process *process;

	HASH_FIND(hh, s->processes, &proc_id, sizeof(proc_id), process);
	if (process)
		return 0;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->proc_id = proc_id;
	process->pid = pid;
	process->layout = *layout;
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	HASH_ADD(hh, s->processes, proc_id, sizeof(proc_id), process);
	return 0;
}

pid_t pysym_process(const struct pysym *s, uint32_t proc_id, const char **comm)
{
	struct process *process;

	HASH_FIND(hh, s->processes, &proc_id, sizeof(proc_id), process);
	*comm = process ? process->comm : "";
	return process ? process->pid : 0;
}

/* Returns what is printed for a path of the process, or NULL when memory is exhausted. */
static const char *intern_file(struct pysym *s, const char *path, const struct process *process)
{
	struct file *file;
	const char *own;
	char root[64], *key;

	if (asprintf(&key, "%u:%s", process->proc_id, path) < 0)
		return NULL;
	HASH_FIND_STR(s->files, key, file);
	if (file) {
		free(key);
		return file->shown;
	}
	file = calloc(1, sizeof(*file));
	if (!file) {
		free(key);
		return NULL;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", process->pid);
	file->key = key;
	own = strchr(key, ':') + 1;
	file->shown = s->full_filenames ? own : pysym_short_path(own, root);
	HASH_ADD_KEYPTR(hh, s->files, file->key, strlen(file->key), file);
	return file->shown;
}

/* Decodes a string object of which `have` bytes from its start are at hand; NULL when that is not all of it. */
static char *decode_copy(const struct pybpf_layout *layout, const uint8_t *object, size_t have)
{
	uint8_t header[PYSYM_STRING_HEADER] = {0};
	struct pysym_string_shape shape;

	memcpy(header, object, have < sizeof(header) ? have : sizeof(header));
	if (pysym_string_shape(layout, header, &shape) || (uint64_t)shape.data_offset + shape.data_size > have)
		return NULL;
	return pysym_string_decode(&shape, object + shape.data_offset, shape.data_size);
}

/* Reads a string object from the process; NULL where that can't be done. */
static char *read_string(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr)
{
	/* A short string near the end of a mapping has no PYSYM_STRING_HEADER bytes; its header alone must be there. */
	size_t need = layout->string_kind == PYBPF_STR_BYTES ? layout->str_ascii_data : layout->str_state + 4u;
	uint8_t header[PYSYM_STRING_HEADER] = {0};
	struct pysym_string_shape shape;
	char *text = NULL;
	uint8_t *data;

	if (memory->read(memory->source, addr, header, sizeof(header)) &&
	    (need > sizeof(header) || memory->read(memory->source, addr, header, need)))
		return NULL;
	if (pysym_string_shape(layout, header, &shape))
		return NULL;
	data = malloc(shape.data_size + 1u);
	if (!data)
		return NULL;
	if (!memory->read(memory->source, addr + shape.data_offset, data, shape.data_size))
		text = pysym_string_decode(&shape, data, shape.data_size);
	free(data);
	return text;
}

/* Bytes of line tables that are read from processes in one run; those of a whole standard library are some 10 MiB. */
#define LINES_MAX (64u << 20)

static void read_lines(struct pysym *s, const struct walk_memory *memory, uint64_t addr, struct code *code)
{
	const struct pybpf_layout *layout = &code->process->layout;
	uint64_t size;
	uint8_t *lines;

	if (memory->read(memory->source, addr + layout->bytes_size, &size, sizeof(size)) ||
	    size > LINES_MAX - s->lines_read)
		return;
	s->lines_read += (uint32_t)size;
	lines = malloc(size + 1);
	if (!lines)
		return;
	if (memory->read(memory->source, addr + layout->bytes_data, lines, size)) {
		free(lines);
		return;
	}
	code->lines = lines;
	code->lines_size = (uint32_t)size;
}

/*
 * Reads from the process what is still missing of a code object. The object may have been freed since: what was read
 * counts only if the signature is the same before and after.
 */
static void read_missing(struct pysym *s, struct code *code, char **file)
{
	const struct pybpf_layout *layout = &code->process->layout;
	struct walk_memory memory;
	struct walk_code before, after;
	char *name = NULL, *path = NULL;
	bool had_lines = code->lines != NULL;

	walk_process_memory(&memory, &code->process->pid);
	if (walk_read_code(&memory, layout, code->key.code, &before) || before.sig != code->key.sig)
		return;
	if (!code->name)
		name = read_string(&memory, layout, before.name);
	if (!*file)
		path = read_string(&memory, layout, before.file);
	if (!had_lines)
		read_lines(s, &memory, before.lines, code);
	if (walk_read_code(&memory, layout, code->key.code, &after) || after.sig != code->key.sig) {
		free(name);
		free(path);
		if (!had_lines) {
			free(code->lines);
			code->lines = NULL;
			code->lines_size = 0;
		}
		return;
	}
	if (!code->name) {
		code->name = name;
		code->first_line = before.first_line;
		code->hidden = before.name == before.file && before.first_line == 0;
	}
	if (!*file)
		*file = path;
}

/* Puts a code object whose parts are as known as they will ever be into the table; owns file. */
static int finish_code(struct pysym *s, struct code *code, char *file)
{
	if (!code->name || !file || !code->lines)
		read_missing(s, code, &file);
	s->counters.codes++;
	if (!code->name) {
		s->counters.unnamed++;
		code->name = strdup(unnamed);
	}
	if (!code->lines)
		s->counters.no_lines++;
	code->file = file ? intern_file(s, file, code->process) : "";
	free(file);
	if (!code->name || !code->file) {
		free(code->name);
		free(code->lines);
		free(code);
		return -ENOMEM;
	}
	HASH_ADD(hh, s->codes, key, sizeof(code->key), code);
	return 0;
}

/* Returns 0, -ENOENT for a process that is not known, or -ENOMEM. */
static int new_code(struct pysym *s, uint64_t addr, uint32_t sig, uint32_t proc_id, struct code **out)
{
	const struct process *process;

	HASH_FIND(hh, s->processes, &proc_id, sizeof(proc_id), process);
	if (!process)
		return -ENOENT;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->key = (struct code_key){.code = addr, .sig = sig, .proc_id = proc_id};
	(*out)->process = process;
	return 0;
}

static struct code *find_code(struct pysym *s, uint64_t addr, uint32_t sig, uint32_t proc_id)
{
	struct code_key key = {.code = addr, .sig = sig, .proc_id = proc_id};
	struct code *code;

	HASH_FIND(hh, s->codes, &key, sizeof(key), code);
	return code;
}

int pysym_add_code(struct pysym *s, const struct pybpf_code_event *event, size_t size)
{
	const uint8_t *part[PYBPF_CODE_PARTS];
	uint64_t at = sizeof(*event);
	char *file = NULL;
	struct code *code;
	int err;

	if (size < sizeof(*event))
		return -EBADMSG;
	for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
		part[i] = (const uint8_t *)event + at;
		at += event->part_copied[i];
		if (at > size)
			return -EBADMSG;
	}
	if (find_code(s, event->code, event->sig, event->proc_id))
		return 0;
	err = new_code(s, event->code, event->sig, event->proc_id, &code);
	if (err)
		return err == -ENOENT ? -EBADMSG : err;
	code->first_line = event->first_line;
	/* 3.12+: _Py_InitCleanup, pushed below an inlined __init__, has one object for all its names and no line. */
	code->hidden = event->part_addr[PYBPF_CODE_NAME] == event->part_addr[PYBPF_CODE_FILE] && event->first_line == 0;
	code->name = decode_copy(&code->process->layout, part[PYBPF_CODE_NAME], event->part_copied[PYBPF_CODE_NAME]);
	file = decode_copy(&code->process->layout, part[PYBPF_CODE_FILE], event->part_copied[PYBPF_CODE_FILE]);
	if (event->part_copied[PYBPF_CODE_LINES] == event->part_size[PYBPF_CODE_LINES]) {
		code->lines_size = event->part_copied[PYBPF_CODE_LINES];
		code->lines = malloc(code->lines_size + 1u);
		if (code->lines)
			memcpy(code->lines, part[PYBPF_CODE_LINES], code->lines_size);
	}
	return finish_code(s, code, file);
}

/* The byte offset of the instruction in the bytecode, as line tables count. */
static int64_t bytecode_offset(const struct pybpf_layout *layout, int32_t position)
{
	if (layout->position_kind == PYBPF_POS_INSTR_PTR)
		return (int64_t)position - layout->code_adaptive;
	return layout->line_kind == PYBPF_LINES_PEP626 ? (int64_t)position * 2 : position;
}

static int32_t line_of(const struct pysym *s, const struct code *code, int32_t position)
{
	const struct pybpf_layout *layout = &code->process->layout;
	int line;

	if (s->mode == PYSYM_LINES_NONE)
		return -1;
	if (s->mode == PYSYM_LINES_FIRST || position == PYBPF_NO_POSITION || !code->lines)
		return code->first_line;
	line = pysym_line((enum pybpf_line_kind)layout->line_kind, code->lines, code->lines_size, code->first_line,
			  bytecode_offset(layout, position));
	return line < 0 ? code->first_line : line;
}

int pysym_resolve(struct pysym *s, uint32_t proc_id, const struct pybpf_frame *frame, struct pysym_frame *out)
{
	struct code *code = find_code(s, frame->code, frame->sig, proc_id);
	struct position_key key;
	struct position *position;

	if (!code) {
		char *file = NULL;

		int err = new_code(s, frame->code, frame->sig, proc_id, &code);

		if (err)
			return err;
		read_missing(s, code, &file);
		if (!code->name) {
			free(file);
			free(code->lines);
			free(code);
			return -ENOENT;
		}
		if (finish_code(s, code, file))
			return -ENOMEM;
	}
	memset(&key, 0, sizeof(key));
	key.code = code;
	key.position = s->mode == PYSYM_LINES_CURRENT ? frame->position : 0;
	HASH_FIND(hh, s->positions, &key, sizeof(key), position);
	if (!position) {
		position = calloc(1, sizeof(*position));
		if (!position)
			return -ENOMEM;
		position->key = key;
		position->line = line_of(s, code, frame->position);
		position->cookie = UINT32_MAX;
		HASH_ADD(hh, s->positions, key, sizeof(position->key), position);
	}
	*out = (struct pysym_frame){
		.name = code->name,
		.file = code->file,
		.line = position->line,
		.hidden = code->hidden,
		.cookie = &position->cookie,
	};
	return 0;
}

const struct pysym_counters *pysym_counters(const struct pysym *s)
{
	return &s->counters;
}
