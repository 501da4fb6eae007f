// SPDX-License-Identifier: Apache-2.0
/* -e uprobe:PATH:SYMBOL: finds the function in its file. */
#ifndef CLI_UPROBE_H
#define CLI_UPROBE_H

#include <stdint.h>

#include "kernel/event.h"

/*
 * Opens the file of the event and puts the function's offset into it; text->path becomes a path of the open file, which
 * stays open until pybpf ends. pid: an absolute path is one that this process sees; 0: that pybpf sees. Returns 0, or
 * the exit code after one sentence.
 */
int cli_find_uprobe(struct kernel_event *event, struct kernel_event_text *text, uint32_t pid);

#endif
