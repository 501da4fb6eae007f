// SPDX-License-Identifier: Apache-2.0
/* Which thread it is: what the keys of the kernel's maps say each in its place. */
#ifndef SESSION_THREAD_H
#define SESSION_THREAD_H

#include "pybpf.h"

/* The thread of a struct pybpf_count_key, pybpf_wait_key or pybpf_thread. */
#define SESSION_THREAD_OF(of) ((struct pybpf_thread_key){(of)->proc_id, (of)->tid, (of)->tid_start_ms})

#endif
