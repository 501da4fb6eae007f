/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every difference between kernels, and nothing else. User space probes once (user/kernel/features.c), sets the
 * constants of these files before the programs are loaded, and loads only the programs that this kernel takes.
 */
#ifndef PYBPF_COMPAT_BPF_H
#define PYBPF_COMPAT_BPF_H

/*
 * The sampler runs in an interrupt: the CPU clock's, or, by hardware cycles, an NMI, which comes inside of anything,
 * with any lock held. What it calls, from 5.10 to 7.2:
 *
 * - Look-ups in maps, bpf_get_smp_processor_id(), bpf_get_current_pid_tgid(), _uid_gid(), _comm(), _task() and
 *   _task_btf(), bpf_get_current_ancestor_cgroup_id(), bpf_task_pt_regs(), bpf_ringbuf_query(), bpf_tail_call() and
 *   bpf_loop() take no lock. bpf_ktime_get_ns() reads a clock that is made for NMIs (ktime_get_mono_fast_ns()).
 * - bpf_probe_read_kernel() takes no lock, and a fault in it is no page fault (copy_from_kernel_nofault()). For user
 *   memory see compat_read_user() and compat_memory_is_current().
 * - bpf_map_update_elem() and bpf_map_delete_elem() lock a bucket, a free list and, in LRU maps, the lists;
 *   bpf_ringbuf_output() locks the ring. The sampler never finds one of these locks held by what it interrupts: only
 *   the sampler itself and bpf(2) write to its maps and its ring, both raise bpf_prog_active, and while that is up no
 *   sampler is started (bpf_overflow_handler()). So no tracepoint's program may write there, for it raises nothing:
 *   the sampler would wait forever (hash maps before 5.11, 20b6cc34ea74; LRU maps in 6.18 still) or for a quarter
 *   of a second (rings since 6.15, a650d38915c1). For another CPU's lock it waits, or the call fails: rings in an NMI,
 *   free lists in an NMI (39d8f0d1026a, 5.10), and since 6.15 all (rqspinlock: 4fa8d68aa53e, a650d38915c1).
 *   No update allocates memory: all these maps are made with their elements.
 * - bpf_task_storage_get() makes an entry in an NMI from 6.4 on, see cfg_task_storage.
 *
 * What failed is counted: the sample (stack_table_busy, untimed), or its stack is sent with the next one
 * (ring_buffer_full where there is none). A thread's entry or a code object's copy that was not made costs time only.
 */

#include "compat_base.bpf.h"
#include "compat_read.bpf.h"
#include "compat_thread.bpf.h"
#include "compat_registers.bpf.h"
#include "compat_state.bpf.h"
#include "compat_process.bpf.h"

#endif
