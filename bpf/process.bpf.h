/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The life of processes: who was there, forked, executed, ended. A child of a Python, and a process of a program that
 * is known to have its interpreter in its file, are ready without user space's help; it is told of each that runs
 * Python, or may.
 *
 * Fields of an entry of map procs change only by putting a whole new entry in its place, so that a sample on another
 * CPU sees one or the other.
 */
#ifndef PYBPF_PROCESS_BPF_H
#define PYBPF_PROCESS_BPF_H

#include "filter.bpf.h"

/* Every process is looked at, not only those that are in map procs already. */
const volatile bool cfg_all;
/* Children of a process are wanted as it is. */
const volatile bool cfg_follow;
/* User space decides of each Python whether it is wanted. */
const volatile bool cfg_hold;
/* pybpf itself, which is not among all. */
const volatile __u32 cfg_self;

/* A process found no room in map procs. */
bool procs_full;

/* Events that found no room in process_events: user space then goes through map procs. */
__u64 process_events_lost;

/*
 * Numbers for pybpf_proc.proc_id: each CPU counts on its own, for an atomic addition that returns a value is no
 * instruction of 5.10's; and each program on its own, for since 7.0 (a46023d5616e) one may be preempted by the other,
 * though not by itself (05b24ff9b2cf). They have 64 bits: of 32, what the CPUs leave for counting is used up within
 * days of --all.
 */
enum proc_id_row {
	PROC_IDS_FORKED,
	PROC_IDS_EXECED,
	PROC_IDS_ROWS
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROC_IDS_ROWS);
	__type(key, __u32);
	__type(value, __u64);
} proc_ids SEC(".maps");

/* A row of a CPU has the numbers of its own place modulo all rows, of which process_find has the last. */
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

/* Returns 0 when user space will hear of it. */
static __always_inline long tell(struct pybpf_process_event *event)
{
	long err = bpf_ringbuf_output(&process_events, event, sizeof(*event), BPF_RB_FORCE_WAKEUP);

	if (err)
		__sync_fetch_and_add(&process_events_lost, 1);
	return err;
}

/* Is user space to hear of a process in this state? Of those that it asked for by PID it hears all. */
static __always_inline bool worth_telling(const struct pybpf_proc *proc)
{
	return !cfg_all || proc->state == PYBPF_PROC_UNDECIDED || proc->state == PYBPF_PROC_READY;
}

static __always_inline long put_process(__u32 tgid, const struct pybpf_proc *proc, __u64 how)
{
	long err = bpf_map_update_elem(&procs, &tgid, proc, how);

	if (err == -E2BIG)
		procs_full = true;
	return err;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid, tgid;
	struct pybpf_process_event event = {};
	struct pybpf_proc *known, proc = {};

	/* Neither threads nor the kernel's own. */
	if (child->pid != child->tgid || !child->mm)
		return 0;
	parent_tgid = compat_task_tgid(parent);
	tgid = compat_task_tgid(child);
	known = bpf_map_lookup_elem(&procs, &parent_tgid);
	if (!tgid || parent_tgid == cfg_self || (known ? !cfg_all && !cfg_follow : !cfg_all))
		return 0;
	/* An answer for the program before an exec may have replaced the parent's entry: then it holds for neither. */
	if (known && known->mm == (__u64)parent->mm) {
		proc = *known;
		event.other_id = known->proc_id;
	}
	if (!event.other_id || proc.state == PYBPF_PROC_CLAIMED)
		proc.state = PYBPF_PROC_UNDECIDED;
	proc.mm = (__u64)child->mm;
	proc.start = compat_start(child);
	proc.proc_id = new_proc_id(PROC_IDS_FORKED);
	proc.told = worth_telling(&proc);
	/* User space may have claimed a command's process that it has just forked. */
	if (put_process(tgid, &proc, BPF_ANY) || !proc.told)
		return 0;
	describe(&event, PYBPF_PROCESS_FORKED, child, tgid, &proc);
	event.wanted = filter_passes();
	tell(&event);
	return 0;
}

/* The key of the program that mm runs. */
static __always_inline void file_key(struct pybpf_file_key *key, struct mm_struct *mm)
{
	struct inode *inode = BPF_CORE_READ(mm, exe_file, f_inode);

	key->inode = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->ctime = compat_ctime(inode);
	key->pad = 0;
}

/* What a program is by its file. */
static __always_inline void begin_program(struct pybpf_proc *proc, const struct pybpf_file *file, struct mm_struct *mm)
{
	__u64 bias;

	if (!file || file->kind != PYBPF_FILE_PYTHON) {
		proc->state = file && file->kind == PYBPF_FILE_OTHER ? PYBPF_PROC_OTHER : PYBPF_PROC_UNDECIDED;
		return;
	}
	bias = BPF_CORE_READ(mm, start_code) - file->code_start;
	proc->runtimes[0].interp_head = file->interp_head + bias;
	proc->runtimes[0].tstate_current = file->tstate_current ? file->tstate_current + bias : 0;
	proc->runtimes[0].code_type = file->code_type ? file->code_type + bias : 0;
	proc->runtimes[0].layout = file->layout;
	proc->nr_runtimes = 1;
	proc->state = cfg_hold ? PYBPF_PROC_UNDECIDED : PYBPF_PROC_READY;
}

/* The process has become another program. Its mm is new by now, and that of the map's entry is another one. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	__u32 tgid = compat_task_tgid(task);
	struct pybpf_process_event event = {};
	struct pybpf_proc *known = bpf_map_lookup_elem(&procs, &tgid), proc = {};
	const struct pybpf_file *file;
	struct mm_struct *mm = task->mm;

	if (!tgid || (!known && !cfg_all))
		return 0;
	if (known)
		event.other_id = known->proc_id;
	file_key(&event.file, mm);
	file = bpf_map_lookup_elem(&files, &event.file);
	begin_program(&proc, file, mm);
	proc.mm = (__u64)mm;
	proc.start = compat_start(task);
	proc.proc_id = new_proc_id(PROC_IDS_EXECED);
	/* Who knows the program before is told of this one, whatever it is, and then of its end. */
	proc.told = worth_telling(&proc) || (known && known->told);
	if (put_process(tgid, &proc, BPF_ANY) || !proc.told)
		return 0;
	event.kind = file ? file->kind : 0;
	describe(&event, PYBPF_PROCESS_EXECED, task, tgid, &proc);
	event.wanted = filter_passes();
	tell(&event);
	return 0;
}

/* What all threads of a process have run, once it ends with this one: those before are summed up when they are freed.
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
	if (!proc.told)
		return 0;
	describe(&event, PYBPF_PROCESS_EXITED, task, tgid, &proc);
	event.wanted = filter_passes();
	event.cpu_ns = cpu_time(task);
	tell(&event);
	return 0;
}

/* Before the tracepoints tell: fills in the processes that there are, and writes an event for each. */
SEC("iter/task")
int process_find(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pybpf_process_event event = {};
	struct pybpf_proc *known, proc = {};
	__u32 tgid;

	/* A leader can have ended before its threads: then one of those stands for the process. */
	if (!task || !task->mm)
		return 0;
	tgid = compat_task_tgid(task);
	known = bpf_map_lookup_elem(&procs, &tgid);
	if (!tgid || (known ? known->state != PYBPF_PROC_CLAIMED : !cfg_all || tgid == cfg_self))
		return 0;
	proc.mm = (__u64)task->mm;
	proc.start = compat_start(task);
	proc.proc_id = found_proc_id();
	proc.state = PYBPF_PROC_UNDECIDED;
	proc.told = true;
	if (put_process(tgid, &proc, known ? BPF_EXIST : BPF_NOEXIST))
		return 0;
	file_key(&event.file, task->mm);
	describe(&event, PYBPF_PROCESS_FOUND, task, tgid, &proc);
	/* The filters look at the current thread, which is pybpf here: they decide at a sample. */
	event.wanted = !cfg_users && !cfg_cgroups;
	if (!bpf_seq_write(ctx->meta->seq, &event, sizeof(event)))
		return 0;
	/* There was no room: the kernel empties its buffer and comes here again. */
	proc.state = PYBPF_PROC_CLAIMED;
	bpf_map_update_elem(&procs, &tgid, &proc, BPF_EXIST);
	return 0;
}

#endif
