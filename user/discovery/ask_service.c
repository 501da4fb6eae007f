// SPDX-License-Identifier: Apache-2.0
/* Reads in a helper what a process itself says of its service. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"
#include "container/cgroup.h"
#include "discovery/discovery.h"
#include "discovery/service.h"
#include "symbols/tasks/current_tasks.h"
#include "symbols/objects/environ.h"

/* Bytes of an environment that are read: what is behind them is not seen. */
#define ENVIRONMENT_MAX (256 * 1024)
/* Seconds that the helper gets. */
#define PATIENCE_S 0.5

/* Returns the value of a variable, with its size, or NULL. As getenv(3) does, the first one counts. */
static const char *variable_of(const char *text, size_t size, const char *name, size_t *value_size)
{
	const size_t name_size = strlen(name);
	const char *end = text + size;

	while (text < end) {
		size_t len = strnlen(text, (size_t)(end - text));

		if (len > name_size && text[name_size] == '=' && !memcmp(text, name, name_size)) {
			*value_size = len - name_size - 1;
			return text + name_size + 1;
		}
		text += len + 1;
	}
	return NULL;
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* Copies a value in which characters may be written as %XX, but for NUL. */
static void decode(const char *text, size_t size, char out[DISCOVERY_SERVICE_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < size && n < DISCOVERY_SERVICE_MAX - 1; i++) {
		int high = text[i] == '%' && i + 2 < size ? hex(text[i + 1]) : -1,
		    low = high < 0 ? -1 : hex(text[i + 2]);

		out[n++] = low < 0 || !(high | low) ? text[i] : (char)(high << 4 | low);
		i += low < 0 || !(high | low) ? 0 : 2;
	}
	out[n] = '\0';
}

/* A part of a text. */
struct span {
	const char *text;
	size_t size;
};

/* Returns the part without the blanks around it. */
static struct span trim(const char *text, size_t size)
{
	while (size && isspace((unsigned char)text[size - 1]))
		size--;
	while (size && isspace((unsigned char)*text)) {
		text++;
		size--;
	}
	return (struct span){text, size};
}

static bool is(struct span key, const char *name)
{
	return key.size == strlen(name) && !memcmp(key.text, name, key.size);
}

/* Takes what KEY=VALUE,KEY=VALUE says, the form of OpenTelemetry's variables. */
static void read_resource(const char *text, size_t size, struct discovery_service_own *own)
{
	for (const char *end = text + size; text < end;) {
		const char *comma = memchr(text, ',', (size_t)(end - text)), *pair_end = comma ?: end;
		const char *equals = memchr(text, '=', (size_t)(pair_end - text));

		if (equals) {
			struct span key = trim(text, (size_t)(equals - text)),
				    value = trim(equals + 1, (size_t)(pair_end - equals - 1));

			if (is(key, "service.name") && !*own->otel)
				decode(value.text, value.size, own->otel);
			else if (is(key, "service.version") && value.size)
				decode(value.text, value.size, own->version);
		}
		text = pair_end + 1;
	}
}

void discovery_service_read_environment(const char *text, size_t size, struct discovery_service_own *own)
{
	size_t len;
	const char *value = variable_of(text, size, "OTEL_SERVICE_NAME", &len);

	if (value)
		snprintf(own->otel, sizeof(own->otel), "%.*s", (int)len, value);
	value = variable_of(text, size, "OTEL_RESOURCE_ATTRIBUTES", &len);
	if (value)
		read_resource(value, len, own);
}

bool discovery_service_is_overwritten(const char *text, size_t size)
{
	for (const char *end = text + size; text < end;) {
		size_t len = strnlen(text, (size_t)(end - text));

		if (!memchr(text, '=', len))
			return true;
		text += len + 1;
	}
	return false;
}

/* Reads the variables that Python has. text: room for them, size bytes. */
static void read_python(struct discovery *known, pid_t pid, char *text, size_t size, struct discovery_service_own *own)
{
	static const char *const names[] = {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"};
	struct discovery_python *python = calloc(1, sizeof(*python));
	struct walk_memory memory;
	struct error error;
	size_t count;
	uint64_t interp;

	walk_process_memory(&memory, &pid);
	if (python && discovery_runtimes(known, pid, python, 1, &count, &error) == DISCOVERY_OK) {
		interp = pysym_main_interpreter(&memory, &python->build.layout, python->interp_head_addr);
		size = pysym_read_environ(&memory, &python->build.layout, interp, names, sizeof(names) / sizeof(*names),
					  text, size);
		discovery_service_read_environment(text, size, own);
	}
	free(python);
}

/* Takes the unit that a path in a hierarchy ends in, at any depth. */
static void read_path(const char *path, size_t size, struct discovery_service_own *own)
{
	static const char suffix[] = ".service";
	const size_t suffix_size = sizeof(suffix) - 1;

	for (size_t begin = 0; begin < size;) {
		const char *part = path + begin, *slash = memchr(part, '/', size - begin);
		size_t len = slash ? (size_t)(slash - part) : size - begin;

		/* user@1000.service has all that its user runs. */
		if (len > suffix_size && !memcmp(part + len - suffix_size, suffix, suffix_size) &&
		    strncmp(part, "user@", 5))
			snprintf(own->unit, sizeof(own->unit), "%.*s", (int)(len - suffix_size), part);
		begin += len + 1;
	}
}

void discovery_service_read_cgroup(const char *text, struct discovery_service_own *own)
{
	struct cgroup_line line;

	while (!*own->unit && cgroup_next_line(&text, &line))
		read_path(line.path, line.path_len, own);
}

int discovery_serve_service(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct discovery_service_own *own = answer;
	char *text;
	ssize_t len;
	pid_t pid;

	if (question_size != sizeof(pid))
		return -EINVAL;
	memcpy(&pid, question, sizeof(pid));
	memset(own, 0, sizeof(*own));
	*size = sizeof(*own);
	text = malloc(ENVIRONMENT_MAX);
	if (!text)
		return -ENOMEM;
	len = procfs_read_some(pid, "environ", text, ENVIRONMENT_MAX);
	if (len > 0)
		discovery_service_read_environment(text, (size_t)len, own);
	if (len > 0 && discovery_service_is_overwritten(text, (size_t)len))
		read_python(state, pid, text, ENVIRONMENT_MAX, own);
	free(text);
	if (cgroup_read_text(pid, &text))
		return 0;
	discovery_service_read_cgroup(text, own);
	free(text);
	return 0;
}

int discovery_ask_service(pid_t pid, struct discovery_service_own *own)
{
	size_t size;
	int err = helper_call(discovery_serve_service, (struct helper_subject){.pid = pid}, &pid, sizeof(pid), own,
			      sizeof(*own), &size, PATIENCE_S);

	if (!err && size != sizeof(*own))
		err = -EPROTO;
	if (err)
		memset(own, 0, sizeof(*own));
	own->otel[sizeof(own->otel) - 1] = own->unit[sizeof(own->unit) - 1] = '\0';
	own->version[sizeof(own->version) - 1] = '\0';
	return err;
}
