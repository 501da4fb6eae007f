// SPDX-License-Identifier: Apache-2.0
/* What runtimes keep of their containers, in a root file system of its own, well-formed and hostile. */
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

#include "container/internal.h"
#include "container/state.h"

#define ID     "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970"
#define ID2    "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"
#define DOCKER "/var/lib/docker/containers/" ID "/config.v2.json"
#define TASKS  "/run/containerd/io.containerd.runtime.v2.task/"
#define PODMAN "/var/lib/containers/storage/overlay-containers/containers.json"

static char root[64];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/pybpf-state-XXXXXX");
	assert_non_null(mkdtemp(root));
	state_set_root(root);
	return 0;
}

static int drop_root(void **state)
{
	char command[128];

	(void)state;
	state_set_root(NULL);
	snprintf(command, sizeof(command), "rm -r %s", root);
	/* NOLINTNEXTLINE(bugprone-command-processor): a path of our own */
	return system(command);
}

/* The path in the root, whose directories are made. */
static const char *place(const char *path)
{
	static char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(whole, 0755))
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
	return whole;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(place(path), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void check_name(const char *id, const char *runtime, unsigned uid, const char *name, const char *found)
{
	struct container container = {.id = ""};

	strcpy(container.id, id);
	strcpy(container.runtime, runtime);
	assert_int_equal(state_read_name(&container, uid), name ? 0 : -ENOENT);
	if (name)
		assert_string_equal(container.name, name);
	else
		assert_memory_equal(container.name, id, 13 > strlen(id) + 1 ? strlen(id) + 1 : 12);
	assert_string_equal(container.runtime, found);
}

static void check_facts(const char *id, const char *runtime, const char *space, const char *image)
{
	struct container container = {.id = ""};

	strcpy(container.id, id);
	strcpy(container.runtime, runtime);
	assert_int_equal(state_read_name(&container, 0), 0);
	assert_string_equal(container.space, space);
	assert_string_equal(container.image, image);
}

/* What stands beside the names. A text without room is left out, as its beginning would name another image. */
static void reads_images_and_namespaces(void **state)
{
	char wide[1024];

	(void)state;
	put(DOCKER, "{\"Name\":\"/web-1\",\"Config\":{\"Image\":\"registry:5000/shop:1.4\"}}");
	check_facts(ID, "docker", "", "registry:5000/shop:1.4");
	snprintf(wide, sizeof(wide), "{\"Name\":\"/web-1\",\"Config\":{\"Image\":\"%0200d\"}}", 1);
	put(DOCKER, wide);
	check_facts(ID, "docker", "", "");
	put(DOCKER, "{\"Name\":\"/web-1\",\"Config\":[7]}");
	check_facts(ID, "docker", "", "");
	put(TASKS "k8s.io/" ID "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\",\"io.kubernetes.cri.sandbox-name\":\"shop-"
	    "7f9\","
	    "\"io.kubernetes.cri.sandbox-namespace\":\"prod\",\"io.kubernetes.cri.image-name\":\"docker.io/shop:2\"}}");
	check_facts(ID, "containerd", "prod", "docker.io/shop:2");
	put("/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.container.name\":\"app\",\"io.kubernetes.pod.name\":\"shop-1\","
	    "\"io.kubernetes.pod.namespace\":\"test\",\"io.kubernetes.cri-o.ImageName\":\"quay.io/shop:3\"}}");
	check_facts(ID, "crio", "test", "quay.io/shop:3");
	put(PODMAN,
	    "[{\"id\":\"" ID2 "\",\"names\":[\"bee\"],\"metadata\":\"{\\\"image-name\\\":\\\"localhost/shop:4\\\"}\"},"
	    "{\"id\":\"" ID "\",\"names\":[\"ant\"],\"metadata\":\"{\"}]");
	check_facts(ID2, "podman", "", "localhost/shop:4");
	check_facts(ID, "podman", "", "");
}

static void reads_docker(void **state)
{
	(void)state;
	put(DOCKER, "{\"State\":{\"Running\":true},\"ID\":\"" ID "\",\"Name\":\"/web-1\",\"Driver\":\"overlay2\"}");
	check_name(ID, "docker", 0, "web-1", "docker");
	/* From a path that docker and containerd share. */
	check_name(ID, "oci", 0, "web-1", "docker");
	check_name(ID2, "docker", 0, NULL, "docker");
	put("/etc/docker/daemon.json", "{\"data-root\": \"/srv/docker\"}");
	check_name(ID, "docker", 0, NULL, "docker");
	put("/srv/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/moved\"}");
	check_name(ID, "docker", 0, "moved", "docker");
}

static void reads_containerd(void **state)
{
	(void)state;
	put(TASKS "k8s.io/" ID "/config.json",
	    "{\"ociVersion\":\"1.1.0\",\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
	    "\"io.kubernetes.cri.container-type\":\"container\",\"io.kubernetes.cri.sandbox-name\":\"shop-7f9\"}}");
	check_name(ID, "containerd", 0, "shop-7f9/app", "containerd");
	check_name(ID, "oci", 0, "shop-7f9/app", "containerd");
	put(TASKS "default/" ID2 "/config.json",
	    "{\"annotations\":{\"nerdctl/name\":\"cache\",\"nerdctl/state-dir\":\"/x\"}}");
	check_name(ID2, "containerd", 0, "cache", "containerd");
	put(TASKS "default/redis/config.json", "{}");
	assert_true(state_has_containerd("default", 7, "redis", 5));
	assert_false(state_has_containerd("default", 7, "redis2", 6));
	check_name("redis", "containerd", 0, NULL, "containerd");
}

/* Only the beginning of an ID that a runtime made tells it from others. */
static void a_chosen_id_is_a_whole_name(void **state)
{
	static const char *const ids[] = {"production-web-1", "production-web-2"}, *const runtimes[] = {"lxc",
													"nspawn"};
	char names[2][256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct container container = {.id = ""};

		strcpy(container.id, ids[i]);
		strcpy(container.runtime, runtimes[i]);
		assert_int_equal(state_read_name(&container, 0), -ENOENT);
		assert_string_equal(container.name, ids[i]);
		strcpy(names[i], container.name);
	}
	assert_string_not_equal(names[0], names[1]);
}

/* A client of containerd's own gives any ID. */
static void knows_containers_of_ctr(void **state)
{
	struct container container;
	size_t at = 0;

	(void)state;
	put(TASKS "default/redis/config.json", "{}");
	assert_true(container_parse_path("/default/redis", 14, &at, &container));
	assert_string_equal(container.id, "redis");
	assert_string_equal(container.runtime, "containerd");
	at = 0;
	assert_false(container_parse_path("/default/other", 14, &at, &container));
	/* With a private cgroup namespace other groups are above its root, however far. */
	assert_true(container_parse_path("/../../default/redis", 20, &at, &container));
	assert_string_equal(container.id, "redis");
}

/* Neither a parent that leads out of containerd's folder, nor a group above the root of pybpf's cgroup namespace. */
static void dots_are_no_container(void **state)
{
	static const char *const paths[] = {"/../..", "/../../../../system.slice/ssh.service", "/../default", "/lxc/..",
					    "/default/.."};

	(void)state;
	put(TASKS "default/redis/config.json", "{}");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct container container;
		size_t at = 0;

		if (container_parse_path(paths[i], strlen(paths[i]), &at, &container))
			fail_msg("%s was taken for container %s", paths[i], container.id);
	}
}

static void reads_crio_and_podman(void **state)
{
	(void)state;
	put("/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.container.name\":\"app\",\"io.kubernetes.pod.name\":\"shop-1\"}}");
	check_name(ID, "crio", 0, "shop-1/app", "crio");
	put(PODMAN, "[{\"id\":\"x\"},7,{\"id\":\"" ID2 "\",\"names\":[\"quiet_bee\",\"other\"],\"image\":\"i\"}]");
	check_name(ID2, "podman", 0, "quiet_bee", "podman");
	check_name(ID, "podman", 0, NULL, "podman");
	/* What does not survive a reboot is in a list of its own. */
	put("/run/containers/storage/overlay-containers/volatile-containers.json",
	    "[{\"id\":\"" ID "\",\"names\":[\"gone_soon\"]}]");
	check_name(ID, "podman", 0, "gone_soon", "podman");
	/* A user's own containers are below the home that the host's list of users has. */
	put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nann:x:4711:4711::/home/ann:/bin/sh\n");
	put("/home/ann/.local/share/containers/storage/overlay-containers/containers.json",
	    "[{\"id\":\"" ID "\",\"names\":[\"anns\"]}]");
	check_name(ID, "podman", 4711, "anns", "podman");
	check_name(ID, "podman", 4712, NULL, "podman");
}

static void hostile_files_harm_nobody(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"null",
		"[]",
		"{\"Name\":7}",
		"{\"Name\":\"\"}",
		"{\"Name\":\"/\"}",
		"{\"Name\":\"a\\u0000b\"}",
		"{\"Name\":\"\xff\xfe\"}",
	};
	char *deep = calloc(1, 1 << 20), outside[80];
	FILE *out;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(DOCKER, texts[i]);
		check_name(ID, "docker", 0, NULL, "docker");
	}
	memset(deep, '[', (1 << 20) - 1);
	put(DOCKER, deep);
	free(deep);
	check_name(ID, "docker", 0, NULL, "docker");
	/* Too long by far, and sparse. */
	put(DOCKER, "{\"Name\":\"/x\"}");
	assert_int_equal(truncate(place(DOCKER), 1LL << 40), 0);
	check_name(ID, "docker", 0, NULL, "docker");
	/* A FIFO that nobody writes to, a directory, links out of the root and to the file itself. */
	assert_int_equal(unlink(place(DOCKER)), 0);
	assert_int_equal(mkfifo(place(DOCKER), 0600), 0);
	check_name(ID, "docker", 0, NULL, "docker");
	assert_int_equal(unlink(place(DOCKER)), 0);
	assert_int_equal(mkdir(place(DOCKER), 0755), 0);
	check_name(ID, "docker", 0, NULL, "docker");
	assert_int_equal(rmdir(place(DOCKER)), 0);
	snprintf(outside, sizeof(outside), "%s.outside", root);
	out = fopen(outside, "w");
	assert_non_null(out);
	fputs("{\"Name\":\"/stolen\"}", out);
	fclose(out);
	assert_int_equal(symlink(outside, place(DOCKER)), 0);
	check_name(ID, "docker", 0, NULL, "docker");
	assert_int_equal(unlink(place(DOCKER)), 0);
	assert_int_equal(rmdir(place("/var/lib/docker/containers/" ID)), 0);
	assert_int_equal(symlink("../../../../../../..", place("/var/lib/docker/containers/" ID)), 0);
	check_name(ID, "docker", 0, NULL, "docker");
	unlink(outside);
	/* A name of any length and content is cut, and printed by who knows how. */
	check_name("../../../etc/passwd", "oci", 0, NULL, "oci");
}

struct seen {
	size_t count;
	char text[512];
};

static int see(const struct container *container, const char *cgroup, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->text);

	seen->count++;
	snprintf(seen->text + len, sizeof(seen->text) - len, "%s %s %s;", container->runtime, container->id,
		 cgroup ?: "none");
	return 0;
}

static void reads_crun_and_runc(void **state)
{
	struct state_stamp before, after;
	struct seen seen = {0};
	size_t unfinished;

	(void)state;
	assert_int_equal(state_each(see, &seen, &unfinished), 0);
	assert_int_equal(seen.count + unfinished, 0);
	state_read_stamp(&before);
	/* As crun 1.8 writes it. */
	put("/run/crun/alpha/status",
	    "{\n    \"pid\": 20127,\n    \"process-start-time\": 2472199,\n    \"cgroup-path\": \"/web/alpha\",\n"
	    "    \"scope\": \"\",\n    \"rootfs\": \"/srv/root\",\n    \"systemd-cgroup\": false,\n    \"bundle\": "
	    "\"/srv\",\n"
	    "    \"created\": \"2026-11-21T06:46:03.270813Z\",\n    \"owner\": \"root\",\n    \"detached\": true,\n"
	    "    \"external_descriptors\": \"[]\"\n}\n");
	put("/run/crun/none/status", "{\"pid\": 1, \"cgroup-path\": \"\"}");
	put("/run/crun/everybody/status", "{\"pid\": 1, \"cgroup-path\": \"/\"}");
	put("/run/crun/making/other", "");
	/* As runc 1.1 does, whose mounts were others than those of this machine. */
	put("/run/runc/beta/state.json",
	    "{\"id\":\"beta\",\"init_process_pid\":19719,\"config\":{\"cgroups\":{\"path\":\"/web/beta\"}},"
	    "\"cgroup_paths\":{\"\":\"/nowhere/web/beta\",\"memory\":\"/nowhere/web/beta\"}}");
	state_read_stamp(&after);
	assert_memory_not_equal(&before, &after, sizeof(before));
	assert_int_equal(state_each(see, &seen, &unfinished), 0);
	assert_int_equal(unfinished, 1);
	assert_int_equal(seen.count, 4);
	assert_non_null(strstr(seen.text, "crun alpha /web/alpha;"));
	assert_non_null(strstr(seen.text, "crun none none;"));
	assert_non_null(strstr(seen.text, "crun everybody none;"));
	assert_non_null(strstr(seen.text, "runc beta /web/beta;"));
}

static void lists_what_is_stored(void **state)
{
	struct seen seen = {0};

	(void)state;
	put(DOCKER, "{\"Name\":\"/web-1\"}");
	put(PODMAN, "[{\"id\":\"" ID2 "\",\"names\":[\"quiet_bee\"]},{\"names\":[]}]");
	assert_int_equal(state_each_stored(see, &seen), 0);
	assert_string_equal(seen.text, "docker " ID " none;podman " ID2 " none;");
}

/* The first of this process's groups that is not a hierarchy's root, or NULL. */
static char *own_cgroup(char *text)
{
	struct cgroup_line line;

	for (const char *rest = text; cgroup_next_line(&rest, &line);)
		if (line.path_len > 1 && line.path[1] != '.')
			return strndup(line.path, line.path_len);
	return NULL;
}

/* The container of crun called "mine" is found by all that mean it, and is named to those who mean none. */
static void check_found_by(struct container_cache *cache, const char *cgroup)
{
	static const char *const means[] = {"mine", "mi*", "m?ne", "[lm]ine", "crun:mine", "crun:m*"};
	static const char *const others[] = {"Mine", "mi", "runc:mine", "yours*", "crun:min"};
	struct container_found found[2];
	struct container_names names;
	struct error error;
	size_t count;

	for (size_t i = 0; i < sizeof(means) / sizeof(*means); i++) {
		int err = container_find(cache, means[i], found, 2, &count, &error);

		if (err == -ENOENT && strstr(error.text, "no cgroup hierarchy")) {
			print_message("the hierarchy of %s is not mounted here\n", cgroup);
			skip();
		}
		assert_int_equal(err, 0);
		assert_int_equal(count, 1);
		assert_string_equal(found[0].container.id, "mine");
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_int_equal(container_find(cache, others[i], found, 2, &count, &error), -ENOENT);
		/* The one that runs is named, as it is near or as one of those that run. */
		assert_non_null(strstr(error.text, "mine (crun)"));
		assert_true(!strstr(error.text, "did you mean") == !strcmp(others[i], "yours*"));
	}
	assert_int_equal(container_find(cache, "mi*", found, 0, &count, &error), -E2BIG);
	assert_int_equal(container_count_names(cache, &names), 0);
	assert_true(names.containers >= 1);
	assert_string_equal(names.root, root);
}

static void check_text(struct container_cache *cache, double now_s, const char *name)
{
	char *text = strdup("0::/default/web/init\n1:name=systemd:/docker/" ID "\n");
	struct container container;
	int err;

	assert_non_null(text);
	err = container_find_by_text(cache, text, getpid(), now_s, &container);
	assert_int_equal(err, 0);
	assert_string_equal(container.name, name);
}

/* A runtime writes names after it has made the group, and may change them. */
static void late_and_changed_names_are_seen(void **state)
{
	struct container_cache *cache = container_cache_new();

	(void)state;
	assert_non_null(cache);
	check_text(cache, 100, "4f797c539e6c");
	put(DOCKER, "{\"Name\":\"/web-1\"}");
	check_text(cache, 100.1, "web-1");
	/* Known for a minute, whatever is written then. */
	put(DOCKER, "{\"Name\":\"/web-2\"}");
	check_text(cache, 159, "web-1");
	check_text(cache, 161, "web-2");
	/* What is not named while it is young is asked for once a minute. */
	assert_int_equal(unlink(place(DOCKER)), 0);
	check_text(cache, 222, "4f797c539e6c");
	put(DOCKER, "{\"Name\":\"/web-3\"}");
	check_text(cache, 280, "4f797c539e6c");
	check_text(cache, 283, "web-3");
	/* Before there was no container at all. */
	put(TASKS "default/web/config.json", "{}");
	check_text(cache, 344, "web");
	container_cache_free(cache);
}

static void finds_the_container_of_a_process(void **state)
{
	struct container_cache *cache = container_cache_new();
	struct container container;
	struct container_found found[2];
	char *text, *cgroup, status[512];
	struct error error;
	size_t count;

	(void)state;
	assert_non_null(cache);
	assert_int_equal(container_find(cache, "absent", found, 2, &count, &error), -ENOENT);
	assert_non_null(strstr(error.text, "absent"));
	assert_int_equal(container_find(cache, "x", found, 2, &count, &error), -ENOENT);
	assert_non_null(strstr(error.text, "4 characters"));
	assert_int_equal(container_find(cache, "absent*", found, 2, &count, &error), -ENOENT);
	assert_non_null(strstr(error.text, "like that"));
	/* One that is known and not running. */
	put("/run/crun/stopped/status", "{\"pid\": 1, \"cgroup-path\": \"/no/such/group\"}");
	assert_int_equal(container_find(cache, "stopped", found, 2, &count, &error), -ENODATA);
	assert_non_null(strstr(error.text, "no process"));

	assert_int_equal(cgroup_read_text(getpid(), &text), 0);
	cgroup = own_cgroup(text);
	free(text);
	if (!cgroup) {
		container_cache_free(cache);
		print_message(
			"this process is in the root of every hierarchy: no container can be made of its group\n");
		skip();
	}
	assert_int_equal(container_find_by_pid(cache, getpid(), &container), -ENOENT);
	snprintf(status, sizeof(status), "{\"cgroup-path\": \"%s\"}", cgroup);
	put("/run/crun/mine/status", status);
	/* It is seen although the answer before is remembered. */
	assert_int_equal(container_find_by_pid(cache, getpid(), &container), 0);
	assert_string_equal(container.id, "mine");
	assert_string_equal(container.name, "mine");
	assert_string_equal(container.runtime, "crun");
	assert_int_equal(container_find_by_pid(cache, getpid(), &container), 0);
	check_found_by(cache, cgroup);
	free(cgroup);
	container_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_images_and_namespaces, make_root, drop_root),
		cmocka_unit_test_setup_teardown(reads_docker, make_root, drop_root),
		cmocka_unit_test_setup_teardown(reads_containerd, make_root, drop_root),
		cmocka_unit_test_setup_teardown(a_chosen_id_is_a_whole_name, make_root, drop_root),
		cmocka_unit_test_setup_teardown(knows_containers_of_ctr, make_root, drop_root),
		cmocka_unit_test_setup_teardown(dots_are_no_container, make_root, drop_root),
		cmocka_unit_test_setup_teardown(reads_crio_and_podman, make_root, drop_root),
		cmocka_unit_test_setup_teardown(hostile_files_harm_nobody, make_root, drop_root),
		cmocka_unit_test_setup_teardown(reads_crun_and_runc, make_root, drop_root),
		cmocka_unit_test_setup_teardown(lists_what_is_stored, make_root, drop_root),
		cmocka_unit_test_setup_teardown(late_and_changed_names_are_seen, make_root, drop_root),
		cmocka_unit_test_setup_teardown(finds_the_container_of_a_process, make_root, drop_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
