/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where what is read of user memory in an interrupt goes to: how many reads of one process's memory had which kind of
 * destination (watch_reads.c).
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* Every task_struct comes from a slab, in the direct map; vmalloc's range begins a TiB or more behind that. */
#define FAR (1ull << 39)

enum {
	READS_DIRECT_MAP,
	READS_ELSEWHERE,
	READS_KINDS
};

/* [0]: PID of the process; [1 + kind]: reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 + READS_KINDS);
	__type(key, __u32);
	__type(value, __u64);
} reads SEC(".maps");

SEC("fentry/copy_from_user_nofault")
int BPF_PROG(read_user, void *dst)
{
	__u64 away = (__u64)dst - bpf_get_current_task();
	__u32 zero = 0, kind = 1 + (away + FAR < 2 * FAR ? READS_DIRECT_MAP : READS_ELSEWHERE);
	__u64 *pid = bpf_map_lookup_elem(&reads, &zero), *count = bpf_map_lookup_elem(&reads, &kind);

	if (pid && count && bpf_get_current_pid_tgid() >> 32 == *pid)
		__sync_fetch_and_add(count, 1);
	return 0;
}
