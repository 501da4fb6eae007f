// SPDX-License-Identifier: Apache-2.0
/* Paths of cgroups as the runtimes make them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container/container.h"
#include "container/internal.h"
#include "container/state.h"

#define ID    "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970"
#define ID2   "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"
#define UID   "72f7f152-440c-66ac-9084-e0fc1d8a910c"
#define UID_  "72f7f152_440c_66ac_9084_e0fc1d8a910c"
#define BURST "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"

static bool parse(const char *path, size_t *at, struct container *out)
{
	return container_parse_path(path, strlen(path), at, out);
}

static void knows_the_runtimes_paths(void **state)
{
	static const struct {
		const char *path, *rest, *id, *runtime, *pod; /* rest: what lies below the container's own group */
	} cases[] = {
		{"/system.slice/docker-" ID ".scope", "", ID, "docker", ""},
		{"/docker/" ID, "", ID, "docker", ""},
		{"/docker/" ID "/init.scope", "/init.scope", ID, "docker", ""},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" ID ".scope", "", ID, "docker", ""},
		{BURST "/cri-containerd-" ID ".scope", "", ID, "containerd", UID},
		{BURST "/docker-" ID ".scope", "", ID, "docker", UID},
		{BURST "/crio-" ID ".scope", "", ID, "crio", UID},
		{BURST "/crio-" ID ".scope/container", "/container", ID, "crio", UID},
		{"/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope", "", ID, "containerd", UID},
		{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
		 "kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID ".scope",
		 "", ID, "containerd", UID},
		{"/kubepods/burstable/pod" UID "/" ID, "", ID, "oci", UID},
		{"/kubepods/pod" UID "/crio-" ID, "", ID, "crio", UID},
		{"/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" ID, "", ID,
		 "containerd", UID},
		/* A static pod's UID is a hash of its file. */
		{"/kubepods/burstable/podb0c5ed8d4a5d6f8c1e2f3a4b5c6d7e8f/" ID, "", ID, "oci",
		 "b0c5ed8d4a5d6f8c1e2f3a4b5c6d7e8f"},
		{"/k8s.io/" ID, "", ID, "oci", ""},
		{"/system.slice/nerdctl-" ID ".scope", "", ID, "containerd", ""},
		{"/machine.slice/libpod-" ID ".scope", "", ID, "podman", ""},
		{"/machine.slice/libpod-" ID ".scope/container", "/container", ID, "podman", ""},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "/container",
		 ID, "podman", ""},
		{"/libpod_parent/libpod-" ID, "", ID, "podman", ""},
		{"/system.slice/web.service/libpod-payload-" ID, "", ID, "podman", ""},
		{"/lxc.payload.web", "", "web", "lxc", ""},
		{"/lxc.payload.web/system.slice/ssh.service", "/system.slice/ssh.service", "web", "lxc", ""},
		{"/lxc/web-1", "", "web-1", "lxc", ""},
		{"/machine.slice/machine-web\\x2d1.scope/payload", "/payload", "web-1", "nspawn", ""},
		{"/machine.slice/systemd-nspawn@web.service/payload", "/payload", "web", "nspawn", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct container container;
		size_t at = 0;

		if (!parse(cases[i].path, &at, &container))
			fail_msg("no container in %s", cases[i].path);
		assert_string_equal(container.id, cases[i].id);
		assert_string_equal(container.runtime, cases[i].runtime);
		assert_string_equal(container.pod_uid, cases[i].pod);
		assert_string_equal(cases[i].path + at, cases[i].rest);
		assert_false(parse(cases[i].path, &at, &container));
	}
}

static void knows_what_is_no_container(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/../..",
		"/init.scope",
		"/user.slice/user-1000.slice/session-3.scope",
		"/system.slice/docker.service",
		"/system.slice/containerd.service",
		"/docker/buildkit/abcdefghijklmnopqrstuvwxy",
		"/machine.slice/libpod-conmon-" ID ".scope",
		"/machine.slice/crio-conmon-" ID ".scope",
		"/libpod_parent/libpod-conmon-" ID,
		"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
		"/lxc.monitor.web",
		"/lxc.payload.",
		"/lxc",
		"/machine-.scope",
		"/machine-x.slice",
		"/system.slice/docker-" ID "0.scope",
		"/docker/4F797C539E6C745DE61A93CA3FF892358ECBCACCD8414D5DB545C38428142970",
		"/kubepods/burstable/pod" UID,
		BURST,
		BURST "/crio-conmon-" ID ".scope",
		"/x.slice:cri-containerd:",
		"/:::",
		/* Longer than an ID that can be kept. */
		"/lxc.payload."
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct container container;
		size_t at = 0;

		if (parse(paths[i], &at, &container))
			fail_msg("%s is no container's, and was taken for that of %s", paths[i], container.id);
		assert_int_equal(at, 0);
	}
}

static void goes_from_the_outermost_to_the_innermost(void **state)
{
	static const char path[] =
		"/docker/" ID "/kubelet.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID2 ".scope/x";
	struct container container;
	size_t at = 0;

	(void)state;
	assert_true(parse(path, &at, &container));
	assert_string_equal(container.id, ID);
	assert_string_equal(container.pod_uid, "");
	assert_string_equal(path + at, "/kubelet.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID2 ".scope/x");
	assert_true(parse(path, &at, &container));
	assert_string_equal(container.id, ID2);
	assert_string_equal(container.runtime, "containerd");
	assert_string_equal(container.pod_uid, UID);
	assert_string_equal(path + at, "/x");
	assert_false(parse(path, &at, &container));
}

/* The end of the path is where its length says, not where the text ends. */
static void reads_no_further_than_the_path(void **state)
{
	static const char text[] = "/docker/" ID "0\n0::/";
	struct container container;
	size_t at = 0;

	(void)state;
	assert_true(container_parse_path(text, strlen("/docker/" ID), &at, &container));
	at = 0;
	assert_false(container_parse_path(text, strlen("/docker/" ID) + 1, &at, &container));
	for (size_t len = 0; len < strlen("/docker/" ID); len++) {
		at = 0;
		assert_false(container_parse_path(text, len, &at, &container));
	}
}

static void matches_ids_and_names(void **state)
{
	const struct container docker = {.id = ID, .name = "web"};
	const struct container pod = {.id = ID2, .name = "shop-7f9/web"};

	(void)state;
	assert_true(container_matches(&docker, "4f79"));
	assert_true(container_matches(&docker, ID));
	assert_true(container_matches(&docker, "web"));
	assert_false(container_matches(&docker, "4f7"));
	assert_false(container_matches(&docker, "we"));
	assert_false(container_matches(&docker, "webs"));
	assert_false(container_matches(&docker, ID "0"));
	assert_false(container_matches(&docker, ""));
	assert_true(container_matches(&pod, "shop-7f9/web"));
	assert_true(container_matches(&pod, "web"));
	assert_false(container_matches(&pod, "shop-7f9"));
}

static void matches_names_patterns_and_ids(void **state)
{
	static const struct container web = {.id = ID, .name = "web", .runtime = "docker"};
	static const struct container pod = {.id = ID2, .name = "shop-7f9/app", .runtime = "containerd"};
	static const struct {
		const char *query;
		bool web, pod;
	} cases[] = {
		{"web", true, false},         {"we", false, false},
		{"w*", true, false},          {"*", true, true},
		{"[vw]eb", true, false},      {"docker:web", true, false},
		{"docker:w*", true, false},   {"podman:web", false, false},
		{"docker:*", true, false},    {"4f79", true, false},
		{"docker:4f79", true, false}, {"4f7", false, false},
		{"4f*", true, false},         {"app", false, true},
		{"a*", false, true},          {"shop-7f9/app", false, true},
		{"shop-*/app", false, true},  {"containerd:app", false, true},
		{":", false, false},          {"docker:", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (container_matches(&web, cases[i].query) != cases[i].web ||
		    container_matches(&pod, cases[i].query) != cases[i].pod)
			fail_msg("%s", cases[i].query);
	}
}

static const char *docker_root(const char *inside, const char *outside)
{
	static char root[64];
	char *shown = strdup(inside), *host = strdup(outside);
	bool found = container_find_docker_root(shown, host, ID, root, sizeof(root));

	free(shown);
	free(host);
	return found ? root : NULL;
}

static void finds_dockers_directory(void **state)
{
	static const char inside[] =
		"9 8 0:70 / / rw - overlay overlay rw,lowerdir=/x\n"
		"10 9 8:2 /data/containers/" ID2 "/hosts /srv rw - ext4 /dev/sda2 rw\n"
		"11 9 8:1 /containers/old/containers/" ID "/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n";
	static const char alone[] = "11 9 0:41 /containers/" ID "/hosts /etc/hosts rw - btrfs /dev/sdb rw\n";
	static const char of_a_group[] =
		"11 9 0:28 /a\\040b/containers/" ID "/hosts /etc/hosts rw - btrfs /dev/sdb rw\n";

	(void)state;
	assert_string_equal(docker_root(inside, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"), "/containers/old");
	/* The mount that has most of the path, of those of this device that are above it. */
	assert_string_equal(docker_root(inside, "1 0 8:1 / /all rw - ext4 /dev/sda1 rw\n"
						"2 1 8:1 /containers /c rw shared:1 - ext4 /dev/sda1 rw\n"
						"3 1 8:1 /containers/o /o rw - ext4 /dev/sda1 rw\n"
						"4 1 8:2 /containers/old /other rw - ext4 /dev/sda2 rw\n"),
			    "/c/old");
	assert_string_equal(docker_root(alone, "1 0 0:41 / /var/lib/docker rw - btrfs /dev/sdb rw\n"),
			    "/var/lib/docker");
	assert_string_equal(docker_root(of_a_group, "1 0 0:28 /a\\040b /my\\040disk rw - btrfs /dev/sdb rw\n"),
			    "/my disk");
	assert_null(docker_root(inside, "1 0 8:3 / / rw - ext4 /dev/sda3 rw\n"));
	assert_null(docker_root("9 8 0:70 / / rw - overlay overlay rw\n", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"));
	/* Longer than there is room. */
	assert_null(docker_root(
		inside, "1 0 8:1 / /123456789012345678901234567890123456789012345678901234567890 rw - ext4 x rw\n"));
	assert_null(docker_root("", "\n \nx - \n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_the_runtimes_paths),
		cmocka_unit_test(knows_what_is_no_container),
		cmocka_unit_test(goes_from_the_outermost_to_the_innermost),
		cmocka_unit_test(reads_no_further_than_the_path),
		cmocka_unit_test(matches_ids_and_names),
		cmocka_unit_test(matches_names_patterns_and_ids),
		cmocka_unit_test(finds_dockers_directory),
	};

	/* Nothing of this machine's runtimes. */
	state_set_root("/proc/self/fdinfo");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
