// SPDX-License-Identifier: Apache-2.0
/* The table of system calls in which threads wait. Calls that an architecture lacks have no number there. */
#include "kernel/calls.h"

#include <string.h>
#include <sys/syscall.h>

/* Newer than the headers of some systems; the same number on all architectures since 5.0. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
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
	{SYS_readahead, PYBPF_CALL_READ},
	{SYS_sendfile, PYBPF_CALL_SENDFILE},
	{SYS_splice, PYBPF_CALL_SPLICE},
	{SYS_copy_file_range, PYBPF_CALL_COPY},
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
	{SYS_syncfs, PYBPF_CALL_SYNC},
	{SYS_fstat, PYBPF_CALL_METADATA},
	{SYS_fstatfs, PYBPF_CALL_METADATA},
	{SYS_fchmod, PYBPF_CALL_METADATA},
	{SYS_fchown, PYBPF_CALL_METADATA},
	{SYS_fgetxattr, PYBPF_CALL_METADATA},
	{SYS_fsetxattr, PYBPF_CALL_METADATA},
	{SYS_flistxattr, PYBPF_CALL_METADATA},
	{SYS_fremovexattr, PYBPF_CALL_METADATA},
	{SYS_lseek, PYBPF_CALL_METADATA}, /* SEEK_END asks a network file system for the size */
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
	{SYS_creat, PYBPF_CALL_PATH},
	{SYS_access, PYBPF_CALL_PATH},
	{SYS_readlink, PYBPF_CALL_PATH},
	{SYS_chmod, PYBPF_CALL_PATH},
	{SYS_chown, PYBPF_CALL_PATH},
	{SYS_lchown, PYBPF_CALL_PATH},
	{SYS_link, PYBPF_CALL_PATH},
	{SYS_symlink, PYBPF_CALL_PATH},
	{SYS_mknod, PYBPF_CALL_PATH},
	{SYS_utime, PYBPF_CALL_PATH},
	{SYS_utimes, PYBPF_CALL_PATH},
#endif
#ifdef SYS_renameat
	{SYS_renameat, PYBPF_CALL_PATH},
#endif
	{SYS_openat2, PYBPF_CALL_PATH},
	{SYS_faccessat, PYBPF_CALL_PATH},
	{SYS_faccessat2, PYBPF_CALL_PATH},
	{SYS_readlinkat, PYBPF_CALL_PATH},
	{SYS_fchmodat, PYBPF_CALL_PATH},
	{SYS_fchownat, PYBPF_CALL_PATH},
	{SYS_linkat, PYBPF_CALL_PATH},
	{SYS_symlinkat, PYBPF_CALL_PATH},
	{SYS_mknodat, PYBPF_CALL_PATH},
	{SYS_utimensat, PYBPF_CALL_PATH},
	{SYS_statfs, PYBPF_CALL_PATH},
	{SYS_chdir, PYBPF_CALL_PATH},
	{SYS_getxattr, PYBPF_CALL_PATH},
	{SYS_lgetxattr, PYBPF_CALL_PATH},
	{SYS_setxattr, PYBPF_CALL_PATH},
	{SYS_lsetxattr, PYBPF_CALL_PATH},
	{SYS_listxattr, PYBPF_CALL_PATH},
	{SYS_llistxattr, PYBPF_CALL_PATH},
	{SYS_removexattr, PYBPF_CALL_PATH},
	{SYS_lremovexattr, PYBPF_CALL_PATH},
	{SYS_openat, PYBPF_CALL_PATH},
	{SYS_newfstatat, PYBPF_CALL_PATH},
	{SYS_statx, PYBPF_CALL_PATH},
	{SYS_renameat2, PYBPF_CALL_PATH},
	{SYS_unlinkat, PYBPF_CALL_PATH},
	{SYS_mkdirat, PYBPF_CALL_PATH},
	{SYS_truncate, PYBPF_CALL_PATH},
	{SYS_sync, PYBPF_CALL_PATH},
	{SYS_wait4, PYBPF_CALL_CHILD},
	{SYS_waitid, PYBPF_CALL_ANY_CHILD}, /* its first argument says what the second is */
#ifdef SYS_vfork
	{SYS_vfork, PYBPF_CALL_ANY_CHILD},
#endif
	{SYS_clone, PYBPF_CALL_CLONE},
	{SYS_clone3, PYBPF_CALL_CLONE},
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
	{SYS_restart_syscall, PYBPF_CALL_RESTART},
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

const char *kernel_call_name(uint32_t number)
{
	static const char *const names[] = {
#include "syscall_names.h"
	};

	return number < sizeof(names) / sizeof(*names) && names[number] ? names[number] : "";
}

void kernel_fill_calls(uint8_t calls[PYBPF_MAX_SYSCALL + 1])
{
	memset(calls, PYBPF_CALL_OTHER, PYBPF_MAX_SYSCALL + 1);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		calls[known[i].number] = (uint8_t)known[i].call;
}
