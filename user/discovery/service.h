// SPDX-License-Identifier: Apache-2.0
/* Which service a process is a part of: one program of many processes, on many machines, whatever their PIDs. */
#ifndef DISCOVERY_SERVICE_H
#define DISCOVERY_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "helper/helper.h"

/* Bytes of a service's name, with its NUL; a longer one is cut. */
#define DISCOVERY_SERVICE_MAX 128

/* Processes whose program, container or systemd unit matches the glob are of this service. */
struct discovery_service_rule {
	char name[DISCOVERY_SERVICE_MAX];
	const char *glob; /* not owned */
};

/* The first that matches counts. */
struct discovery_service_rules {
	struct discovery_service_rule *items;
	size_t count, room;
};

/* Adds a rule "NAME=GLOB". Returns 0, -EINVAL for another text, or -ENOMEM. */
int discovery_service_add_rule(struct discovery_service_rules *rules, const char *text);
void discovery_service_free_rules(struct discovery_service_rules *rules);

/* The services that are wanted: those whose name one of the globs matches. Without any: all. */
struct discovery_service_choice {
	const char **globs; /* not owned */
	size_t count, room;
};

/* Adds a glob. Returns 0 or -ENOMEM. */
int discovery_service_choose(struct discovery_service_choice *choice, const char *glob);
bool discovery_service_is_chosen(const struct discovery_service_choice *choice, const char *name);
void discovery_service_free_choice(struct discovery_service_choice *choice);

/* What a process itself says; "" where it says nothing. */
struct discovery_service_own {
	/* OTEL_SERVICE_NAME of its environment, else service.name of OTEL_RESOURCE_ATTRIBUTES; and service.version. */
	char otel[DISCOVERY_SERVICE_MAX], version[DISCOVERY_SERVICE_MAX];
	char unit[DISCOVERY_SERVICE_MAX]; /* its systemd unit, without .service */
};

/* What is known of a process. */
struct discovery_service_facts {
	const struct discovery_service_own *own;
	const char *container; /* NULL: none */
	const char *program;
};

/*
 * Returns the name of the service: that of the first rule that matches, else what the environment says, else the
 * container's (in Kubernetes without the pod's), else the unit's, else the program's. Valid as long as rules and facts
 * are.
 */
const char *discovery_find_service(const struct discovery_service_rules *rules,
				   const struct discovery_service_facts *facts);

/* Reads the tag of an image's name, such as "1.4" of "registry:5000/shop:1.4". Returns false for none, and "latest". */
bool discovery_service_read_tag(const char *image, char tag[DISCOVERY_SERVICE_MAX]);

/* Reads it from an environment, size bytes of texts that end in NUL each. */
void discovery_service_read_environment(const char *text, size_t size, struct discovery_service_own *own);
/*
 * Returns whether such texts are not the environment that a program was started with, of which each has a '='. A
 * program that changes its title in the list of processes writes it over its arguments and its environment, and zeroes
 * or blanks behind it (setproctitle, uWSGI).
 */
bool discovery_service_is_overwritten(const char *text, size_t size);
/* Reads it from the text of /proc/PID/cgroup. */
void discovery_service_read_cgroup(const char *text, struct discovery_service_own *own);

/* Asks a helper what the process says. Returns 0, or negative errno with nothing said in *own. */
int discovery_ask_service(pid_t pid, struct discovery_service_own *own);
/* How a helper answers. */
helper_service discovery_serve_service;

#endif
