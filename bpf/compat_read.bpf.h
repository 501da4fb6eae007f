/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads of user memory, which some kernels do not allow everywhere. */
#ifndef PYBPF_COMPAT_READ_BPF_H
#define PYBPF_COMPAT_READ_BPF_H

#include "compat_base.bpf.h"

struct bounce {
	__u8 bytes[PYBPF_READ_MAX];
};

/* One per possible CPU, stored by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct pybpf_bounce_key);
	__type(value, struct bounce);
} bounces SEC(".maps");

/* Out of line: the verifier of 5.10 forgets the bounds of what the compiler would have to spill here. */
static __noinline long bounce_user(void *dst, __u32 size, __u64 addr)
{
	struct pybpf_bounce_key key = {.bits = PYBPF_BOUNCE_KEY_BITS, .cpu = bpf_get_smp_processor_id()};
	struct bounce *bounce = bpf_map_lookup_elem(&bounces, &key);

	if (!bounce || size > sizeof(*bounce) || bpf_probe_read_user(bounce, size, (const void *)addr))
		return -1;
	return bpf_probe_read_kernel(dst, size, bounce);
}

/*
 * Reads memory of the interrupted thread. Returns 0 or a negative number.
 *
 * Under CONFIG_HARDENED_USERCOPY, Linux 5.19 (0aef499f3172) looks the destination up in vmalloc's areas where it is in
 * their range, and takes vmap_area_lock for that: whoever is interrupted while it holds the lock never gives it back.
 * 6.4, 6.3.10 and 6.1.36 do not (d319f344561d). Arrays of more than 32 KiB are in that range, and so are per-CPU maps
 * and the stack that interrupts run on (map_irq_stack() in arch/x86/kernel/irq_64.c): scratch memory and the BPF stack
 * both. The elements of a trie are not, for each comes from kmalloc() (lpm_trie_node_alloc()), and its look-up takes
 * no lock.
 */
static __always_inline long compat_read_user(void *dst, __u32 size, __u64 addr)
{
	if (cfg_direct_reads)
		return bpf_probe_read_user(dst, size, (const void *)addr);
	return bounce_user(dst, size, addr);
}

#endif
