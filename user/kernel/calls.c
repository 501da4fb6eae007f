// SPDX-License-Identifier: Apache-2.0
/* The table of system calls in which threads wait. Calls that an architecture lacks have no number there. */
#include "kernel/calls.h"

#include <string.h>
#include <sys/syscall.h>

/* Newer than the headers of some systems; the same number on all architectures since 5.0. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

static const struct {
	int number;
	enum pybpf_call call;
} known[] = {
	{SYS_futex, PYBPF_CALL_FUTEX},
	{SYS_futex_wait, PYBPF_CALL_FUTEX},
	{SYS_futex_waitv, PYBPF_CALL_FUTEX},
	{SYS_nanosleep, PYBPF_CALL_SLEEP},
	{SYS_clock_nanosleep, PYBPF_CALL_SLEEP},
#ifdef SYS_poll
	{SYS_poll, PYBPF_CALL_POLL},
#endif
	{SYS_ppoll, PYBPF_CALL_POLL},
#ifdef SYS_select
	{SYS_select, PYBPF_CALL_SELECT},
#endif
	{SYS_pselect6, PYBPF_CALL_SELECT},
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, PYBPF_CALL_EPOLL},
#endif
	{SYS_epoll_pwait, PYBPF_CALL_EPOLL},
	{SYS_epoll_pwait2, PYBPF_CALL_EPOLL},
	{SYS_read, PYBPF_CALL_READ},
	{SYS_pread64, PYBPF_CALL_READ},
	{SYS_readv, PYBPF_CALL_READ},
	{SYS_preadv, PYBPF_CALL_READ},
	{SYS_preadv2, PYBPF_CALL_READ},
	{SYS_getdents64, PYBPF_CALL_READ},
	{SYS_write, PYBPF_CALL_WRITE},
	{SYS_pwrite64, PYBPF_CALL_WRITE},
	{SYS_writev, PYBPF_CALL_WRITE},
	{SYS_pwritev, PYBPF_CALL_WRITE},
	{SYS_pwritev2, PYBPF_CALL_WRITE},
	{SYS_ftruncate, PYBPF_CALL_WRITE},
	{SYS_fallocate, PYBPF_CALL_WRITE},
	{SYS_sendfile, PYBPF_CALL_WRITE}, /* its first argument is the descriptor that is written */
	{SYS_recvfrom, PYBPF_CALL_RECEIVE},
	{SYS_recvmsg, PYBPF_CALL_RECEIVE},
	{SYS_recvmmsg, PYBPF_CALL_RECEIVE},
	{SYS_sendto, PYBPF_CALL_SEND},
	{SYS_sendmsg, PYBPF_CALL_SEND},
	{SYS_sendmmsg, PYBPF_CALL_SEND},
	{SYS_accept, PYBPF_CALL_ACCEPT},
	{SYS_accept4, PYBPF_CALL_ACCEPT},
	{SYS_connect, PYBPF_CALL_CONNECT},
	{SYS_fsync, PYBPF_CALL_SYNC},
	{SYS_fdatasync, PYBPF_CALL_SYNC},
	{SYS_sync_file_range, PYBPF_CALL_SYNC},
	{SYS_flock, PYBPF_CALL_LOCK},
	{SYS_fcntl, PYBPF_CALL_LOCK}, /* of its commands only F_SETLKW waits */
#ifdef SYS_open
	{SYS_open, PYBPF_CALL_PATH},
	{SYS_stat, PYBPF_CALL_PATH},
	{SYS_lstat, PYBPF_CALL_PATH},
	{SYS_rename, PYBPF_CALL_PATH},
	{SYS_unlink, PYBPF_CALL_PATH},
	{SYS_mkdir, PYBPF_CALL_PATH},
	{SYS_rmdir, PYBPF_CALL_PATH},
#endif
	{SYS_openat, PYBPF_CALL_PATH},
	{SYS_newfstatat, PYBPF_CALL_PATH},
	{SYS_statx, PYBPF_CALL_PATH},
	{SYS_renameat, PYBPF_CALL_PATH},
	{SYS_renameat2, PYBPF_CALL_PATH},
	{SYS_unlinkat, PYBPF_CALL_PATH},
	{SYS_mkdirat, PYBPF_CALL_PATH},
	{SYS_truncate, PYBPF_CALL_PATH},
	{SYS_sync, PYBPF_CALL_PATH},
	{SYS_wait4, PYBPF_CALL_CHILD},
	{SYS_waitid, PYBPF_CALL_ANY_CHILD}, /* its first argument says what the second is */
#ifdef SYS_fork
	{SYS_fork, PYBPF_CALL_ANY_CHILD},
	{SYS_vfork, PYBPF_CALL_ANY_CHILD},
#endif
	{SYS_clone, PYBPF_CALL_ANY_CHILD},
	{SYS_clone3, PYBPF_CALL_ANY_CHILD},
	{SYS_semop, PYBPF_CALL_IPC},
	{SYS_semtimedop, PYBPF_CALL_IPC},
	{SYS_msgrcv, PYBPF_CALL_IPC},
	{SYS_msgsnd, PYBPF_CALL_IPC},
	{SYS_rt_sigtimedwait, PYBPF_CALL_SIGNAL},
	{SYS_rt_sigsuspend, PYBPF_CALL_SIGNAL},
#ifdef SYS_pause
	{SYS_pause, PYBPF_CALL_SIGNAL},
#endif
	{SYS_io_getevents, PYBPF_CALL_IO},
	{SYS_io_uring_enter, PYBPF_CALL_IO},
};

const struct pybpf_memory_calls kernel_memory_calls = {
	.mmap = SYS_mmap,
	.munmap = SYS_munmap,
	.mremap = SYS_mremap,
	.madvise = SYS_madvise,
	.brk = SYS_brk,
	.mlock = SYS_mlock,
	.mlock2 = SYS_mlock2,
};

void kernel_fill_calls(uint8_t calls[PYBPF_MAX_SYSCALL + 1])
{
	memset(calls, PYBPF_CALL_OTHER, PYBPF_MAX_SYSCALL + 1);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		calls[known[i].number] = (uint8_t)known[i].call;
}
