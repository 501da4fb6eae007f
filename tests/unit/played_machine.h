// SPDX-License-Identifier: Apache-2.0
/*
 * A machine that is played: its processes, its kernel as bpf/process.bpf.h has it, the helper that looks at processes,
 * and the clock. Tests of the room processes/ link this in place of kernel/, discovery/ask, symbols/ and /proc. What a
 * process is in truth, the test says by what it has it do; assert_truth() compares what the kernel was told with that.
 */
#ifndef PLAYED_MACHINE_H
#define PLAYED_MACHINE_H

#include "played_helper.h"
#include "played_kernel.h"

/* PIDs of a test's processes. */
#define FIRST  (FIRST_PID + 0)
#define SECOND (FIRST_PID + 1)
#define THIRD  (FIRST_PID + 2)

/* What processes do. */

static inline void load(struct machine_process *process, const struct python *python, uint64_t inode)
{
	struct kernel *k = &machine.kernel;
	struct loaded *loaded = &process->loaded[process->nr_loaded++];

	assert_in_range(process->nr_loaded, 1, sizeof(process->loaded) / sizeof(*process->loaded));
	*loaded = (struct loaded){
		.python = python,
		.inode = inode,
		.start = process->mm + process->nr_loaded * 0x1000000,
	};
	if (!k->attached)
		return;
	if (k->deaf) {
		k->losses.mappings++;
		return;
	}
	k->mappings[k->mappings_tail++ % RING_ROOM] = (struct kernel_mapping){
		.pid = process->pid,
		.start = loaded->start,
		.size = FILE_SIZE,
		.file = {.minor = 1, .inode = inode},
	};
}

/* The process maps the library. */
static inline void map_python(pid_t pid, const struct python *python)
{
	load(process_of(pid), python, python->inode);
}

static inline void map_other(pid_t pid, uint64_t inode)
{
	load(process_of(pid), NULL, inode);
}

/* The process's Python creates its interpreters. */
static inline void bring_up(pid_t pid)
{
	struct machine_process *process = process_of(pid);

	for (size_t i = 0; i < process->nr_loaded; i++)
		process->loaded[i].up = process->loaded[i].python;
}

static inline void become(struct machine_process *process, const struct program *program)
{
	process->program = program;
	process->early_copy = false;
	process->mm = ++machine.last_mm << 32;
	process->nr_loaded = 0;
	if (program->python)
		load(process, program->python, program->inode);
}

/* A process that the kernel side does not know. */
static inline void start_unseen(pid_t pid, const struct program *program)
{
	struct machine_process *process = process_of(pid);

	assert_false(process->alive);
	*process = (struct machine_process){.alive = true, .pid = pid};
	process->start = (uint64_t)(machine.now * TICKS);
	become(process, program);
}

static inline void fork_process(pid_t parent_pid, pid_t child)
{
	struct kernel *k = &machine.kernel;
	const struct machine_process *parent = process_of(parent_pid);
	struct machine_process *process = process_of(child);
	struct pybpf_process_event event = {.what = PYBPF_PROCESS_FORKED};

	assert_true(parent->alive && !process->alive);
	*process = *parent;
	process->pid = child;
	process->parent = parent_pid;
	process->start = (uint64_t)(machine.now * TICKS);
	process->mm = ++machine.last_mm << 32;
	process->in_kernel = false;
	if (!k->attached || (parent->in_kernel ? !k->all && !k->follow : !k->all))
		return;
	process->in_kernel = true;
	process->entry = (struct pybpf_proc){.state = PYBPF_PROC_UNDECIDED};
	if (parent->in_kernel && parent->entry.mm == parent->mm) {
		process->entry = parent->entry;
		event.other_id = parent->entry.proc_id;
	}
	process->early_copy |= process->entry.state == PYBPF_PROC_OTHER && process->nr_loaded;
	process->entry.mm = process->mm;
	process->entry.start = process->start;
	process->entry.proc_id = ++k->last_id;
	process->entry.reported = worth_telling(&process->entry);
	if (process->entry.reported)
		tell(event, process);
}

static inline void exec_program(pid_t pid, const struct program *program)
{
	struct kernel *k = &machine.kernel;
	struct machine_process *process = process_of(pid);
	struct pybpf_process_event event = {.what = PYBPF_PROCESS_EXECED, .file = key_of(program)};
	const struct pybpf_file *file = file_of(k, &event.file, false);
	struct pybpf_proc entry = {0};

	assert_true(process->alive);
	become(process, program);
	if (!k->attached || (!process->in_kernel && !k->all))
		return;
	if (process->in_kernel)
		event.other_id = process->entry.proc_id;
	entry.state = PYBPF_PROC_UNDECIDED;
	if (file && file->kind == PYBPF_PROGRAM_OTHER) {
		entry.state = PYBPF_PROC_OTHER;
	} else if (file && file->kind == PYBPF_PROGRAM_PYTHON) {
		uint64_t bias = process->loaded[0].start + CODE_LINKED - file->code_start;

		entry.runtimes[0] = (struct pybpf_runtime){
			.interp_head = file->interp_head + bias,
			.code_type = file->code_type + bias,
			.layout = file->layout,
		};
		entry.nr_runtimes = 1;
		entry.state = k->hold ? PYBPF_PROC_UNDECIDED : PYBPF_PROC_READY;
	}
	entry.mm = process->mm;
	entry.start = process->start;
	entry.proc_id = ++k->last_id;
	entry.reported = worth_telling(&entry) || (process->in_kernel && process->entry.reported);
	process->entry = entry;
	process->in_kernel = true;
	event.kind = file ? file->kind : 0;
	if (entry.reported)
		tell(event, process);
}

static inline void end_process(pid_t pid)
{
	struct machine_process *process = process_of(pid);
	struct pybpf_process_event event = {.what = PYBPF_PROCESS_EXITED, .cpu_ns = 1000000};

	assert_true(process->alive);
	process->alive = false;
	if (!machine.kernel.attached || !process->in_kernel)
		return;
	process->in_kernel = false;
	if (process->entry.reported)
		tell(event, process);
}

/* The run. */

static inline void keep_said(enum log_level level, const char *text)
{
	size_t len = strlen(machine.said);

	if (level <= LOG_WARN)
		snprintf(machine.said + len, sizeof(machine.said) - len, "%s\n", text);
}

static inline void power_on(void)
{
	memset(&machine, 0, sizeof(machine));
	machine.now = 1000;
	machine.kernel.events_room = RING_ROOM;
	machine.kernel.layouts_room = 16;
	machine.kernel.procs_room = NR_PIDS;
	log_set_sink(keep_said);
}

static inline struct processes *open_table(void)
{
	machine.kernel.all = machine.options.all;
	machine.kernel.follow = machine.options.follow;
	machine.kernel.hold = machine.options.names || machine.options.chosen;
	machine.table = processes_new(&machine.options, &machine.kernel, NULL);
	return machine.table;
}

/* Follows all processes from a second later on. */
static inline void follow_all(void)
{
	machine.now += 1;
	machine.options.all = machine.options.follow = true;
	assert_non_null(open_table());
	assert_int_equal(processes_follow(machine.table, NULL, 0), 0);
}

/* Follows one process and its children from a second later on. */
static inline void follow_pid(pid_t pid)
{
	const uint32_t pids[] = {(uint32_t)pid};

	machine.now += 1;
	machine.options.follow = true;
	assert_non_null(open_table());
	assert_int_equal(processes_follow(machine.table, pids, 1), 0);
}

static inline void power_off(void)
{
	machine.fail_at = 0;
	processes_free(machine.table);
	machine.table = NULL;
}

/*
 * A process whose entry says READY for what it is now (as the sampler checks by mm) has a Python at each address that
 * the kernel reads, of the version whose layout it uses.
 */
static inline void assert_truth(void)
{
	for (size_t i = 0; i < NR_PIDS; i++) {
		const struct machine_process *process = &machine.processes[i];
		const struct pybpf_proc *entry = &process->entry;

		if (!process->alive || !process->in_kernel || entry->state != PYBPF_PROC_READY ||
		    entry->mm != process->mm)
			continue;
		assert_true(entry->nr_runtimes);
		for (uint32_t r = 0; r < entry->nr_runtimes; r++) {
			const struct loaded *loaded = loaded_at(process->pid, entry->runtimes[r].interp_head, 0);

			if (entry->runtimes[r].refused)
				continue;
			assert_non_null(loaded);
			assert_int_equal(loaded->python->minor,
					 kernel_get_layout(&machine.kernel, entry->runtimes[r].layout)->minor);
		}
	}
}

/* One turn of the session's loop. */
static inline int take_turn(void)
{
	int err = processes_consume_events(machine.table);

	if (err)
		return err;
	processes_look_at_due(machine.table, machine.now);
	processes_label_young(machine.table, machine.now);
	assert_truth();
	return 0;
}

/* Runs the session's loop for that many seconds, in steps of 5 ms. */
static inline void run_for(double seconds)
{
	double until = machine.now + seconds;

	assert_int_equal(take_turn(), 0);
	while (machine.now < until) {
		machine.now += 0.005;
		assert_int_equal(take_turn(), 0);
	}
}

/* Returns the state of the process's entry in the kernel; 0: no entry. */
static inline uint32_t kernel_state(pid_t pid)
{
	const struct machine_process *process = process_of(pid);

	return process->in_kernel ? process->entry.state : 0;
}

static inline struct processes_record *record_of(pid_t pid)
{
	return processes_find_record(machine.table, process_of(pid)->entry.proc_id);
}

static inline struct processes_counts counts_now(void)
{
	struct processes_counts counts;

	processes_get_counts(machine.table, &counts);
	return counts;
}

/* The layout of the process's first Python that the kernel uses. */
static inline uint8_t sampled_minor(pid_t pid)
{
	const struct pybpf_proc *entry = &process_of(pid)->entry;

	assert_int_equal(kernel_state(pid), PYBPF_PROC_READY);
	return kernel_get_layout(&machine.kernel, entry->runtimes[0].layout)->minor;
}

/* A test's setup and teardown. */

static inline int turn_on(void **state)
{
	(void)state;
	power_on();
	return 0;
}

static inline int turn_off(void **state)
{
	(void)state;
	power_off();
	return 0;
}

#endif
