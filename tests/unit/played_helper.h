// SPDX-License-Identifier: Apache-2.0
/* The helper and /proc of a played machine: the answers to questions about processes. Part of played_machine.h. */
#ifndef PLAYED_HELPER_H
#define PLAYED_HELPER_H

#include "played_state.h"

static inline void fill_python(const struct machine_process *process, const struct loaded *loaded,
			       struct discovery_python *out)
{
	memset(out, 0, sizeof(*out));
	out->pid = process->pid;
	out->start_time = process->start;
	snprintf(out->comm, sizeof(out->comm), "%s", process->program->name);
	out->build.layout.major = 3;
	out->build.layout.minor = loaded->python->minor;
	snprintf(out->version, sizeof(out->version), "%s", loaded->python->version);
	snprintf(out->path, sizeof(out->path), "/lib/python%s", loaded->python->version);
	out->is_static = process->program->python == loaded->python;
	out->load_bias = loaded->start;
	out->interp_head_addr = loaded->start + HEAD_LINKED;
	out->code_type_addr = loaded->start + TYPE_LINKED;
	out->file_id = loaded->python->file_id;
	out->map = (struct procfs_map){.start = loaded->start, .end = loaded->start + FILE_SIZE, .path = ""};
	out->follows_file = !loaded->python->moves;
	out->code_start = CODE_LINKED;
}

enum discovery_result discovery_ask_runtimes(pid_t pid, uint64_t life, bool many, struct discovery_python *out,
					     size_t room, size_t *count, struct error *error)
{
	const struct machine_process *process = process_of(pid);
	enum discovery_result result = DISCOVERY_NOT_PYTHON;
	void (*happens)(void) = machine.while_looking;

	(void)many;
	*count = 0;
	memset(out, 0, room * sizeof(*out));
	error_clear(error);
	if (machine.now < machine.busy_until) {
		machine.subject = (struct helper_subject){pid, life};
		return DISCOVERY_PENDING;
	}
	machine.answered = false;
	machine.looks++;
	if (process->left_alone) {
		error_write(error, -EBUSY, "process %d is left alone", pid);
		return DISCOVERY_LATER;
	}
	if (!process->alive) {
		error_write(error, -ESRCH, "there is no process %d", pid);
		return DISCOVERY_GONE;
	}
	if (process->unmapped) {
		error_write(error, -EAGAIN, "process %d maps no executable file", pid);
		return DISCOVERY_UNMAPPED;
	}
	for (size_t i = 0; i < process->nr_loaded; i++) {
		if (!process->loaded[i].python)
			continue;
		if (process->why) {
			result = DISCOVERY_UNSUPPORTED;
			break;
		}
		result = DISCOVERY_OK;
		if (*count < room)
			fill_python(process, &process->loaded[i], &out[*count]);
		++*count;
	}
	if (process->why)
		error_write(error, process->why_err ?: -ENOTSUP, "%s", process->why);
	else if (result == DISCOVERY_NOT_PYTHON)
		error_write(error, -ENOENT, "no Python");
	machine.while_looking = NULL;
	if (happens)
		happens();
	return result;
}

/* What of the process is loaded there: at this head, or from this start on. */
static inline struct loaded *loaded_at(pid_t pid, uint64_t head, uint64_t start)
{
	struct machine_process *process = process_of(pid);

	for (size_t i = 0; process->alive && i < process->nr_loaded; i++) {
		struct loaded *loaded = &process->loaded[i];

		if (head ? loaded->python && head == loaded->start + HEAD_LINKED : start == loaded->start)
			return loaded;
	}
	return NULL;
}

int discovery_ask_validate(const struct discovery_python *python, struct error *error)
{
	const struct loaded *loaded = loaded_at(python->pid, python->interp_head_addr, 0);

	machine.validations++;
	error_clear(error);
	if (!process_of(python->pid)->alive)
		return -ESRCH;
	if (machine.no_answer)
		return -EIO;
	if (loaded && !loaded->contradicts)
		return loaded->up ? 0 : -EAGAIN;
	return error_set(error, -EINVAL, "the memory of process %d contradicts its layout", python->pid);
}

int discovery_ask_mapped_file(pid_t pid, uint64_t start, uint64_t end, enum discovery_mapped *what, uint64_t *id)
{
	const struct loaded *loaded = loaded_at(pid, 0, start);

	(void)end;
	if (!loaded)
		return -ENOENT;
	*what = loaded->python ? DISCOVERY_MAPPED_PYTHON : DISCOVERY_MAPPED_NOTHING;
	*id = loaded->python ? loaded->python->file_id : loaded->inode;
	return 0;
}

bool discovery_is_running(const struct discovery_python *python)
{
	const struct loaded *loaded = loaded_at(python->pid, python->interp_head_addr, 0);

	return loaded && loaded->up;
}

int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	const struct loaded *loaded = loaded_at(pid, addr, 0);
	uint64_t head = loaded && loaded->up ? 0x7f0000001000 : 0;

	if (!process_of(pid)->alive)
		return -ESRCH;
	if (!loaded || size != sizeof(head))
		return -EFAULT;
	memcpy(buf, &head, size);
	return 0;
}

int remote_read_parts(pid_t pid, const struct iovec *parts, size_t count, void *buf)
{
	(void)pid;
	(void)parts;
	(void)count;
	(void)buf;
	return -EFAULT;
}

/* Each container has a group of its own, and each process outside of them, unless the test says that all share one. */
int discovery_group_of(pid_t pid, uint64_t *id)
{
	*id = machine.one_group ? 1 : (uint64_t)pid << 48 ^ (uintptr_t)process_of(pid)->container;
	return process_of(pid)->alive ? 0 : -ESRCH;
}

int discovery_ask_container_of(pid_t pid, struct container *out)
{
	const struct machine_process *process = process_of(pid);

	machine.container_questions++;

	if (!process->alive)
		return -ESRCH;
	if (process->container_err)
		return process->container_err;
	if (!process->container)
		return -ENOENT;
	*out = (struct container){.id = ""};
	snprintf(out->runtime, sizeof(out->runtime), "%s", process->runtime ?: "docker");
	snprintf(out->id, sizeof(out->id), "%s", process->id ?: "");
	snprintf(out->name, sizeof(out->name), "%s", process->container);
	snprintf(out->image, sizeof(out->image), "%s", process->image ?: "");
	return 0;
}

int discovery_ask_cmdline(pid_t pid, char *buf, size_t size)
{
	const struct machine_process *process = process_of(pid);

	snprintf(buf, size, "%s", process->cmdline && !process->cmdline_err ? process->cmdline : "");
	return process->cmdline_err;
}

int discovery_ask_service(pid_t pid, struct discovery_service_own *own)
{
	const struct machine_process *process = process_of(pid);

	*own = (struct discovery_service_own){0};
	machine.service_questions++;
	if (process->service_err)
		return process->service_err;
	snprintf(own->otel, sizeof(own->otel), "%s", process->otel ?: "");
	snprintf(own->unit, sizeof(own->unit), "%s", process->unit ?: "");
	snprintf(own->version, sizeof(own->version), "%s", process->version ?: "");
	return 0;
}

bool discovery_filter_passes_names(const struct discovery_filter *filter, pid_t pid, const char *comm,
				   const struct container *container)
{
	(void)pid;
	if (container && filter->not_containers.count)
		return false;
	return !machine.unwanted || strcmp(comm, machine.unwanted) != 0;
}

int scan_read_process(pid_t pid, struct scan_process *out)
{
	const struct machine_process *process = process_of(pid);

	if (!process->alive)
		return -ESRCH;
	*out = (struct scan_process){.pid = pid, .inside = pid, .start_time = process->start};
	snprintf(out->comm, sizeof(out->comm), "%s", process->program->name);
	return 0;
}

/* All that have a parent are below. */
int scan_find_below(const uint32_t *pids, size_t count, uint32_t **below, size_t *below_count)
{
	(void)pids;
	(void)count;
	*below_count = 0;
	*below = calloc(NR_PIDS, sizeof(**below));
	if (!*below)
		return -ENOMEM;
	for (size_t i = 0; i < NR_PIDS; i++) {
		if (machine.processes[i].alive && machine.processes[i].parent)
			(*below)[(*below_count)++] = (uint32_t)machine.processes[i].pid;
	}
	return 0;
}

int procfs_read_stat(pid_t pid, struct procfs_stat *out)
{
	const struct machine_process *process = process_of(pid);

	if (!process->alive)
		return -ESRCH;
	*out = (struct procfs_stat){.start_time = process->start, .ppid = process->parent};
	snprintf(out->comm, sizeof(out->comm), "%s", process->program->name);
	return 0;
}

int procfs_read_status(pid_t pid, struct procfs_status *out)
{
	*out = (struct procfs_status){.uid = 1000, .inside = pid};
	return process_of(pid)->alive ? 0 : -ESRCH;
}

bool helper_has_answer(struct helper_subject *subject)
{
	*subject = machine.subject;
	return machine.answered;
}

void helper_discard(struct helper_subject subject)
{
	machine.discarded = subject;
	machine.answered = false;
}

bool helper_is_interrupted(void)
{
	return false;
}

double helper_user_cost_s(uid_t uid)
{
	(void)uid;
	return 0;
}

bool helper_any_user_cost(void)
{
	return false;
}

unsigned long helper_unanswered(void)
{
	return 0;
}

int pysym_add_process(struct pysym *s, uint64_t proc_id, pid_t pid, const struct pybpf_layout *layout)
{
	(void)s;
	(void)pid;
	machine.told_id = proc_id;
	machine.told_minor = layout->minor;
	return 0;
}

void pysym_add_runtime(struct pysym *s, uint64_t proc_id, uint32_t runtime, const struct pybpf_layout *layout)
{
	(void)s;
	(void)proc_id;
	(void)layout;
	assert_in_range(runtime, 0, PYBPF_MAX_RUNTIMES - 1);
}

#endif
