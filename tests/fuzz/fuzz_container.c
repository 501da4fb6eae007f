// SPDX-License-Identifier: Apache-2.0
/* What tells of containers: a mountinfo ('m'), /proc/PID/cgroup ('c'), /proc/PID/status ('s'), texts to be printed. */
#include "container/container.h"
#include "container/state.h"
#include "fuzz.h"
#include "base/procfs.h"
#include "base/text.h"

static void check_mounts(char *text)
{
	struct cgroup_mounts mounts;
	char inside[256];

	FUZZ_CHECK(!cgroup_mounts_parse(text, &mounts));
	for (size_t i = 0; i < mounts.count; i++) {
		FUZZ_CHECK(mounts.mounts[i].v1 || !mounts.mounts[i].controllers[0]);
		cgroup_find_path(&mounts, mounts.mounts[i].point, inside, sizeof(inside));
	}
	cgroup_mounts_free(&mounts);
}

static void check_groups(const char *text)
{
	static const struct cgroup group = {.v1 = true, .controller = "memory", .path = "/a"};
	const char *rest = text, *end = text + strlen(text);
	struct container container;
	struct cgroup_line line;

	cgroup_holds(&group, text);
	while (cgroup_next_line(&rest, &line)) {
		FUZZ_CHECK(line.path > text && line.path_len && line.path + line.path_len <= end &&
			   line.path[0] == '/');
		for (size_t at = 0, before = 0; container_parse_path(line.path, line.path_len, &at, &container);
		     before = at) {
			FUZZ_CHECK(at > before && at <= line.path_len);
			FUZZ_CHECK(container.id[0] && container.runtime[0] && !container.name[0]);
			FUZZ_CHECK(memchr(container.id, '\0', sizeof(container.id)));
			FUZZ_CHECK(memchr(container.pod_uid, '\0', sizeof(container.pod_uid)));
		}
	}
}

static void check_text(const char *text)
{
	char *printable = text_printable(text), *again;
	FILE *out = fopen("/dev/null", "w");
	size_t width;

	FUZZ_CHECK(printable && out);
	again = text_printable(printable);
	FUZZ_CHECK(again && !strcmp(again, printable));
	for (const char *p = printable; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
	width = text_width(printable);
	FUZZ_CHECK(text_fit(printable, width) == strlen(printable));
	FUZZ_CHECK(text_fit(printable, width / 2) <= strlen(printable));
	text_json(text, out);
	fclose(out);
	free(again);
	free(printable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t kind = fuzz_take_u8(&in);
	char *text = strndup((const char *)in.data, in.size);
	struct procfs_status status;

	FUZZ_CHECK(text);
	/* No runtime of this machine is asked. */
	state_set_root("/proc/self/fdinfo");
	if (kind == 'm')
		check_mounts(text);
	else if (kind == 'c')
		check_groups(text);
	else if (kind == 's')
		FUZZ_CHECK(procfs_parse_status(text, &status) || status.inside > 0);
	else
		check_text(text);
	free(text);
	return 0;
}
