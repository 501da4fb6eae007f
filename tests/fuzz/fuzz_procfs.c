// SPDX-License-Identifier: Apache-2.0
/* Lines of /proc/PID/maps (the first byte is 'm') and the text of /proc/PID/stat (any other). */
#include "fuzz.h"
#include "base/procfs.h"

static void check_map(char *line, size_t len)
{
	struct procfs_map map;
	int err = procfs_parse_map(line, &map);

	FUZZ_CHECK(!err || err == -EBADMSG);
	if (err)
		return;
	FUZZ_CHECK(map.start <= map.end);
	FUZZ_CHECK(!*map.path || (map.path > line && map.path + strlen(map.path) <= line + len));
}

static void check_stat(const char *text)
{
	struct procfs_stat stat;
	int err = procfs_parse_stat(text, &stat);

	FUZZ_CHECK(!err || err == -EBADMSG);
	if (err)
		return;
	FUZZ_CHECK(memchr(stat.comm, '\0', sizeof(stat.comm)));
	FUZZ_CHECK(stat.ppid >= 0 && stat.state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t kind = fuzz_take_u8(&in);
	char *text = strndup((const char *)in.data, in.size);

	FUZZ_CHECK(text);
	if (kind == 'm')
		check_map(text, strlen(text));
	else
		check_stat(text);
	free(text);
	return 0;
}
