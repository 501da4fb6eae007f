// SPDX-License-Identifier: Apache-2.0
/* Reads a file of options, with libyaml: no other file uses it. */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/suggestions.h"

/* Most bytes of a file: libyaml takes a time that grows with the square of how deep lists are nested. */
#define SIZE_MOST (64 << 10)

struct cli_config {
	const char *path;
	const struct cli_option_group *groups;
	yaml_document_t document;
	bool loaded;
};

/* Where messages are about: "FILE, line 3, column 7: ". */
static void set_place(const struct cli_config *config, const yaml_mark_t *mark)
{
	char place[CLI_PLACE_MAX];

	snprintf(place, sizeof(place), "%s, line %zu, column %zu: ", config->path, mark->line + 1, mark->column + 1);
	cli_set_place(place);
}

static int refuse_file(const char *path, const char *why)
{
	return cli_usage("cannot read the options in %s: %s", path, why);
}

/* Opens the file. Returns NULL after one sentence. */
static FILE *open_file(const char *path)
{
	/* A FIFO without a writer would be waited for. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat status;
	const char *why = NULL;

	if (!file || fstat(fd, &status))
		why = strerror(errno);
	else if (!S_ISREG(status.st_mode) || status.st_size > SIZE_MOST)
		why = "it is no file of at most 64 KiB";
	else if (status.st_uid && status.st_uid != geteuid())
		why = "it belongs to another user";
	else if (status.st_mode & (S_IWGRP | S_IWOTH))
		why = "others may write to it; `chmod go-w` ends that";
	if (!why)
		return file;
	refuse_file(path, why);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return NULL;
}

static yaml_node_t *node_at(const struct cli_config *config, int index)
{
	return yaml_document_get_node((yaml_document_t *)&config->document, index);
}

static yaml_node_t *root_of(const struct cli_config *config)
{
	return yaml_document_get_root_node((yaml_document_t *)&config->document);
}

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

/* Returns whether it is text without NULs. */
static bool is_text(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && strlen(text_of(node)) == node->data.scalar.length;
}

/* Finds an option, and what it sets. A file has no help. */
static const struct cli_option *find_option(const struct cli_config *config, const char *name, void **target)
{
	const struct cli_option *option = NULL;

	for (const struct cli_option_group *g = config->groups; g->options; g++) {
		for (const struct cli_option *o = g->options; o->name; o++) {
			option = o->help || !option ? o : option;
			*target = g->target;
			if (strcmp(o->name, name) == 0)
				return o->take ? o : NULL;
		}
	}
	return NULL;
}

/* Returns the option that an alias shares its help and value with; other options are their own. */
static const struct cli_option *owner_of(const struct cli_option *option)
{
	while (!option->help)
		option--;
	return option;
}

/* Returns whether it is called so on a command line: "--all", "-p" or "--mode=wall". */
static bool is_called(const struct cli_option *option, const char *name, size_t length)
{
	if (length == 2 && option->letter == name[1])
		return true;
	return length > 2 && strlen(option->name) == strcspn(name + 2, "=, ") &&
	       !strncmp(option->name, name + 2, strlen(option->name));
}

/* Returns whether the option, or one that it is an alias of, is among names, such as "--all, -p". */
static bool is_among_names(const struct cli_option *option, const char *names)
{
	for (const char *name = names; *name; name += strspn(name, ", ")) {
		const size_t length = strcspn(name, ",");

		if (is_called(owner_of(option), name, length))
			return true;
		name += length;
	}
	return false;
}

static int refuse_key(const struct cli_config *config, const char *name)
{
	struct cli_suggestions suggestions;
	char asked[256];

	cli_suggestions_begin(&suggestions, name);
	for (const struct cli_option_group *g = config->groups; g->options; g++) {
		for (const struct cli_option *o = g->options; o->name; o++) {
			if (o->take)
				cli_suggestions_try(&suggestions, o->name);
		}
	}
	return cli_usage("there is no option %s%s", name, cli_suggestions_text(&suggestions, "", asked, sizeof(asked)));
}

/* Checks a key and that its values are texts. Returns 0, or an exit code after one sentence. */
static int check_pair(const struct cli_config *config, const yaml_node_pair_t *pair)
{
	yaml_node_t *key = node_at(config, pair->key), *value = node_at(config, pair->value);
	yaml_node_item_t *item;
	void *target;

	set_place(config, &key->start_mark);
	if (!is_text(key))
		return cli_usage("a key is the name of an option");
	if (!find_option(config, text_of(key), &target))
		return refuse_key(config, text_of(key));
	set_place(config, &value->start_mark);
	if (value->type == YAML_MAPPING_NODE)
		return cli_usage("%s takes a value, or a list of values", text_of(key));
	if (value->type != YAML_SEQUENCE_NODE)
		return is_text(value) ? 0 : cli_usage("%s takes a text", text_of(key));
	for (item = value->data.sequence.items.start; item < value->data.sequence.items.top; item++) {
		set_place(config, &node_at(config, *item)->start_mark);
		if (!is_text(node_at(config, *item)))
			return cli_usage("%s takes a list of texts", text_of(key));
	}
	return 0;
}

static yaml_node_pair_t *first_pair(const struct cli_config *config)
{
	return root_of(config)->data.mapping.pairs.start;
}

/* Returns what is behind the last pair. */
static yaml_node_pair_t *pairs_end(const struct cli_config *config)
{
	return root_of(config)->data.mapping.pairs.top;
}

static int check(const struct cli_config *config)
{
	const yaml_node_t *root = root_of(config);
	int code = 0;

	if (!root)
		return refuse_file(config->path, "it is empty");
	set_place(config, &root->start_mark);
	if (root->type != YAML_MAPPING_NODE)
		return cli_usage("the file is one mapping, of lines such as `epoch: 60s`");
	for (yaml_node_pair_t *pair = first_pair(config); pair < pairs_end(config); pair++) {
		code = check_pair(config, pair);
		for (yaml_node_pair_t *other = first_pair(config); other < pairs_end(config); other++) {
			if (code || other >= pair)
				break;
			if (strcmp(text_of(node_at(config, other->key)), text_of(node_at(config, pair->key))))
				continue;
			set_place(config, &node_at(config, pair->key)->start_mark);
			code = cli_usage("%s occurs twice; give it a list", text_of(node_at(config, pair->key)));
		}
		if (code)
			return code;
	}
	return 0;
}

static int refuse_yaml(const struct cli_config *config, const yaml_parser_t *parser)
{
	set_place(config, &parser->problem_mark);
	return cli_usage("this is not YAML: %s", parser->problem ?: "it cannot be read");
}

/* Refuses what follows the first document. */
static int check_end(const struct cli_config *config, yaml_parser_t *parser)
{
	yaml_document_t more;
	int code = 0;

	if (!yaml_parser_load(parser, &more))
		return refuse_yaml(config, parser);
	if (yaml_document_get_root_node(&more)) {
		set_place(config, &more.start_mark);
		code = cli_usage("a second document begins here, but the file is one mapping; leave out the ---");
	}
	yaml_document_delete(&more);
	return code;
}

static int load(struct cli_config *config, FILE *file)
{
	yaml_parser_t parser;
	int code;

	if (!yaml_parser_initialize(&parser))
		return refuse_file(config->path, strerror(ENOMEM));
	yaml_parser_set_input_file(&parser, file);
	config->loaded = yaml_parser_load(&parser, &config->document);
	code = config->loaded ? check_end(config, &parser) : refuse_yaml(config, &parser);
	yaml_parser_delete(&parser);
	return code ?: check(config);
}

struct cli_config *cli_config_read(const char *path, const struct cli_option_group *groups)
{
	struct cli_config *config = calloc(1, sizeof(*config));
	FILE *file = config ? open_file(path) : NULL;
	int code = CLI_FAILED;

	if (!config)
		log_error("out of memory while starting");
	if (file) {
		config->path = path;
		config->groups = groups;
		code = load(config, file);
		fclose(file);
	}
	cli_set_place("");
	if (!code)
		return config;
	cli_config_free(config);
	return NULL;
}

void cli_config_free(struct cli_config *config)
{
	if (config && config->loaded)
		yaml_document_delete(&config->document);
	free(config);
}

static int take_flag(const struct cli_option *option, const yaml_node_t *value, void *target)
{
	const char *text = value->type == YAML_SCALAR_NODE ? text_of(value) : "";

	if (strcmp(text, "true") == 0)
		return option->take(option, NULL, target);
	return strcmp(text, "false") == 0 ? 0 : cli_usage("%s takes true or false", option->name);
}

static int take_value(const struct cli_option *option, const yaml_node_t *value, void *target)
{
	/* Where the value may be left out, true stands for none. */
	if (option->optional && strcmp(text_of(value), "true") == 0)
		return option->take(option, NULL, target);
	return option->optional && strcmp(text_of(value), "false") == 0 ? 0
									: option->take(option, text_of(value), target);
}

static int take_pair(const struct cli_config *config, const yaml_node_pair_t *pair)
{
	yaml_node_t *value = node_at(config, pair->value);
	yaml_node_item_t *item;
	void *target;
	const struct cli_option *option = find_option(config, text_of(node_at(config, pair->key)), &target),
				*own = owner_of(option);
	int code = 0;

	set_place(config, &value->start_mark);
	if (!own->value)
		return take_flag(option, value, target);
	if (value->type == YAML_SCALAR_NODE)
		return take_value(option, value, target);
	for (item = value->data.sequence.items.start; item < value->data.sequence.items.top && !code; item++) {
		set_place(config, &node_at(config, *item)->start_mark);
		code = take_value(option, node_at(config, *item), target);
	}
	return code;
}

int cli_config_take(const struct cli_config *config)
{
	int code = 0;

	for (yaml_node_pair_t *pair = first_pair(config); pair < pairs_end(config); pair++) {
		code = take_pair(config, pair);
		if (code)
			break;
	}
	cli_set_place("");
	return code;
}

void cli_config_set_place(const void *config, const char *names)
{
	const struct cli_config *read = config;
	void *target;

	for (yaml_node_pair_t *pair = pairs_end(read); pair-- > first_pair(read);) {
		const yaml_node_t *key = node_at(read, pair->key);

		if (!is_among_names(find_option(read, text_of(key), &target), names))
			continue;
		set_place(read, &key->start_mark);
		return;
	}
}

/* Returns the value of a key, or NULL. */
static const yaml_node_t *find_value(const struct cli_config *config, const char *name)
{
	for (yaml_node_pair_t *pair = first_pair(config); pair < pairs_end(config); pair++) {
		if (strcmp(text_of(node_at(config, pair->key)), name) == 0)
			return node_at(config, pair->value);
	}
	return NULL;
}

static bool is_same(const struct cli_config *before, const yaml_node_t *one, const struct cli_config *after,
		    const yaml_node_t *other)
{
	size_t count;

	if (one->type != other->type)
		return false;
	if (one->type == YAML_SCALAR_NODE)
		return strcmp(text_of(one), text_of(other)) == 0;
	count = (size_t)(one->data.sequence.items.top - one->data.sequence.items.start);
	if (count != (size_t)(other->data.sequence.items.top - other->data.sequence.items.start))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text_of(node_at(before, one->data.sequence.items.start[i])),
			   text_of(node_at(after, other->data.sequence.items.start[i]))))
			return false;
	}
	return true;
}

static bool is_among(const char *name, const char *const names[])
{
	for (; *names; names++) {
		if (strcmp(*names, name) == 0)
			return true;
	}
	return false;
}

/* Appends a key, unless there is no room for it. */
static void append_key(const char *key, char *text, size_t size)
{
	const size_t used = strlen(text);

	if (used + strlen(key) + sizeof(", ") <= size)
		snprintf(text + used, size - used, "%s%s", used ? ", " : "", key);
}

void cli_config_list_changes(const struct cli_config *before, const struct cli_config *after, const char *const names[],
			     char *text, size_t size)
{
	*text = '\0';
	for (yaml_node_pair_t *pair = first_pair(after); pair < pairs_end(after); pair++) {
		const char *key = text_of(node_at(after, pair->key));
		const yaml_node_t *known = find_value(before, key);

		if (!is_among(key, names) && (!known || !is_same(before, known, after, node_at(after, pair->value))))
			append_key(key, text, size);
	}
	for (yaml_node_pair_t *pair = first_pair(before); pair < pairs_end(before); pair++) {
		const char *key = text_of(node_at(before, pair->key));

		if (!is_among(key, names) && !find_value(after, key))
			append_key(key, text, size);
	}
}
