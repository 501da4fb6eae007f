/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Events of processes: found at the start, forked, executed, ended. A child of a Python process, and a process whose
 * program is known to contain its interpreter, are ready without user space's help; user space gets an event of each
 * process that runs Python, or may.
 *
 * An entry of map procs is only ever replaced as a whole, so that a sample on another CPU sees the old or the new
 * entry.
 */
#ifndef PYBPF_PROCESS_BPF_H
#define PYBPF_PROCESS_BPF_H

#include "filter.bpf.h"

/* Every process is followed, not only those that are in map procs already. */
const volatile bool cfg_all;
/* Children of a wanted process are wanted, too. */
const volatile bool cfg_follow;
/* User space decides whether each Python is wanted before it is sampled. */
const volatile bool cfg_hold;
/* PID of pybpf itself, which cfg_all does not include. */
const volatile __u32 cfg_self;

/* Map procs had no room for a process, or the kernel no memory for its entry. */
bool procs_full;

/*
 * Events for which process_events had no room, of processes that the filters let pass and of others: user space then
 * goes through map procs.
 */
__u64 process_events_lost, other_events_lost;

/*
 * Numbers for pybpf_proc.proc_id. Each CPU has its own counter, as Linux 5.10 has no atomic addition that returns a
 * value; and each program has its own, as since 7.0 (a46023d5616e) one may be preempted by the other, though not by
 * itself (05b24ff9b2cf). They have 64 bits: of 32 bits, the part that the CPU's number leaves for the count would be
 * used up within days of --all.
 */
enum proc_id_row {
	PROC_IDS_FORKED,
	PROC_IDS_EXECED,
	PROC_IDS_ROWS
};

/* An entry of map procs and its event while they are made: together they are larger than a program's stack. */
struct making {
	struct pybpf_proc proc;
	struct pybpf_process_event event;
};

/* By program, for the same reason as proc_ids. */
enum making_row {
	MAKING_FORKED,
	MAKING_EXECED,
	MAKING_FOUND,
	MAKING_ROWS
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAKING_ROWS);
	__type(key, __u32);
	__type(value, struct making);
} makings SEC(".maps");

/* Returns the program's own room on this CPU, all zero; NULL never comes to pass, but the verifier asks. */
static __always_inline struct making *begin_making(__u32 row)
{
	struct making *making = bpf_map_lookup_elem(&makings, &row);

	if (making)
		__builtin_memset(making, 0, sizeof(*making));
	return making;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROC_IDS_ROWS);
	__type(key, __u32);
	__type(value, __u64);
} proc_ids SEC(".maps");

/* Each row of each CPU gives numbers that equal its place modulo the number of places; process_find has the last place.
 */
__u64 found_ids;

static __always_inline __u64 new_proc_id(__u32 row)
{
	__u64 *count = bpf_map_lookup_elem(&proc_ids, &row);
	__u32 place = row * cfg_cpus + bpf_get_smp_processor_id();

	return count ? ++*count * (PROC_IDS_ROWS * cfg_cpus + 1) + place : 0;
}

static __always_inline __u64 found_proc_id(void)
{
	return ++found_ids * (PROC_IDS_ROWS * cfg_cpus + 1) + PROC_IDS_ROWS * cfg_cpus;
}

static __always_inline void describe(struct pybpf_process_event *event, enum pybpf_process_what what,
				     struct task_struct *task, __u32 tgid, const struct pybpf_proc *proc)
{
	event->what = what;
	event->tgid = tgid;
	event->inner_tgid = compat_inner_tgid(task);
	event->proc_id = proc->proc_id;
	event->state = proc->state;
	event->mm = proc->mm;
	event->start = proc->start;
	event->layout = proc->runtimes[0].layout;
	BPF_CORE_READ_INTO(&event->comm, task, group_leader, comm);
}

/* Sends the event to user space. Returns 0, or negative errno after counting it as lost. */
static __always_inline long tell(struct pybpf_process_event *event)
{
	long err = bpf_ringbuf_output(&process_events, event, sizeof(*event), BPF_RB_FORCE_WAKEUP);

	if (err)
		__sync_fetch_and_add(event->wanted ? &process_events_lost : &other_events_lost, 1);
	return err;
}

/* Returns whether user space gets events of a process in this state; it gets all of those asked for by PID. */
static __always_inline bool worth_telling(const struct pybpf_proc *proc)
{
	return !cfg_all || proc->state == PYBPF_PROC_UNDECIDED || proc->state == PYBPF_PROC_READY;
}

static __always_inline long put_process(__u32 tgid, const struct pybpf_proc *proc, __u64 how)
{
	long err = bpf_map_update_elem(&procs, &tgid, proc, how);

	if (err == -E2BIG || err == -ENOMEM)
		procs_full = true;
	return err;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct mm_struct *mm = compat_task_mm(child);
	__u32 parent_tgid, tgid;
	struct pybpf_proc *known;
	struct making *making;

	/* Ignores new threads and kernel threads. */
	if (child->pid != child->tgid || !mm)
		return 0;
	parent_tgid = compat_task_tgid(parent);
	tgid = compat_task_tgid(child);
	known = bpf_map_lookup_elem(&procs, &parent_tgid);
	if (!tgid || parent_tgid == cfg_self || (known ? !cfg_all && !cfg_follow : !cfg_all))
		return 0;
	making = begin_making(MAKING_FORKED);
	if (!making)
		return 0;
	/* An answer for the program before an exec may have replaced the parent's entry, which is then not valid. */
	if (known && known->mm == (__u64)compat_task_mm(parent)) {
		making->proc = *known;
		making->event.other_id = known->proc_id;
	}
	if (!making->event.other_id || making->proc.state == PYBPF_PROC_CLAIMED)
		making->proc.state = PYBPF_PROC_UNDECIDED;
	making->proc.mm = (__u64)mm;
	making->proc.start = compat_start(child);
	making->proc.proc_id = new_proc_id(PROC_IDS_FORKED);
	making->proc.reported = worth_telling(&making->proc);
	/* BPF_ANY, as user space may already have claimed the process of a command that it has just forked. */
	if (put_process(tgid, &making->proc, BPF_ANY) || !making->proc.reported)
		return 0;
	describe(&making->event, PYBPF_PROCESS_FORKED, child, tgid, &making->proc);
	making->event.wanted = filter_passes();
	tell(&making->event);
	return 0;
}

/* Fills *key with the file of the program that mm runs. */
static __always_inline void file_key(struct pybpf_file_key *key, struct mm_struct *mm)
{
	struct inode *inode = BPF_CORE_READ(mm, exe_file, f_inode);

	key->inode = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->ctime = compat_ctime(inode);
	key->pad = 0;
}

/* Sets the state of a program, and the addresses of its Python, from what is known about its file. */
static __always_inline void begin_program(struct pybpf_proc *proc, const struct pybpf_file *file, struct mm_struct *mm)
{
	__u64 bias;

	if (!file || file->kind != PYBPF_PROGRAM_PYTHON) {
		proc->state = file && file->kind == PYBPF_PROGRAM_OTHER ? PYBPF_PROC_OTHER : PYBPF_PROC_UNDECIDED;
		return;
	}
	bias = BPF_CORE_READ(mm, start_code) - file->code_start;
	proc->runtimes[0].interp_head = file->interp_head + bias;
	proc->runtimes[0].tstate_current = file->tstate_current ? file->tstate_current + bias : 0;
	proc->runtimes[0].code_type = file->code_type ? file->code_type + bias : 0;
	proc->runtimes[0].layout = file->layout;
	proc->runtimes[0].thread_bias = file->thread_bias;
	proc->runtimes[0].code_before = file->code_before;
	proc->runtimes[0].code_size = file->code_size;
	proc->runtimes[0].asyncio = file->asyncio;
	proc->nr_runtimes = 1;
	proc->state = cfg_hold ? PYBPF_PROC_UNDECIDED : PYBPF_PROC_READY;
}

/* The process has executed another program: task->mm is already the new one, while the map's entry has the old one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	__u32 tgid = compat_task_tgid(task);
	struct pybpf_proc *known = bpf_map_lookup_elem(&procs, &tgid);
	const struct pybpf_file *file;
	struct mm_struct *mm = compat_task_mm(task);
	struct making *making;

	if (!tgid || (!known && !cfg_all))
		return 0;
	making = begin_making(MAKING_EXECED);
	if (!making)
		return 0;
	if (known)
		making->event.other_id = known->proc_id;
	file_key(&making->event.file, mm);
	file = bpf_map_lookup_elem(&files, &making->event.file);
	begin_program(&making->proc, file, mm);
	making->proc.mm = (__u64)mm;
	making->proc.start = compat_start(task);
	making->proc.proc_id = new_proc_id(PROC_IDS_EXECED);
	if (COMPAT_THREAD_BIAS) {
		making->proc.stale_pointer = compat_thread_pointer(task);
		making->proc.stale_switches = compat_task_switches(task);
	}
	/* If user space knows the program before the exec, it gets the events of this one, in any state, and of its
	 * end. */
	making->proc.reported = worth_telling(&making->proc) || (known && known->reported);
	if (put_process(tgid, &making->proc, BPF_ANY) || !making->proc.reported)
		return 0;
	making->event.kind = file ? file->kind : 0;
	describe(&making->event, PYBPF_PROCESS_EXECED, task, tgid, &making->proc);
	making->event.wanted = filter_passes();
	tell(&making->event);
	return 0;
}

/*
 * Returns the CPU time of all threads of a process whose last thread this is, in ns: the kernel adds that of earlier
 * threads to sum_sched_runtime when they are freed.
 */
static __always_inline __u64 cpu_time(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 ns = BPF_CORE_READ(task, signal, sum_sched_runtime) + BPF_CORE_READ(task, se.sum_exec_runtime);

	return leader == task ? ns : ns + BPF_CORE_READ(leader, se.sum_exec_runtime);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct pybpf_process_event event = {};
	struct pybpf_proc *known, proc;
	__u32 tgid;

	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	tgid = compat_task_tgid(task);
	known = bpf_map_lookup_elem(&procs, &tgid);
	if (!known)
		return 0;
	proc = *known;
	bpf_map_delete_elem(&procs, &tgid);
	if (!proc.reported)
		return 0;
	describe(&event, PYBPF_PROCESS_EXITED, task, tgid, &proc);
	event.wanted = filter_passes();
	event.cpu_ns = cpu_time(task);
	tell(&event);
	return 0;
}

/* Adds the processes that exist already to map procs, and writes an event for each. */
SEC("iter/task")
int process_find(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mm_struct *mm = task ? compat_task_mm(task) : NULL;
	struct pybpf_proc *known;
	struct making *making;
	__u32 tgid;

	/* A leader can have ended before its threads: then another thread represents the process. */
	if (!mm)
		return 0;
	tgid = compat_task_tgid(task);
	known = bpf_map_lookup_elem(&procs, &tgid);
	if (!tgid || (known ? known->state != PYBPF_PROC_CLAIMED : !cfg_all || tgid == cfg_self))
		return 0;
	making = begin_making(MAKING_FOUND);
	if (!making)
		return 0;
	making->proc.mm = (__u64)mm;
	making->proc.start = compat_start(task);
	making->proc.proc_id = found_proc_id();
	making->proc.state = PYBPF_PROC_UNDECIDED;
	making->proc.reported = true;
	if (put_process(tgid, &making->proc, known ? BPF_EXIST : BPF_NOEXIST))
		return 0;
	file_key(&making->event.file, mm);
	describe(&making->event, PYBPF_PROCESS_FOUND, task, tgid, &making->proc);
	/* The filters check the current thread, which is pybpf here: they are applied to samples later. */
	making->event.wanted = !cfg_users && !cfg_cgroups;
	if (!bpf_seq_write(ctx->meta->seq, &making->event, sizeof(making->event)))
		return 0;
	/* The buffer is full: the kernel empties it and calls the program for this task once more. */
	making->proc.state = PYBPF_PROC_CLAIMED;
	bpf_map_update_elem(&procs, &tgid, &making->proc, BPF_EXIST);
	return 0;
}

#endif
