/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* All that the BPF programs and user space share, but for waits (pybpf_wait.h). */
#ifndef PYBPF_H
#define PYBPF_H

#include "pybpf_counts.h"
#include "pybpf_counters.h"
#include "pybpf_layout.h"
#include "pybpf_memory.h"
#include "pybpf_objects.h"
#include "pybpf_process.h"
#include "pybpf_stack.h"
#include "pybpf_task.h"

#endif
