// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the state files of container runtimes. They belong to root, or to a user who runs containers without root, and
 * may contain anything: they are opened below one root, never waited for (a FIFO), and read up to a limit. No other
 * file uses jansson.
 */
#include "container/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/activity.h"
#include "base/io.h"
#include "base/path_below.h"
#include "container/internal.h"

/*
 * Most bytes of a state file. Docker's and containerd's have some 5 to 50 KiB, podman's list 1 KiB for each container.
 */
#define STATE_FILE_MAX   (4 * 1024 * 1024)
#define CONTAINERD_TASKS "io.containerd.runtime.v2.task"

static const char *const own_runtimes[] = {"crun", "runc"};
static const char *const containerd_roots[] = {"/run/containerd", "/run/k3s/containerd",
					       "/var/snap/microk8s/common/run/containerd"};
static const char *root_path;

void state_set_root(const char *path)
{
	root_path = path;
}

static bool can_open(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

const char *state_get_root(void)
{
	if (root_path)
		return root_path;
	if (can_open("/proc/1/root"))
		return "/proc/1/root";
	/* Any root file system has /etc; a directory of the host's that happens to be called so has not. */
	return can_open(STATE_HOST "/etc") ? STATE_HOST : "/";
}

/* Opens a path below the root, wherever links on the way point. Returns a descriptor or negative errno. */
static int open_below(const char *path, int flags)
{
	int root = open(state_get_root(), O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (root < 0)
		return -errno;
	activity_set(path);
	fd = path_below_open(root, path, flags);
	close(root);
	return fd;
}

/* Returns the JSON in a regular file, or NULL. */
static json_t *load(const char *path)
{
	json_t *json = NULL;
	char *text = NULL;
	struct stat st;
	ssize_t len;
	int fd = open_below(path, O_RDONLY | O_NOFOLLOW);

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= STATE_FILE_MAX)
		text = malloc(st.st_size + 1);
	len = text ? io_read_at(fd, text, st.st_size + 1, 0) : -1;
	/* A file that grew meanwhile is about to be replaced. */
	if (len > 0 && len <= st.st_size)
		json = json_loadb(text, len, 0, NULL);
	free(text);
	close(fd);
	return json;
}

static const char *string_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Calls visit for each name in a directory until it returns non-zero, and returns that. */
static int each_entry(const char *path, int (*visit)(const char *name, void *arg), void *arg)
{
	int fd = open_below(path, O_RDONLY | O_DIRECTORY), ret = 0;
	const struct dirent *entry;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = visit(entry->d_name, arg);
	closedir(dir);
	return ret;
}

static bool set_name(struct container *container, const char *runtime, const char *name)
{
	if (!name || !name[0])
		return false;
	snprintf(container->name, sizeof(container->name), "%s", name);
	snprintf(container->runtime, sizeof(container->runtime), "%s", runtime);
	return true;
}

/* Takes what is written beside the name, where it is. A text that has no room would be another one. */
static void set_facts(struct container *container, const char *space, const char *image)
{
	if (space && strlen(space) < sizeof(container->space))
		snprintf(container->space, sizeof(container->space), "%s", space);
	if (image && strlen(image) < sizeof(container->image))
		snprintf(container->image, sizeof(container->image), "%s", image);
}

static bool set_pod_name(struct container *container, const char *runtime, const char *pod, const char *name)
{
	char whole[sizeof(container->name)];

	if (!pod || !name)
		return set_name(container, runtime, name ?: pod);
	snprintf(whole, sizeof(whole), "%s/%s", pod, name);
	return set_name(container, runtime, whole);
}

/* Writes docker's data directory to out: the option data-root in the daemon's file, or the default. */
static void docker_root(char *out, size_t size)
{
	json_t *daemon = load("/etc/docker/daemon.json");

	snprintf(out, size, "%s", string_at(daemon, "data-root") ?: "/var/lib/docker");
	json_decref(daemon);
}

bool state_read_docker_name(const char *root, struct container *container)
{
	const char *name;
	char path[4352];
	json_t *json;
	bool found;

	snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", root, container->id);
	json = load(path);
	name = string_at(json, "Name");
	found = set_name(container, "docker", name && name[0] == '/' ? name + 1 : name);
	set_facts(container, NULL, string_at(json_object_get(json, "Config"), "Image"));
	json_decref(json);
	return found;
}

struct containerd_search {
	const char *root;
	struct container *container;
};

/* Reads the name from the annotations of containerd's CRI plugin (pkg/cri/annotations) or of nerdctl (pkg/labels). */
static int containerd_name_in(const char *space, void *arg)
{
	const struct containerd_search *search = arg;
	struct container *container = search->container;
	const json_t *annotations;
	char path[1024];
	json_t *json;
	bool found;

	snprintf(path, sizeof(path), "%s/" CONTAINERD_TASKS "/%s/%s/config.json", search->root, space, container->id);
	json = load(path);
	annotations = json_object_get(json, "annotations");
	found = set_pod_name(container, "containerd", string_at(annotations, "io.kubernetes.cri.sandbox-name"),
			     string_at(annotations, "io.kubernetes.cri.container-name")) ||
		set_name(container, "containerd", string_at(annotations, "nerdctl/name"));
	set_facts(container, string_at(annotations, "io.kubernetes.cri.sandbox-namespace"),
		  string_at(annotations, "io.kubernetes.cri.image-name"));
	json_decref(json);
	return found;
}

static bool containerd_name(struct container *container)
{
	for (size_t i = 0; i < sizeof(containerd_roots) / sizeof(containerd_roots[0]); i++) {
		struct containerd_search search = {.root = containerd_roots[i], .container = container};
		char path[256];

		snprintf(path, sizeof(path), "%s/" CONTAINERD_TASKS, search.root);
		if (each_entry(path, containerd_name_in, &search))
			return true;
	}
	return false;
}

bool state_has_containerd(const char *space, size_t space_len, const char *id, size_t id_len)
{
	for (size_t i = 0; i < sizeof(containerd_roots) / sizeof(containerd_roots[0]); i++) {
		char path[1024];
		int fd;

		snprintf(path, sizeof(path), "%s/" CONTAINERD_TASKS "/%.*s/%.*s", containerd_roots[i], (int)space_len,
			 space, (int)id_len, id);
		fd = open_below(path, O_PATH | O_DIRECTORY);
		if (fd >= 0) {
			close(fd);
			return true;
		}
	}
	return false;
}

/* Reads the name from annotations of CRI-O (internal/annotations), which hands them to the runtime. */
static bool crio_name(struct container *container)
{
	static const char *const roots[] = {"/run/containers/storage", "/var/lib/containers/storage"};
	bool found = false;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]) && !found; i++) {
		const json_t *annotations;
		char path[1024];
		json_t *json;

		snprintf(path, sizeof(path), "%s/overlay-containers/%s/userdata/config.json", roots[i], container->id);
		json = load(path);
		annotations = json_object_get(json, "annotations");
		found = set_pod_name(container, "crio", string_at(annotations, "io.kubernetes.pod.name"),
				     string_at(annotations, "io.kubernetes.container.name"));
		set_facts(container, string_at(annotations, "io.kubernetes.pod.namespace"),
			  string_at(annotations, "io.kubernetes.cri-o.ImageName"));
		json_decref(json);
	}
	return found;
}

/*
 * Writes the home directory of a user of the host, whose list of users may differ from that of pybpf's own container.
 */
static void home_of(unsigned uid, char *out, size_t size)
{
	int fd = open_below("/etc/passwd", O_RDONLY);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct passwd *user;

	out[0] = '\0';
	if (!file) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((user = fgetpwent(file))) {
		if (user->pw_uid != uid)
			continue;
		snprintf(out, size, "%s", user->pw_dir);
		break;
	}
	fclose(file);
}

/*
 * Calls visit for each container of containers/storage: those in its persistent list, and those in the list that a
 * reboot removes.
 */
static int each_podman(unsigned uid, int (*visit)(const json_t *entry, void *arg), void *arg)
{
	static const char *const lists[] = {"overlay-containers/containers.json",
					    "overlay-containers/volatile-containers.json",
					    "vfs-containers/containers.json", "btrfs-containers/containers.json"};
	char home[1024], roots[2][1152];
	int ret = 0;

	snprintf(roots[0], sizeof(roots[0]), "/var/lib/containers/storage");
	snprintf(roots[1], sizeof(roots[1]), "/run/containers/storage");
	if (uid) {
		home_of(uid, home, sizeof(home));
		snprintf(roots[0], sizeof(roots[0]), "%s/.local/share/containers/storage", home);
		snprintf(roots[1], sizeof(roots[1]), "/run/user/%u/containers", uid);
	}
	for (size_t i = 0; i < 2 * sizeof(lists) / sizeof(lists[0]) && !ret; i++) {
		const json_t *entry;
		char path[1280];
		json_t *json;
		size_t index;

		snprintf(path, sizeof(path), "%s/%s", roots[i % 2], lists[i / 2]);
		json = load(path);
		json_array_foreach(json, index, entry)
		{
			ret = visit(entry, arg);
			if (ret)
				break;
		}
		json_decref(json);
	}
	return ret;
}

static const char *podman_first_name(const json_t *entry)
{
	return json_string_value(json_array_get(json_object_get(entry, "names"), 0));
}

static int podman_name_in(const json_t *entry, void *arg)
{
	struct container *container = arg;
	const char *id = string_at(entry, "id"), *metadata = string_at(entry, "metadata");
	json_t *more;

	if (!id || strcmp(id, container->id) != 0 || !set_name(container, "podman", podman_first_name(entry)))
		return 0;
	/* podman's own part is JSON in a text. */
	more = metadata ? json_loads(metadata, 0, NULL) : NULL;
	set_facts(container, NULL, string_at(more, "image-name"));
	json_decref(more);
	return 1;
}

int state_read_name(struct container *container, unsigned uid)
{
	const char *runtime = container->runtime;
	bool any = !strcmp(runtime, "oci"), found = false;
	char root[4096];

	if (any || !strcmp(runtime, "docker")) {
		docker_root(root, sizeof(root));
		found = state_read_docker_name(root, container);
	}
	if (!found && (any || !strcmp(runtime, "containerd")))
		found = containerd_name(container);
	if (!found && (any || !strcmp(runtime, "crio")))
		found = crio_name(container);
	if (!found && (any || !strcmp(runtime, "podman")))
		found = each_podman(uid, podman_name_in, container);
	if (found)
		return 0;
	/* The beginning of a chosen ID, such as shop-web-1, could be another container's, too. */
	snprintf(container->name, sizeof(container->name), "%.*s",
		 container_is_full_id(container->id, strlen(container->id)) ? CONTAINER_SHORT_ID : -1, container->id);
	return -ENOENT;
}

void state_read_stamp(struct state_stamp *out)
{
	*out = (struct state_stamp){.seconds = {0}};
	for (size_t i = 0; i < 2; i++) {
		char path[64];
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "/run/%s", own_runtimes[i]);
		fd = open_below(path, O_PATH | O_DIRECTORY);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st)) {
			out->seconds[i] = st.st_mtim.tv_sec;
			out->nanoseconds[i] = st.st_mtim.tv_nsec;
		}
		close(fd);
	}
}

struct own_search {
	const char *runtime;
	struct cgroup_mounts mounts;
	int (*visit)(const struct container *container, const char *cgroup, void *arg);
	void *arg;
	size_t unfinished;
};

/*
 * Returns the cgroup of runc's container, or NULL. runc writes, by controller, the directories in the mounts where it
 * made the groups; "" is v2's.
 */
static const char *runc_cgroup(const struct own_search *search, const json_t *state, char *out, size_t size)
{
	static const char *const keys[] = {"", "memory", "pids", "cpu", "freezer", "devices"};
	const json_t *paths = json_object_get(state, "cgroup_paths");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *directory = string_at(paths, keys[i]);

		if (directory && cgroup_find_path(&search->mounts, directory, out, size))
			return out;
	}
	/*
	 * runc's mounts differ from those here: return the path that it was asked for, which systemd's way does not
	 * have.
	 */
	return string_at(json_object_get(json_object_get(state, "config"), "cgroups"), "path");
}

static int visit_own(const char *id, void *arg)
{
	struct own_search *search = arg;
	struct container container = {.id = ""};
	const char *cgroup;
	char path[512], inside[PATH_MAX];
	bool crun = !strcmp(search->runtime, "crun");
	json_t *state;
	int ret;

	if (strlen(id) >= sizeof(container.id))
		return 0;
	snprintf(path, sizeof(path), "/run/%s/%s/%s", search->runtime, id, crun ? "status" : "state.json");
	state = load(path);
	if (!state) {
		search->unfinished++;
		return 0;
	}
	snprintf(container.id, sizeof(container.id), "%s", id);
	snprintf(container.name, sizeof(container.name), "%s", id);
	snprintf(container.runtime, sizeof(container.runtime), "%s", search->runtime);
	cgroup = crun ? string_at(state, "cgroup-path") : runc_cgroup(search, state, inside, sizeof(inside));
	/* Every process is below the root group: a container without a group of its own cannot be distinguished from
	 * others. */
	if (cgroup && (cgroup[0] != '/' || !cgroup[1]))
		cgroup = NULL;
	ret = search->visit(&container, cgroup, search->arg);
	json_decref(state);
	return ret;
}

int state_each(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg,
	       size_t *unfinished)
{
	struct own_search search = {.visit = visit, .arg = arg};
	int ret = 0;

	/* Without mounts the paths of runc's containers are unknown; go on without them. */
	if (cgroup_mounts_read(&search.mounts))
		search.mounts.count = 0;
	for (size_t i = 0; i < 2 && !ret; i++) {
		char path[64];

		search.runtime = own_runtimes[i];
		snprintf(path, sizeof(path), "/run/%s", search.runtime);
		ret = each_entry(path, visit_own, &search);
	}
	cgroup_mounts_free(&search.mounts);
	*unfinished = search.unfinished;
	return ret;
}

static int visit_docker(const char *id, void *arg)
{
	struct own_search *search = arg;
	struct container container = {.id = ""};
	char root[4096];

	if (strlen(id) >= sizeof(container.id))
		return 0;
	snprintf(container.id, sizeof(container.id), "%s", id);
	docker_root(root, sizeof(root));
	return state_read_docker_name(root, &container) ? search->visit(&container, NULL, search->arg) : 0;
}

static int visit_podman(const json_t *entry, void *arg)
{
	struct own_search *search = arg;
	struct container container = {.id = ""};

	snprintf(container.id, sizeof(container.id), "%s", string_at(entry, "id") ?: "");
	return set_name(&container, "podman", podman_first_name(entry)) ? search->visit(&container, NULL, search->arg)
									: 0;
}

int state_each_stored(int (*visit)(const struct container *container, const char *cgroup, void *arg), void *arg)
{
	struct own_search search = {.visit = visit, .arg = arg};
	char root[4096], path[4352];
	int ret;

	docker_root(root, sizeof(root));
	snprintf(path, sizeof(path), "%s/containers", root);
	ret = each_entry(path, visit_docker, &search);
	return ret ?: each_podman(0, visit_podman, &search);
}
