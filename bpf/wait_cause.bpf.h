/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread that goes to sleep waits for: from its state, its system call, and the descriptor of that call. */
#ifndef PYBPF_WAIT_CAUSE_BPF_H
#define PYBPF_WAIT_CAUSE_BPF_H

#include "maps.bpf.h"

/* A thread that goes to sleep. */
struct waiting {
	struct task_struct *task;
	bool current; /* it is the current thread, whose memory can be read */
	/* What describe_wait finds: addresses of the program, or 0. */
	__u64 futex;
	__u64 polled; /* of a struct pollfd that could not be read */
};
#define WAIT_THREAD struct waiting
#include "wait_call.h"

/* include/linux/sched.h; the same since 4.14. */
#define TASK_STOPPED 0x0004
#define TASK_TRACED  0x0008
#define TASK_DEAD    0x0080

/* include/uapi/linux/stat.h */
#define S_IFMT   0170000
#define S_IFSOCK 0140000
#define S_IFREG  0100000
#define S_IFBLK  0060000
#define S_IFDIR  0040000
#define S_IFCHR  0020000
#define S_IFIFO  0010000

/* include/linux/socket.h */
#define AF_UNIX  1
#define AF_INET  2
#define AF_INET6 10

/* include/linux/net.h */
#define SOCK_DGRAM 2
/* include/net/tcp_states.h; unix sockets use it as well. */
#define TCP_LISTEN 10

/* include/uapi/linux/un.h: sun_path comes after sun_family. */
#define SUN_PATH 2

/* What each system call does (enum pybpf_call), by its number; filled by user space. */
const volatile __u8 cfg_calls[PYBPF_MAX_SYSCALL + 1];

static __always_inline void copy_name(struct pybpf_wait *wait, const char *name, __u32 size)
{
	if (size < sizeof(wait->text)) {
		bpf_probe_read_kernel(wait->text, size, name);
		return;
	}
	wait->flags |= PYBPF_WAIT_CUT;
	wait->number = size;
	bpf_probe_read_kernel(wait->text, PYBPF_WAIT_HEAD, name);
	bpf_probe_read_kernel(wait->text + PYBPF_WAIT_HEAD, PYBPF_WAIT_TAIL, name + size - PYBPF_WAIT_TAIL);
}

/* The name of an abstract socket begins with NUL, and has none at its end; nothing behind a name belongs to it. */
static __always_inline void copy_unix_name(struct pybpf_wait *wait, struct unix_address *name)
{
	const char *text = (const char *)&name->name + SUN_PATH;
	__u32 size = (__u32)BPF_CORE_READ(name, len) - SUN_PATH;
	char first = '\0', last = '\0';

	if (!size)
		return;
	bpf_probe_read_kernel(&first, sizeof(first), text);
	bpf_probe_read_kernel(&last, sizeof(last), text + size - 1);
	if (first) {
		copy_name(wait, text, size - 1);
	} else if (last || size < sizeof(wait->text)) {
		copy_name(wait, text, size);
	} else {
		/* The program has padded it. */
		bpf_probe_read_kernel(wait->text, sizeof(wait->text) - 1, text);
		wait->flags |= wait->text[sizeof(wait->text) - 2] ? PYBPF_WAIT_CUT : 0;
	}
}

/* The first port that the kernel gives to clients, unless net.ipv4.ip_local_port_range says another one. */
#define FIRST_CLIENT_PORT 32768

/*
 * Returns whether a client has connected to the socket: by the ports of both, as nothing in an accepted socket says so.
 */
static __always_inline bool is_accepted(struct sock *sk)
{
	__u32 own = BPF_CORE_READ(sk, __sk_common.skc_num), peer = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));

	return own && own < FIRST_CLIENT_PORT && peer >= FIRST_CLIENT_PORT;
}

/*
 * Describes a socket: whom it talks to or, while it listens, where. Clients of a server are not distinguished: there
 * would be a name for each.
 */
static __always_inline void describe_socket(struct pybpf_wait *wait, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	wait->state = PYBPF_STATE_NETWORK;
	if (BPF_CORE_READ(socket, type) == SOCK_DGRAM)
		wait->flags |= PYBPF_WAIT_DATAGRAM;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN ||
	    (wait->flags & PYBPF_WAIT_DATAGRAM && (family == AF_INET || family == AF_INET6) &&
	     !BPF_CORE_READ(sk, __sk_common.skc_dport)))
		wait->flags |= PYBPF_WAIT_LISTENING;
	if ((family == AF_INET || family == AF_INET6) && !wait->flags && is_accepted(sk)) {
		wait->file = PYBPF_FILE_INET;
		wait->flags = PYBPF_WAIT_ACCEPTED;
		wait->number = BPF_CORE_READ(sk, __sk_common.skc_num);
		return;
	}
	if (family == AF_INET) {
		wait->file = PYBPF_FILE_INET;
		if (wait->flags & PYBPF_WAIT_LISTENING) {
			wait->number = BPF_CORE_READ(sk, __sk_common.skc_num);
			BPF_CORE_READ_INTO((__u32 *)wait->address, sk, __sk_common.skc_rcv_saddr);
			return;
		}
		wait->number = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		BPF_CORE_READ_INTO((__u32 *)wait->address, sk, __sk_common.skc_daddr);
	} else if (family == AF_INET6) {
		wait->file = PYBPF_FILE_INET6;
		if (wait->flags & PYBPF_WAIT_LISTENING) {
			wait->number = BPF_CORE_READ(sk, __sk_common.skc_num);
			BPF_CORE_READ_INTO(&wait->address, sk, __sk_common.skc_v6_rcv_saddr);
			return;
		}
		wait->number = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		BPF_CORE_READ_INTO(&wait->address, sk, __sk_common.skc_v6_daddr);
	} else if (family == AF_UNIX && bpf_core_type_exists(struct unix_sock)) {
		struct unix_sock *own = (void *)sk;
		struct unix_address *name = BPF_CORE_READ(own, addr);
		struct unix_sock *peer = (void *)BPF_CORE_READ(own, peer);

		wait->file = PYBPF_FILE_UNIX;
		if (!name && peer)
			name = BPF_CORE_READ(peer, addr);
		if (name)
			copy_unix_name(wait, name);
	} else {
		wait->file = PYBPF_FILE_SOCKET;
		wait->number = family;
	}
}

/* include/uapi/linux/magic.h, since 6.9 (cb12fd8e0dab) */
#define PID_FS_MAGIC 0x50494446
/* To 6.8 the name of an anonymous inode says it (pidfd_prepare(), kernel/fork.c). */
static const char pidfd_name[] = "[pidfd]";

/* Returns the process that a pidfd is for, or NULL for another descriptor. */
static __always_inline struct pid *pid_of_file(struct file *file)
{
	const unsigned char *name;
	char text[sizeof(pidfd_name)] = "";

	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) == PID_FS_MAGIC)
		return BPF_CORE_READ(file, f_inode, i_private);
	if (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT)
		return NULL;
	name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(text, sizeof(text), name);
	return bpf_strncmp(text, sizeof(text), pidfd_name) ? NULL : BPF_CORE_READ(file, private_data);
}

/* Describes a process whose end the thread waits for: a child of its own process, or any other. */
static __always_inline void describe_process(struct pybpf_wait *wait, struct task_struct *task, struct pid *pid)
{
	struct hlist_node *first = BPF_CORE_READ(pid, tasks[PIDTYPE_TGID].first);
	struct task_struct *leader;
	struct upid upid;

	wait->file = PYBPF_FILE_PROCESS;
	if (cfg_pidns_inum)
		wait->number = pid_in_namespace(pid);
	else if (!bpf_core_read(&upid, sizeof(upid), &pid->numbers[0]))
		wait->number = (__u32)upid.nr;
	if (!first)
		return;
	leader = (void *)((__u64)first - bpf_core_field_offset(struct task_struct, pid_links) -
			  PIDTYPE_TGID * sizeof(*first));
	if (BPF_CORE_READ(leader, real_parent, tgid) == BPF_CORE_READ(task, tgid))
		wait->state = PYBPF_STATE_CHILD;
}

static __always_inline void describe_file(struct pybpf_wait *wait, struct task_struct *task, struct file *file)
{
	struct pid *pid = pid_of_file(file);
	__u16 mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;

	if (pid) {
		describe_process(wait, task, pid);
		return;
	}
	if (mode == S_IFSOCK) {
		describe_socket(wait, file);
		return;
	}
	if (mode == S_IFIFO) {
		wait->state = PYBPF_STATE_PIPE;
		wait->file = PYBPF_FILE_PIPE;
		return;
	}
	if (mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK) {
		wait->state = PYBPF_STATE_DISK;
		wait->file = PYBPF_FILE_REGULAR;
	} else if (mode == S_IFCHR) {
		wait->state = PYBPF_STATE_PIPE;
		wait->file = PYBPF_FILE_DEVICE;
	} else {
		wait->file = PYBPF_FILE_ANONYMOUS;
	}
	copy_name(wait, (const char *)BPF_CORE_READ(file, f_path.dentry, d_name.name),
		  BPF_CORE_READ(file, f_path.dentry, d_name.len));
}

/* Returns the file of a descriptor, or NULL. */
static __always_inline struct file *file_of_descriptor(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	return file;
}

/* Describes a descriptor of the thread. */
static __always_inline void wait_describe_descriptor(struct pybpf_wait *wait, struct waiting *thread, __u32 fd)
{
	struct file *file = file_of_descriptor(thread->task, fd);

	if (file)
		describe_file(wait, thread->task, file);
}

static __always_inline bool is_epoll_set(struct file *file)
{
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	char text[sizeof(wait_epoll_set)] = "";

	bpf_probe_read_kernel_str(text, sizeof(text), name);
	return !bpf_strncmp(text, sizeof(text), wait_epoll_set);
}

/*
 * Describes what has ended the wait of a thread for an epoll set, which has been woken and does not run yet: the first
 * file that is ready; *wait is all zero. Returns 0 if none is, as after a timeout, or if it is not known.
 */
static __noinline int describe_ready(struct pybpf_wait *wait, struct task_struct *task)
{
	struct compat_syscall call;
	struct eventpoll *set;
	struct epitem *item;
	struct file *file;
	struct list_head *first;

	compat_read_syscall(task, &call);
	if (call.number < 0 || call.number > PYBPF_MAX_SYSCALL ||
	    cfg_calls[call.number & PYBPF_MAX_SYSCALL] != PYBPF_CALL_EPOLL)
		return 0;
	file = file_of_descriptor(task, (__u32)call.args[0]);
	/* Another thread may have closed it meanwhile. */
	if (!is_epoll_set(file))
		return 0;
	set = BPF_CORE_READ(file, private_data);
	first = BPF_CORE_READ(set, rdllist.next);
	item = (void *)((__u64)first - bpf_core_field_offset(struct epitem, rdllink));
	/* The list's own head is in no item. */
	if (BPF_CORE_READ(item, ep) != set)
		return 0;
	file = BPF_CORE_READ(item, ffd.file);
	if (!file)
		return 0;
	wait->call = PYBPF_CALL_EPOLL;
	describe_file(wait, task, file);
	wait->state = PYBPF_STATE_POLL;
	return wait->file != PYBPF_FILE_NONE;
}

static __always_inline __s32 wait_first_polled(struct waiting *thread, __u64 array)
{
	__s32 fd = -1;

	if (!thread->current) {
		thread->polled = array;
		return -1;
	}
	/* struct pollfd begins with the descriptor. */
	return compat_read_user(&fd, sizeof(fd), array) ? -1 : fd;
}

/* Who is found asleep in it waits for long, as only a vfork does. */
static __always_inline __u64 wait_clone_flags(struct waiting *thread, __u64 clone_args)
{
	__u64 flags = 0;

	if (!thread->current)
		return WAIT_CLONE_VFORK;
	compat_read_user(&flags, sizeof(flags), clone_args);
	return flags;
}

static __always_inline bool wait_is_for_disk(struct waiting *thread)
{
	return compat_waits_for_disk(thread->task);
}

static __always_inline bool wait_is_for_memory(struct waiting *thread)
{
	return compat_waits_for_memory(thread->task) && !compat_waits_for_disk(thread->task);
}

static __always_inline bool wait_has_our_pids(struct waiting *thread)
{
	struct task_struct *task = thread->task;
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid upid;

	if (!cfg_pidns_inum)
		return !level;
	return level < MAX_PID_NS_LEVEL && !bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]) &&
	       BPF_CORE_READ(upid.ns, ns.inum) == cfg_pidns_inum;
}

/* Says what a thread waits for, which sleeps with the given state; *wait is all zero. */
static __always_inline void describe_wait(struct pybpf_wait *wait, struct waiting *thread, __u32 state)
{
	/* BPF_CORE_READ would relocate a field of our own struct, too. */
	struct task_struct *task = thread->task;
	struct compat_syscall call;

	if (state & (TASK_STOPPED | TASK_TRACED) || compat_is_frozen(task, state)) {
		wait->state = PYBPF_STATE_STOPPED;
		return;
	}
	compat_read_syscall(task, &call);
	wait->call = call.number < 0 ? PYBPF_CALL_FAULT : PYBPF_CALL_OTHER;
	if (call.number >= 0 && call.number <= PYBPF_MAX_SYSCALL)
		wait->call = cfg_calls[call.number & PYBPF_MAX_SYSCALL];
	wait_describe_call(wait, thread, call.number, call.args, &thread->futex);
}

static __always_inline __u64 wait_id_of(const struct pybpf_wait *wait)
{
	const __u64 *words = (const void *)wait;
	__u64 hash = 0;

#pragma unroll
	for (unsigned i = 0; i < sizeof(*wait) / sizeof(*words); i++)
		hash = walk_mix(hash, words[i]);
	hash = (hash & ~(PYBPF_WAIT_STATE_MASK | PYBPF_WAIT_WITH_GIL)) | wait->state;
	return hash > PYBPF_WAIT_STATE_MASK ? hash : hash + 2 * PYBPF_WAIT_WITH_GIL;
}

#endif
