// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes containers in the paths of cgroups. The forms are those of runc's and crun's two ways to make groups
 * (systemd's scopes, and plain directories) as docker, containerd, CRI-O, podman and the kubelet ask for them.
 */
#include "container/container.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "container/internal.h"
#include "container/state.h"

/* A component of a path, or a part of it; not terminated. */
struct part {
	const char *text;
	size_t len;
};

static bool equals(struct part part, const char *text)
{
	return part.len == strlen(text) && !memcmp(part.text, text, part.len);
}

static bool cut_prefix(struct part *part, const char *prefix)
{
	size_t len = strlen(prefix);

	if (part->len < len || memcmp(part->text, prefix, len) != 0)
		return false;
	part->text += len;
	part->len -= len;
	return true;
}

static bool cut_suffix(struct part *part, const char *suffix)
{
	size_t len = strlen(suffix);

	if (part->len < len || memcmp(part->text + part->len - len, suffix, len) != 0)
		return false;
	part->len -= len;
	return true;
}

static bool is_full_id(struct part part)
{
	return container_is_full_id(part.text, part.len);
}

static bool set(struct container *out, struct part id, const char *runtime)
{
	if (!id.len || id.len >= sizeof(out->id))
		return false;
	memcpy(out->id, id.text, id.len);
	out->id[id.len] = '\0';
	snprintf(out->runtime, sizeof(out->runtime), "%s", runtime);
	return true;
}

/*
 * Matches docker-ID.scope, libpod-ID; the kubelet's kubepods-….slice:cri-containerd:ID, as containerd itself makes it.
 */
static bool match_full_id(struct part part, struct container *out)
{
	static const struct {
		const char *prefix, *runtime;
	} known[] = {
		{"docker-", "docker"},         {"cri-containerd-", "containerd"},
		{"nerdctl-", "containerd"},    {"crio-", "crio"},
		{"libpod-payload-", "podman"}, {"libpod-", "podman"},
		{"containerd-", "containerd"},
	};

	cut_suffix(&part, ".scope");
	for (const char *colon; (colon = memchr(part.text, ':', part.len));) {
		struct part rest = {colon + 1, part.len - (colon + 1 - part.text)};

		if (cut_prefix(&rest, "cri-containerd:") && is_full_id(rest))
			return set(out, rest, "containerd");
		part = (struct part){colon + 1, part.len - (colon + 1 - part.text)};
	}
	if (is_full_id(part))
		return set(out, part, "oci");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct part id = part;

		/* The group of a conmon has more than the ID after the prefix. */
		if (cut_prefix(&id, known[i].prefix) && is_full_id(id))
			return set(out, id, known[i].runtime);
	}
	return false;
}

/* Undoes systemd's escapes: characters that a unit's name cannot have are written as \xNN. */
static bool set_unescaped(struct container *out, struct part name, const char *runtime)
{
	char text[sizeof(out->id)];
	size_t len = 0;

	for (size_t i = 0; i < name.len && len < sizeof(text); i++) {
		unsigned value;

		if (i + 3 < name.len && name.text[i] == '\\' && name.text[i + 1] == 'x' &&
		    sscanf(name.text + i + 2, "%2x", &value) == 1 && value) {
			text[len++] = (char)value;
			i += 3;
		} else {
			text[len++] = name.text[i];
		}
	}
	return set(out, (struct part){text, len}, runtime);
}

/* Matches lxc.payload.NAME (4.0 and newer), lxc/NAME; machined's machine-NAME.scope, systemd-nspawn@NAME.service. */
static bool match_system_container(struct part part, struct part parent, struct container *out)
{
	struct part vm;

	if (cut_prefix(&part, "lxc.payload.") || ((equals(parent, "lxc") || equals(parent, "lxc.payload")) && part.len))
		return set(out, part, "lxc");
	if (cut_prefix(&part, "systemd-nspawn@") && cut_suffix(&part, ".service"))
		return set_unescaped(out, part, "nspawn");
	vm = part;
	/* libvirt's virtual machines have such scopes, too. */
	if (cut_prefix(&vm, "machine-qemu\\x2d"))
		return false;
	return cut_prefix(&part, "machine-") && cut_suffix(&part, ".scope") && set_unescaped(out, part, "nspawn");
}

/* Matches kubepods-burstable-pod5f_….slice, or pod5f-… below kubepods; for a static pod 32 digits without dashes. */
static void match_pod(struct part part, struct container *out)
{
	const char *slice = memmem(part.text, part.len, ".slice", 6);
	size_t len = 0;
	char uid[sizeof(out->pod_uid)];

	if (slice)
		part.len = slice - part.text;
	for (struct part next = part; cut_prefix(&next, "kubepods") || cut_prefix(&next, "kubelet-kubepods");) {
		const char *pod = memmem(next.text, next.len, "-pod", 4);

		if (!pod)
			return;
		part = (struct part){pod + 1, part.len - (pod + 1 - part.text)};
		break;
	}
	if (!cut_prefix(&part, "pod") || part.len < 32 || part.len >= sizeof(uid))
		return;
	for (; len < part.len; len++) {
		unsigned char c = part.text[len];

		if (!isxdigit(c) && c != '-' && c != '_')
			return;
		uid[len] = c == '_' ? '-' : (char)c;
	}
	uid[len] = '\0';
	snprintf(out->pod_uid, sizeof(out->pod_uid), "%s", uid);
}

bool container_parse_path(const char *path, size_t len, size_t *at, struct container *out)
{
	struct part parent = {"", 0};
	size_t start = 0, number = 0;

	*out = (struct container){.id = ""};
	/* Starts at the beginning of the path even if a container was found before: one pod can enclose both. */
	while (start < len) {
		struct part part = {path + start + 1, 0};
		const char *slash = memchr(part.text, '/', len - start - 1);
		size_t end = slash ? (size_t)(slash - path) : len;

		part.len = end - start - 1;
		start = end;
		/* Above the root of pybpf's cgroup namespace: no group's name. */
		if (equals(part, ".."))
			continue;
		number++;
		match_pod(part, out);
		if (end > *at) {
			/* containerd's own clients choose IDs freely: /default/web. */
			bool found = match_full_id(part, out) || match_system_container(part, parent, out) ||
				     (number == 2 && part.len < sizeof(out->id) &&
				      state_has_containerd(parent.text, parent.len, part.text, part.len) &&
				      set(out, part, "containerd"));

			if (found) {
				*at = end;
				if (equals(parent, "docker"))
					snprintf(out->runtime, sizeof(out->runtime), "docker");
				return true;
			}
		}
		parent = part;
	}
	return false;
}
