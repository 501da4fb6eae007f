// SPDX-License-Identifier: Apache-2.0
/* How the files that check a layout read the memory of a process, and say what they have found there. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/remote.h"
#include "discovery/validate.h"

/* End of user addresses, on x86-64 and on arm64 with 48 bits. */
#define USER_ADDRESS_END (1ULL << 48)

int validate_read(const struct validation *v, uint64_t addr, void *out, size_t size)
{
	return remote_read(v->python->pid, addr, out, size);
}

bool validate_is_address(uint64_t addr)
{
	return addr >= 4096 && addr < USER_ADDRESS_END && addr % 8 == 0;
}

int validate_contradict(const struct validation *v, const char *what, uint64_t addr, uint64_t value)
{
	return error_set(v->error, -EINVAL,
			 "process %d (%s) does not look like Python %s: %s at %#" PRIx64 " is %#" PRIx64,
			 v->python->pid, v->python->comm, v->python->version, what, addr, value);
}

int validate_unreadable(const struct validation *v, const char *what, uint64_t addr, int err)
{
	int code = err == -EFAULT ? -EINVAL : err;

	if (err == -ESRCH)
		error_set(v->error, err, "process %d (%s) has ended", v->python->pid, v->python->comm);
	else if (err == -EPERM)
		error_set(
			v->error, err,
			"the memory of process %d (%s) cannot be read: process_vm_readv is not permitted; pybpf needs "
			"CAP_SYS_PTRACE, no seccomp filter that forbids it, and a ptrace_scope below 3; see `pybpf "
			"doctor`",
			v->python->pid, v->python->comm);
	else
		error_set(v->error, code, "process %d (%s): %s at %#" PRIx64 " cannot be read: %s", v->python->pid,
			  v->python->comm, what, addr, strerror(-err));
	return code;
}
