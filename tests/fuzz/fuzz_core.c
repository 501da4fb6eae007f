// SPDX-License-Identifier: Apache-2.0
/* Core files: the input is the file. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/core_file.h"
#include "fuzz.h"

#define READ_MAX 4096

static void look(const struct core_file *core)
{
	const struct core_map *absent;
	uint64_t kept = 0, before = 0;
	uint8_t bytes[READ_MAX];
	size_t done;

	FUZZ_CHECK(core->nr_threads);
	for (size_t i = 0; i < core->nr_maps; i++) {
		const struct core_map *map = &core->maps[i];
		uint64_t size = map->end - map->start < sizeof(bytes) ? map->end - map->start : sizeof(bytes);
		int err = core_file_read(core, map->start, bytes, size, &absent, &done);

		FUZZ_CHECK(map->start < map->end && map->start >= before);
		FUZZ_CHECK(map->kept <= map->file_bytes && map->file_bytes <= map->end - map->start &&
			   strlen(map->path) < core->size);
		FUZZ_CHECK(done <= size && (err || done == size) && (err != -ENODATA || absent));
		before = map->start;
		kept += map->kept;
	}
	/* Mappings may share bytes of the file, but none has more than it. */
	FUZZ_CHECK(!core->nr_maps || kept / core->nr_maps <= core->size);
	FUZZ_CHECK(strlen(core->comm) < sizeof(core->comm) && strlen(core->command) < sizeof(core->command));
	core_file_read(core, core->address, bytes, sizeof(bytes), &absent, &done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct error error = {0};
	struct core_file core;
	int err;

	if (fd < 0)
		fd = memfd_create("fuzz_core", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	err = core_file_open(fd, "a.core", &core, &error);
	FUZZ_CHECK(err <= 0 && !err == !error.text[0]);
	if (!err)
		look(&core);
	core_file_close(&core);
	return 0;
}
