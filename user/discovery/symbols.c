// SPDX-License-Identifier: Apache-2.0
/* Names of one ELF file, where its kind of Python has them. */
#include <stddef.h>

#include "discovery/internal.h"

bool discovery_symbol(const struct discovery_symbols *symbols, const char *name, struct elf_symbol *out)
{
	struct elf_symbol ignored;

	if (!out)
		out = &ignored;
	return !(symbols->all ? elf_file_symbol(symbols->elf, name, out)
			      : elf_file_dynamic_symbol(symbols->elf, name, out));
}
