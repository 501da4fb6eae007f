/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread that goes to sleep waits for: from its state, its system call, and the descriptor of that call. */
#ifndef PYBPF_WAIT_CAUSE_BPF_H
#define PYBPF_WAIT_CAUSE_BPF_H

#include "maps.bpf.h"

/* A thread that goes to sleep. */
struct waiting {
	struct task_struct *task;
	bool current; /* it is the current thread, whose memory can be read */
};
#define WAIT_THREAD struct waiting
#include "wait_call.h"

/* include/linux/sched.h; the same since 4.14. */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED         0x0004
#define TASK_TRACED          0x0008
#define TASK_DEAD            0x0080
/* Since 6.1 (f5d39b020809): a thread that a cgroup's freezer holds. */
#define TASK_FROZEN 0x8000

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

/* The name of an abstract socket has no NUL at its end, and nothing behind a name belongs to it. */
static __always_inline void copy_unix_name(struct pybpf_wait *wait, struct unix_address *name)
{
	__u32 size = (__u32)BPF_CORE_READ(name, len) - SUN_PATH;

	if (size > sizeof(wait->text) - 1)
		size = sizeof(wait->text) - 1;
	bpf_probe_read_kernel(wait->text, size, (const char *)&name->name + SUN_PATH);
}

/* Describes a socket: whom it talks to or, while it listens, where. */
static __always_inline void describe_socket(struct pybpf_wait *wait, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	wait->state = PYBPF_STATE_NETWORK;
	if (BPF_CORE_READ(socket, type) == SOCK_DGRAM)
		wait->flags |= PYBPF_WAIT_DATAGRAM;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		wait->flags |= PYBPF_WAIT_LISTENING;
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

static __always_inline void describe_file(struct pybpf_wait *wait, struct file *file)
{
	__u16 mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	const unsigned char *name;

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
	name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(wait->text, sizeof(wait->text), name);
}

/* Describes a descriptor of the thread. */
static __always_inline void wait_describe_descriptor(struct pybpf_wait *wait, struct waiting *thread, __u32 fd)
{
	/* BPF_CORE_READ would relocate a field of our own struct, too. */
	struct task_struct *task = thread->task;
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return;
	bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	if (file)
		describe_file(wait, file);
}

static __always_inline __s32 wait_first_polled(struct waiting *thread, __u64 array)
{
	__s32 fd = -1;

	/* struct pollfd begins with the descriptor. */
	return thread->current && !compat_read_user(&fd, sizeof(fd), array) ? fd : -1;
}

static __always_inline bool wait_is_for_disk(struct waiting *thread)
{
	return compat_waits_for_disk(thread->task);
}

/*
 * Says what a thread waits for, which sleeps with the given state; *wait is all zero. current: it is the current
 * thread, whose memory can be read. The address of a futex is in *futex, else 0.
 */
static __always_inline void describe_wait(struct pybpf_wait *wait, struct task_struct *task, __u32 state, bool current,
					  __u64 *futex)
{
	struct waiting thread = {.task = task, .current = current};
	struct compat_syscall call;

	*futex = 0;
	if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN)) {
		wait->state = PYBPF_STATE_STOPPED;
		return;
	}
	compat_read_syscall(task, &call);
	wait->call = call.number < 0 ? PYBPF_CALL_FAULT : PYBPF_CALL_OTHER;
	if (call.number >= 0 && call.number <= PYBPF_MAX_SYSCALL)
		wait->call = cfg_calls[call.number & PYBPF_MAX_SYSCALL];
	wait_describe_call(wait, &thread, call.args, futex);
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
