// SPDX-License-Identifier: Apache-2.0
/* Names frames: keeps each process's code objects, and reads those that the kernel did not announce. */
#include "symbols/pysym.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "helper/helper.h"
#include "symbols/console_script.h"
#include "symbols/function.h"
#include "symbols/words.h"

struct code {
	uint64_t addr;
	uint32_t sig;
	uint32_t pad;
	struct pysym_function *function;
};
#define CODE_KEY (sizeof(uint64_t) + sizeof(uint32_t))

/* A path as this process's code objects contain it: another process may have another file at that path. */
struct file {
	struct pysym_path *path;
	struct pysym_file seen;
};

struct process {
	uint64_t proc_id;
	pid_t pid;
	struct pybpf_layout layouts[PYBPF_MAX_RUNTIMES];
	struct intern codes; /* struct code */
	struct intern files; /* struct file */
};

struct process_entry {
	uint64_t proc_id;
	struct process *process;
};

struct pysym {
	bool full_filenames;
	pysym_look *look;
	struct intern processes; /* struct process_entry */
	struct process *last;    /* the last one looked up: frames come by stacks */
	struct pysym_functions functions;
	struct pysym_counters counters;
	bool is_limited;
	uint64_t left_ns; /* of the time to read code objects in, if that is limited */
};

struct pysym *pysym_new(enum pysym_line_mode mode, bool full_filenames)
{
	struct pysym *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pysym_functions_init(&s->functions, mode);
	intern_init(&s->processes, sizeof(struct process_entry), sizeof(uint64_t));
	s->full_filenames = full_filenames;
	s->look = pysym_look_at_path;
	return s;
}

void pysym_read_for(struct pysym *s, uint64_t time_ns)
{
	s->is_limited = true;
	s->left_ns = time_ns;
}

void pysym_look_at_paths_by(struct pysym *s, pysym_look *look)
{
	s->look = look;
}

static struct process *process_at(const struct pysym *s, uint32_t index)
{
	return ((struct process_entry *)intern_item(&s->processes, index))->process;
}

static struct process *find_process(const struct pysym *s, uint64_t proc_id)
{
	uint32_t i;

	if (s->last && s->last->proc_id == proc_id)
		return s->last;
	i = intern_find(&s->processes, &proc_id);
	return i == INTERN_NONE ? NULL : process_at(s, i);
}

static void forget_codes(struct pysym *s, struct process *process)
{
	for (uint32_t i = 0; i < process->codes.count; i++)
		pysym_function_drop(&s->functions, ((struct code *)intern_item(&process->codes, i))->function);
	for (uint32_t i = 0; i < process->files.count; i++)
		pysym_path_drop(&s->functions, ((struct file *)intern_item(&process->files, i))->path);
	intern_free(&process->codes);
	intern_free(&process->files);
}

static void free_process(struct pysym *s, struct process *process)
{
	forget_codes(s, process);
	if (s->last == process)
		s->last = NULL;
	intern_remove(&s->processes, intern_find(&s->processes, &process->proc_id));
	free(process);
}

void pysym_free(struct pysym *s)
{
	if (!s)
		return;
	while (s->processes.count)
		free_process(s, process_at(s, s->processes.count - 1));
	intern_free(&s->processes);
	pysym_functions_free(&s->functions);
	free(s);
}

int pysym_add_process(struct pysym *s, uint64_t proc_id, pid_t pid, const struct pybpf_layout *layout)
{
	struct process *process;
	bool fresh;

	if (find_process(s, proc_id))
		return 0;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->proc_id = proc_id;
	process->pid = pid;
	process->layouts[0] = *layout;
	intern_init(&process->codes, sizeof(struct code), CODE_KEY);
	intern_init(&process->files, sizeof(struct file), sizeof(struct pysym_path *));
	if (intern_add(&s->processes, &(struct process_entry){proc_id, process}, &fresh) == INTERN_NONE) {
		free(process);
		return -ENOMEM;
	}
	return 0;
}

void pysym_add_runtime(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_layout *layout)
{
	struct process *process = find_process(s, proc_id);

	if (process)
		process->layouts[runtime] = *layout;
}

bool pysym_has_process(const struct pysym *s, uint64_t proc_id)
{
	return find_process(s, proc_id) != NULL;
}

const struct pybpf_layout *pysym_layout(const struct pysym *s, uint64_t proc_id, uint32_t runtime)
{
	const struct process *process = find_process(s, proc_id);

	return process ? &process->layouts[runtime & (PYBPF_MAX_RUNTIMES - 1)] : NULL;
}

void pysym_remove_process(struct pysym *s, uint64_t proc_id)
{
	struct process *process = find_process(s, proc_id);

	if (process)
		free_process(s, process);
}

void pysym_forget_codes(struct pysym *s)
{
	for (uint32_t i = 0; i < s->processes.count; i++)
		forget_codes(s, process_at(s, i));
}

void pysym_each_code(const struct pysym *s, uint64_t proc_id, void (*visit)(void *arg, uint64_t code, uint32_t sig),
		     void *arg)
{
	const struct process *process = find_process(s, proc_id);

	for (uint32_t i = 0; process && i < process->codes.count; i++) {
		const struct code *code = intern_item(&process->codes, i);

		visit(arg, code->addr, code->sig);
	}
}

static uint64_t used_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)(helper_cpu_s() * 1e9);
}

static bool may_read(const struct pysym *s)
{
	return !s->is_limited || s->left_ns;
}

/* Takes what was used since then from the time that is left. */
static void charge(struct pysym *s, uint64_t begin_ns)
{
	uint64_t took_ns = used_ns() - begin_ns;

	s->left_ns -= took_ns < s->left_ns ? took_ns : s->left_ns;
}

/*
 * Returns what is known of a path. The directories of a process that has ended cannot be looked at any more: the result
 * for the same path in another process is used then.
 */
static struct pysym_file look_at(struct pysym *s, const struct process *process, struct pysym_path *path)
{
	uint64_t begin_ns = used_ns();
	struct pysym_file found;

	if (s->full_filenames && !console_script_may_be(path->text))
		return (struct pysym_file){0};
	if (may_read(s)) {
		if (!s->look(process->pid, path->text, &found)) {
			path->last = found;
			path->looked_at = true;
		}
		charge(s, begin_ns);
	}
	found = path->last;
	if (s->full_filenames)
		found.shown = 0;
	else if (!path->looked_at)
		found.shown = (uint32_t)(pysym_short_path(path->text, NULL) - path->text);
	return found;
}

/* Returns the process's file of that path, analysed once; NULL when memory is exhausted. Valid until the next call. */
static const struct file *file_of(struct pysym *s, struct process *process, const char *text)
{
	struct file file = {.path = pysym_path_take(&s->functions, text)};
	uint32_t i;
	bool fresh = false;

	if (!file.path)
		return NULL;
	i = intern_find(&process->files, &file);
	if (i == INTERN_NONE) {
		file.seen = look_at(s, process, file.path);
		i = intern_add(&process->files, &file, &fresh);
	}
	/* A process holds one reference to each of its paths. */
	if (!fresh)
		pysym_path_drop(&s->functions, file.path);
	return i == INTERN_NONE ? NULL : intern_item(&process->files, i);
}

/* Returns whether columns are wanted, and the line table that was read has none: before 3.11, for one. */
static bool lacks_columns(const struct pysym *s, const struct pybpf_layout *layout,
			  const struct pysym_code_content *content)
{
	return s->functions.mode == PYSYM_EXPRESSIONS && content->lines &&
	       (layout->line_kind != PYBPF_LINES_PEP657 ||
		!pysym_has_columns(content->lines, content->lines_size, content->first_line));
}

/* Enters a code object whose content will not get more complete. Returns it, or NULL when memory is exhausted. */
static const struct code *enter_code(struct pysym *s, struct process *process, const struct pybpf_layout *layout,
				     struct code code, const struct pysym_code_content *content)
{
	const struct file *file = file_of(s, process, content->file ? content->file : "");
	bool fresh = false;
	uint32_t i;

	if (!file)
		return NULL;
	code.function = pysym_function_take(&s->functions, content, layout, file->path, &file->seen);
	if (!code.function)
		return NULL;
	i = intern_add(&process->codes, &code, &fresh);
	if (i == INTERN_NONE) {
		pysym_function_drop(&s->functions, code.function);
		return NULL;
	}
	s->counters.codes++;
	s->counters.unnamed += !content->name;
	s->counters.no_lines += !content->lines;
	s->counters.no_columns += lacks_columns(s, layout, content);
	return intern_item(&process->codes, i);
}

static void read_missing(struct pysym *s, const struct process *process, const struct pybpf_layout *layout,
			 const struct code *code, struct pysym_code_content *content)
{
	uint64_t begin_ns = used_ns();

	if (!may_read(s))
		return;
	pysym_code_content_read(content, layout, process->pid, code->addr, code->sig, pysym_lines_room(&s->functions));
	charge(s, begin_ns);
}

/* read: what the record lacks is read from the process. */
static int add_code(struct pysym *s, const struct pybpf_code_event *event, size_t size, bool read)
{
	const struct pybpf_layout *layout;
	struct pysym_code_content content;
	struct process *process;
	struct code code;
	int err = 0;

	if (size < sizeof(*event) || event->event.runtime >= PYBPF_MAX_RUNTIMES)
		return -EBADMSG;
	process = find_process(s, event->proc_id);
	if (!process)
		return -ENOENT;
	s->last = process;
	layout = &process->layouts[event->event.runtime];
	code = (struct code){.addr = event->code, .sig = event->sig};
	if (intern_find(&process->codes, &code) != INTERN_NONE)
		return 0;
	err = pysym_code_content_copy(&content, layout, event, size, pysym_lines_room(&s->functions));
	if (err)
		return err;
	if (read && (!content.name || !content.file || !content.lines))
		read_missing(s, process, layout, &code, &content);
	if (!enter_code(s, process, layout, code, &content))
		err = -ENOMEM;
	pysym_code_content_free(&content);
	return err;
}

int pysym_add_code(struct pysym *s, const struct pybpf_code_event *event, size_t size)
{
	return add_code(s, event, size, true);
}

int pysym_add_read_code(struct pysym *s, const struct pybpf_code_event *event, size_t size)
{
	return add_code(s, event, size, false);
}

/* Finds the code object, or reads it from the process. Returns 0, -ENOENT or -ENOMEM. */
static int find_code(struct pysym *s, struct process *process, const struct pybpf_layout *layout,
		     const struct pybpf_frame *frame, const struct code **out)
{
	struct code code = {.addr = frame->code, .sig = frame->sig};
	uint32_t i = intern_find(&process->codes, &code);
	struct pysym_code_content content = {0};
	int err = 0;

	if (i != INTERN_NONE) {
		*out = intern_item(&process->codes, i);
		return 0;
	}
	read_missing(s, process, layout, &code, &content);
	if (!content.name) {
		err = -ENOENT;
	} else {
		*out = enter_code(s, process, layout, code, &content);
		err = *out ? 0 : -ENOMEM;
	}
	pysym_code_content_free(&content);
	return err;
}

int pysym_resolve(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_frame *frame,
		  struct pysym_frame *out)
{
	struct process *process = find_process(s, proc_id);
	struct pysym_position *position;
	const struct code *code;
	int err;

	if (!process || runtime >= PYBPF_MAX_RUNTIMES)
		return -ENOENT;
	s->last = process;
	err = find_code(s, process, &process->layouts[runtime], frame, &code);
	if (err)
		return err;
	position = pysym_function_at(&s->functions, code->function, frame->position);
	if (!position)
		return -ENOMEM;
	*out = (struct pysym_frame){
		.name = pysym_function_name(code->function),
		.file = pysym_function_file(code->function),
		.path = code->function->key.path->text,
		.line = position->line,
		.first_line = code->function->key.first_line,
		.span = position->span,
		.console_script = code->function->key.file.console_script,
		.hidden = code->function->key.hidden,
		.cookie = &position->cookie,
	};
	return 0;
}

char *pysym_read_words(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_frame *frame,
		       size_t *size)
{
	struct process *process = find_process(s, proc_id);
	uint64_t begin_ns = used_ns();
	struct walk_memory memory;
	char *words;

	if (!process || !may_read(s))
		return NULL;
	walk_process_memory(&memory, &process->pid);
	words = pysym_words_read(&memory, &process->layouts[runtime & (PYBPF_MAX_RUNTIMES - 1)], frame->code,
				 frame->sig, size);
	charge(s, begin_ns);
	return words;
}

const struct pysym_counters *pysym_get_counters(const struct pysym *s)
{
	return &s->counters;
}
