// SPDX-License-Identifier: Apache-2.0
/* The kernel side's memory of native frames, played: pages are counted, and what is in them is forgotten. */
#ifndef PLAYED_NATIVE_H
#define PLAYED_NATIVE_H

#include <errno.h>
#include <stdint.h>

#include "kernel/native.h"

static uint32_t chunks, chunks_max;

int kernel_add_native_chunk(struct kernel *k)
{
	(void)k;
	if (chunks == chunks_max)
		return -E2BIG;
	chunks++;
	return 0;
}

uint32_t kernel_count_native_chunks(const struct kernel *k)
{
	(void)k;
	return chunks;
}

int kernel_write_native_page(struct kernel *k, uint32_t page, const struct pybpf_native_page *content)
{
	(void)k;
	(void)page;
	(void)content;
	return 0;
}

int kernel_read_native_page(const struct kernel *k, uint32_t page, struct pybpf_native_page *out)
{
	(void)k;
	(void)page;
	(void)out;
	return 0;
}

#endif
