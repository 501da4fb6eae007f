// SPDX-License-Identifier: Apache-2.0
/* Finds the service of a process by what is known of it. */
#include "discovery/service.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int discovery_service_add_rule(struct discovery_service_rules *rules, const char *text)
{
	const char *glob = strchr(text, '=');
	size_t size = glob ? (size_t)(glob - text) : 0;
	struct discovery_service_rule *rule;

	if (!size || size >= sizeof(rule->name) || !glob[1])
		return -EINVAL;
	if (array_reserve(&rules->items, &rules->room, rules->count + 1, sizeof(*rules->items)))
		return -ENOMEM;
	rule = &rules->items[rules->count++];
	memset(rule, 0, sizeof(*rule));
	memcpy(rule->name, text, size);
	rule->glob = glob + 1;
	return 0;
}

void discovery_service_free_rules(struct discovery_service_rules *rules)
{
	free(rules->items);
	*rules = (struct discovery_service_rules){0};
}

int discovery_service_choose(struct discovery_service_choice *choice, const char *glob)
{
	if (array_reserve(&choice->globs, &choice->room, choice->count + 1, sizeof(*choice->globs)))
		return -ENOMEM;
	choice->globs[choice->count++] = glob;
	return 0;
}

bool discovery_service_is_chosen(const struct discovery_service_choice *choice, const char *name)
{
	for (size_t i = 0; i < choice->count; i++) {
		if (!fnmatch(choice->globs[i], name, 0))
			return true;
	}
	return !choice->count;
}

void discovery_service_free_choice(struct discovery_service_choice *choice)
{
	free(choice->globs);
	*choice = (struct discovery_service_choice){0};
}

/* Returns the container's name without its pod's. */
static const char *short_container(const char *container)
{
	const char *slash = strrchr(container, '/');

	return slash && slash[1] ? slash + 1 : container;
}

bool discovery_service_read_tag(const char *image, char tag[DISCOVERY_SERVICE_MAX])
{
	const char *slash = strrchr(image, '/'), *name = slash ? slash : image;
	const size_t name_size = strcspn(name, ":@");

	/* name@sha256:... has a digest, behind a tag or without one. */
	*tag = '\0';
	if (name[name_size] == ':')
		snprintf(tag, DISCOVERY_SERVICE_MAX, "%.*s", (int)strcspn(name + name_size + 1, "@"),
			 name + name_size + 1);
	return *tag && strcmp(tag, "latest") != 0;
}

static bool matches(const struct discovery_service_rule *rule, const struct discovery_service_facts *facts)
{
	const char *container = facts->container;

	return !fnmatch(rule->glob, facts->program, 0) ||
	       (*facts->own->unit && !fnmatch(rule->glob, facts->own->unit, 0)) ||
	       (container &&
		(!fnmatch(rule->glob, container, 0) || !fnmatch(rule->glob, short_container(container), 0)));
}

const char *discovery_find_service(const struct discovery_service_rules *rules,
				   const struct discovery_service_facts *facts)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (matches(&rules->items[i], facts))
			return rules->items[i].name;
	}
	if (*facts->own->otel)
		return facts->own->otel;
	if (facts->container)
		return short_container(facts->container);
	return *facts->own->unit ? facts->own->unit : facts->program;
}
