// SPDX-License-Identifier: Apache-2.0
/* Hierarchies as hosts have them: v2 alone, v1 with v2 beside it, v1 alone, and what a container sees. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container/cgroup.h"

static const char hybrid[] =
	"23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,release_agent=/bin/x,memory\n"
	"36 31 0:33 / /sys/fs/cgroup/net_cls rw - cgroup cgroup rw,net_cls\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

static void parse(const char *text, struct cgroup_mounts *mounts)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	assert_int_equal(cgroup_mounts_parse(copy, mounts), 0);
	free(copy);
}

static void finds_the_mounts_of_a_hybrid_host(void **state)
{
	struct cgroup_mounts mounts;

	(void)state;
	parse(hybrid, &mounts);
	assert_int_equal(mounts.count, 5);
	/* v2 first, and what has no controller last. */
	assert_string_equal(mounts.mounts[0].point, "/sys/fs/cgroup/unified");
	assert_false(mounts.mounts[0].v1);
	assert_string_equal(mounts.mounts[0].controllers, "");
	assert_string_equal(mounts.mounts[1].controllers, "memory");
	assert_true(mounts.mounts[1].v1);
	assert_string_equal(mounts.mounts[2].controllers, "cpu,cpuacct");
	assert_string_equal(mounts.mounts[2].root, "/");
	assert_string_equal(mounts.mounts[3].controllers, "net_cls");
	assert_string_equal(mounts.mounts[4].controllers, "name=systemd");
	cgroup_mounts_free(&mounts);
	cgroup_mounts_free(&mounts);
}

static void survives_odd_mountinfos(void **state)
{
	static const char *const odd[] = {
		"",
		"\n\n",
		" - ",
		"1 - cgroup2",
		"1 2 3 4 5 - cgroup2 x",
		"1 2 3 - cgroup2 x rw",
		"- cgroup cgroup rw",
		"1 2 0:1 / /x rw - cgroup",
		"1 2 0:1 / /x rw - cgroup3 x rw",
		"1 2 0:1 / /x rw - ext4 x rw,memory",
		"1 2 0:1 \\000 /x rw - cgroup2 x rw",
		"1 2 0:1 / \\000a rw - cgroup2 x rw",
		"1 2 0:1 a /x rw - cgroup2 x rw",
	};
	struct cgroup_mounts mounts;
	char *many = calloc(1, 200 * 64);

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		parse(odd[i], &mounts);
		assert_int_equal(mounts.count, 0);
		cgroup_mounts_free(&mounts);
	}
	/* A space and a newline in names; of two mounts at one place the later one is what is seen. */
	parse("1 2 0:1 /a\\040b /x\\012y\\134 rw - cgroup2 none rw\n"
	      "1 2 0:2 / /z rw - cgroup none rw,memory\n"
	      "1 2 0:3 / /z rw - cgroup2 none rw\n",
	      &mounts);
	assert_int_equal(mounts.count, 2);
	assert_string_equal(mounts.mounts[0].root, "/a b");
	assert_string_equal(mounts.mounts[0].point, "/x\ny\\");
	assert_false(mounts.mounts[1].v1);
	cgroup_mounts_free(&mounts);
	for (int i = 0; i < 200; i++)
		sprintf(many + strlen(many), "1 2 0:1 / /m%d rw - cgroup2 none rw\n", i);
	parse(many, &mounts);
	assert_true(mounts.count > 0 && mounts.count < 200);
	cgroup_mounts_free(&mounts);
	free(many);
}

/* A tree of directories that stands for hierarchies: their numbers are what stat says, as in the real ones. */
struct world {
	char root[64];
	struct cgroup_mounts mounts;
};

static void make(const struct world *world, const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", world->root, path);
	assert_int_equal(mkdir(whole, 0755), 0);
}

static uint64_t inode(const struct world *world, const char *path)
{
	char whole[256];
	struct stat st;

	snprintf(whole, sizeof(whole), "%s%s", world->root, path);
	assert_int_equal(stat(whole, &st), 0);
	return st.st_ino;
}

static void add_mount(struct world *world, char *text, size_t size, const char *root, const char *point,
		      const char *type, const char *options)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "1 2 0:1 %s %s%s rw - %s none %s\n", root, world->root, point, type, options);
}

static int make_world(void **state)
{
	static const char *const directories[] = {"/v2",         "/v2/web.slice",     "/v2/web.slice/a", "/memory",
						  "/memory/old", "/memory/web.slice", "/named",          "/named/only",
						  "/part",       "/part/in",          "/elsewhere"};
	struct world *world = calloc(1, sizeof(*world));
	char text[2048] = "", link[128], file[128];
	FILE *out;

	assert_non_null(world);
	strcpy(world->root, "/tmp/pybpf-cgroup-XXXXXX");
	assert_non_null(mkdtemp(world->root));
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		make(world, directories[i]);
	snprintf(link, sizeof(link), "%s/v2/escape", world->root);
	assert_int_equal(symlink("../elsewhere", link), 0);
	snprintf(file, sizeof(file), "%s/v2/cgroup.procs", world->root);
	out = fopen(file, "w");
	assert_non_null(out);
	fclose(out);
	add_mount(world, text, sizeof(text), "/", "/named", "cgroup", "rw,name=systemd");
	add_mount(world, text, sizeof(text), "/", "/memory", "cgroup", "rw,memory");
	add_mount(world, text, sizeof(text), "/", "/v2", "cgroup2", "rw");
	add_mount(world, text, sizeof(text), "/docker/abc", "/part", "cgroup", "rw,pids");
	parse(text, &world->mounts);
	*state = world;
	return 0;
}

static int drop_world(void **state)
{
	struct world *world = *state;
	char command[128];

	cgroup_mounts_free(&world->mounts);
	snprintf(command, sizeof(command), "rm -r %s", world->root);
	/* NOLINTNEXTLINE(bugprone-command-processor): a path of our own */
	assert_int_equal(system(command), 0);
	free(world);
	return 0;
}

static int resolve(const struct world *world, const char *path, struct cgroup *out, struct error *error)
{
	return cgroup_resolve(&world->mounts, path, out, error);
}

static int resolve_below(const struct world *world, const char *path, struct cgroup *out, struct error *error)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", world->root, path);
	return resolve(world, whole, out, error);
}

static void resolves_directories(void **state)
{
	const struct world *world = *state;
	struct cgroup group;
	struct error error;

	assert_int_equal(resolve_below(world, "/v2/web.slice/a", &group, &error), 0);
	assert_false(group.v1);
	assert_string_equal(group.path, "/web.slice/a");
	assert_true(group.id == inode(world, "/v2/web.slice/a"));
	assert_string_equal(group.controller, "");
	assert_int_equal(resolve_below(world, "/v2/web.slice/./a/../a/", &group, &error), 0);
	assert_string_equal(group.path, "/web.slice/a");
	/* A directory of v1 is what its user names, whatever v2 has. */
	assert_int_equal(resolve_below(world, "/memory/web.slice", &group, &error), 0);
	assert_true(group.v1);
	assert_string_equal(group.controller, "memory");
	assert_string_equal(group.path, "/web.slice");
	assert_true(group.id == inode(world, "/memory/web.slice"));
	/* The root of a hierarchy, and one of which only a part is mounted. */
	assert_int_equal(resolve_below(world, "/v2", &group, &error), 0);
	assert_string_equal(group.path, "/");
	assert_int_equal(resolve_below(world, "/part/in", &group, &error), 0);
	assert_string_equal(group.path, "/docker/abc/in");
	assert_int_equal(resolve_below(world, "/part", &group, &error), 0);
	assert_string_equal(group.path, "/docker/abc");
}

static void resolves_paths_inside(void **state)
{
	const struct world *world = *state;
	struct cgroup group;
	struct error error;

	assert_int_equal(resolve(world, "/web.slice", &group, &error), 0);
	assert_false(group.v1);
	assert_true(group.id == inode(world, "/v2/web.slice"));
	assert_int_equal(resolve(world, "web.slice/a", &group, &error), 0);
	assert_string_equal(group.path, "/web.slice/a");
	assert_int_equal(resolve(world, "/old", &group, &error), 0);
	assert_true(group.v1);
	assert_string_equal(group.controller, "memory");
	assert_int_equal(resolve(world, "/docker/abc/in", &group, &error), 0);
	assert_string_equal(group.controller, "pids");
	assert_true(group.id == inode(world, "/part/in"));
}

static void says_what_is_no_group(void **state)
{
	const struct world *world = *state;
	struct cgroup_mounts none = {0};
	struct cgroup group;
	struct error error;

	assert_int_equal(resolve(world, "/no-such.slice", &group, &error), -ENOENT);
	assert_non_null(strstr(error.text, "no-such.slice"));
	assert_non_null(strstr(error.text, "/v2"));
	assert_non_null(strstr(error.text, "(memory)"));
	assert_int_equal(resolve_below(world, "/elsewhere", &group, &error), -EXDEV);
	assert_non_null(strstr(error.text, "outside"));
	assert_int_equal(resolve(world, "/tmp", &group, &error), -EXDEV);
	assert_int_equal(resolve_below(world, "/v2/cgroup.procs", &group, &error), -ENOTDIR);
	assert_non_null(strstr(error.text, "a file"));
	assert_int_equal(resolve_below(world, "/named/only", &group, &error), -ENOTSUP);
	assert_non_null(strstr(error.text, "no controller"));
	assert_int_equal(resolve(world, "", &group, &error), -ENOENT);
	/* Out of the hierarchy by a link or dots. */
	assert_int_equal(resolve_below(world, "/v2/escape", &group, &error), -EXDEV);
	assert_int_not_equal(resolve(world, "/escape", &group, &error), 0);
	assert_int_not_equal(resolve(world, "/../elsewhere", &group, &error), 0);
	assert_int_equal(cgroup_resolve(&none, "/x", &group, &error), -ENOENT);
	assert_non_null(strstr(error.text, "--cgroupns=host"));
}

static void next(const char **text, bool v1, const char *controllers, const char *path)
{
	struct cgroup_line line;

	assert_true(cgroup_next_line(text, &line));
	assert_int_equal(line.v1, v1);
	assert_int_equal(line.controllers_len, strlen(controllers));
	assert_memory_equal(line.controllers, controllers, line.controllers_len);
	assert_int_equal(line.path_len, strlen(path));
	assert_memory_equal(line.path, path, line.path_len);
}

static void reads_the_groups_of_a_process(void **state)
{
	const char *text = "12:cpu,cpuacct:/docker/0af\n"
			   "1:name=systemd:/user.slice\n"
			   "nonsense\n7\n8:\n9:x\n"
			   "5:memory:/kubepods-pod1.slice:cri-containerd:0af\n"
			   "0::/gone.scope (deleted)\n"
			   "0::/../web\n"
			   "0::/";
	struct cgroup_line line;

	(void)state;
	next(&text, true, "cpu,cpuacct", "/docker/0af");
	next(&text, true, "name=systemd", "/user.slice");
	next(&text, true, "memory", "/kubepods-pod1.slice:cri-containerd:0af");
	next(&text, false, "", "/gone.scope");
	next(&text, false, "", "/../web");
	next(&text, false, "", "/");
	assert_false(cgroup_next_line(&text, &line));
	assert_false(cgroup_next_line(&text, &line));
}

static void knows_who_is_in_a_group(void **state)
{
	const struct cgroup v2 = {.path = "/web.slice"}, root = {.path = "/"};
	const struct cgroup memory = {.v1 = true, .controller = "memory", .path = "/web.slice"};
	const struct cgroup cpuacct = {.v1 = true, .controller = "cpuacct", .path = "/a"};

	(void)state;
	assert_true(cgroup_holds(&v2, "4:memory:/\n0::/web.slice\n"));
	assert_true(cgroup_holds(&v2, "0::/web.slice/a/b\n"));
	assert_false(cgroup_holds(&v2, "0::/web.slices\n"));
	assert_false(cgroup_holds(&v2, "0::/web\n"));
	assert_false(cgroup_holds(&v2, "4:memory:/web.slice\n0::/\n"));
	assert_true(cgroup_holds(&root, "0::/anything\n"));
	assert_false(cgroup_holds(&root, "4:memory:/anything\n"));
	assert_true(cgroup_holds(&memory, "4:memory:/web.slice/x\n0::/\n"));
	assert_false(cgroup_holds(&memory, "4:pids:/web.slice\n0::/web.slice\n"));
	assert_true(cgroup_holds(&cpuacct, "4:cpu,cpuacct:/a\n"));
	assert_false(cgroup_holds(&cpuacct, "4:cpu,cpuacct2:/a\n"));
	assert_false(cgroup_holds(&v2, ""));
}

static void locates_a_container(void **state)
{
	const struct world *world = *state;
	struct cgroup group;
	struct cgroup_line line;
	const char *text = "0::/web.slice/a\n";
	struct error error;

	assert_true(cgroup_next_line(&text, &line));
	assert_int_equal(cgroup_locate(&world->mounts, &line, 10, &group, &error), 0);
	assert_string_equal(group.path, "/web.slice");
	assert_true(group.id == inode(world, "/v2/web.slice"));
	/* From a cgroup namespace of its own pybpf sees others above itself. */
	text = "0::/../docker-1.scope\n";
	assert_true(cgroup_next_line(&text, &line));
	assert_int_equal(cgroup_locate(&world->mounts, &line, line.path_len, &group, &error), -ENOENT);
	assert_non_null(strstr(error.text, "namespace of its own"));
	assert_non_null(strstr(error.text, "--cgroupns=host"));
}

static void groups_must_share_a_hierarchy(void **state)
{
	struct cgroup groups[3] = {{.directory = "/a"}, {.directory = "/b"}, {.directory = "/c"}};
	struct error error;

	(void)state;
	assert_int_equal(cgroup_check_hierarchy(groups, 0, &error), 0);
	assert_int_equal(cgroup_check_hierarchy(groups, 3, &error), 0);
	groups[2].v1 = true;
	strcpy(groups[2].controller, "memory");
	assert_int_equal(cgroup_check_hierarchy(groups, 3, &error), -EXDEV);
	assert_non_null(strstr(error.text, "/a and /c"));
	assert_non_null(strstr(error.text, "v2 and memory"));
	assert_int_equal(cgroup_check_hierarchy(groups, 2, &error), 0);
	groups[0] = groups[1] = groups[2];
	assert_int_equal(cgroup_check_hierarchy(groups, 3, &error), 0);
	strcpy(groups[1].controller, "cpu");
	assert_int_equal(cgroup_check_hierarchy(groups, 3, &error), -EXDEV);
}

static void reads_this_machine(void **state)
{
	struct cgroup_mounts mounts;
	char *text;

	(void)state;
	assert_int_equal(cgroup_mounts_read(&mounts), 0);
	cgroup_mounts_free(&mounts);
	assert_int_equal(cgroup_read_text(getpid(), &text), 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_mounts_of_a_hybrid_host),
		cmocka_unit_test(survives_odd_mountinfos),
		cmocka_unit_test_setup_teardown(resolves_directories, make_world, drop_world),
		cmocka_unit_test_setup_teardown(resolves_paths_inside, make_world, drop_world),
		cmocka_unit_test_setup_teardown(says_what_is_no_group, make_world, drop_world),
		cmocka_unit_test(reads_the_groups_of_a_process),
		cmocka_unit_test(knows_who_is_in_a_group),
		cmocka_unit_test_setup_teardown(locates_a_container, make_world, drop_world),
		cmocka_unit_test(groups_must_share_a_hierarchy),
		cmocka_unit_test(reads_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
