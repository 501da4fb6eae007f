// SPDX-License-Identifier: Apache-2.0
/* Looks up a symbol of an ELF file in the tables where its kind of Python has symbols. */
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
