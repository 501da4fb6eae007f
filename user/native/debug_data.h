// SPDX-License-Identifier: Apache-2.0
/* .gnu_debugdata: an ELF file with nothing but the symbols that .dynsym lacks, packed by xz into a section. */
#ifndef NATIVE_DEBUG_DATA_H
#define NATIVE_DEBUG_DATA_H

#include <stddef.h>

#include "base/elf_file.h"

/* Most bytes of it, unpacked; a helper has 128 MiB. Those of Arrow have 8.7 MB. */
#define NATIVE_DEBUG_DATA_MAX ((size_t)64 << 20)

/*
 * Unpacks the section into *bytes, which the caller frees. Returns 0, -ENOENT when the file has none, -EFBIG when it is
 * larger than that, -ENOMEM when xz wants more memory than any of its presets up to 8, or -EBADMSG.
 */
int native_debug_data_unpack(struct elf_file *elf, void **bytes, size_t *size);

#endif
