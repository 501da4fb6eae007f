// SPDX-License-Identifier: Apache-2.0
#include "native/fetched.h"

#include <errno.h>
#include <string.h>

#include "native/ask.h"

static int fetched = -1;

void native_fetched_use(int fd)
{
	fetched = fd;
}

int native_fetched_open(const uint8_t *id, size_t id_size, struct elf_file **out)
{
	uint8_t found[NATIVE_BUILD_ID_MAX];
	int err;

	*out = NULL;
	if (fetched < 0 || !id_size)
		return -ENOENT;
	err = elf_file_open(fetched, out);
	if (err)
		return err;
	if (elf_file_build_id(*out, found, sizeof(found)) == id_size && !memcmp(found, id, id_size))
		return 0;
	elf_file_free(*out);
	*out = NULL;
	return -ESTALE;
}
