// SPDX-License-Identifier: Apache-2.0
/* Collects the list of Python processes, and writes it as a table or as JSON. */
#include "discovery/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "container/label.h"
#include "discovery/ask.h"
#include "discovery/below.h"
#include "helper/helper.h"
#include "base/array.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/sudo.h"
#include "base/text.h"
#include "base/users.h"

/* Bytes of a command line that are kept; it can have megabytes. */
#define COMMAND_MAX 4096

/* Columns of a command where the output is no terminal; the JSON has all of it. */
#define COMMAND_COLUMNS 120
/* Stands for the rest of a command. */
#define MORE "..."

/* A process that the filter names and that is no Python. */
struct non_python {
	pid_t pid;
	char *why;
};

struct collector {
	const struct discovery_filter *filter;
	struct ps_list *list;
	struct discovery_numbers met; /* those of the filter's PIDs that exist */
	size_t rows_room;
	struct non_python *non_pythons; /* with the filter's children: those may be Pythons */
	size_t nr_non_pythons, non_pythons_room;
	struct discovery_python pythons[PYBPF_MAX_RUNTIMES];
	size_t nr_pythons;
};

static int add_row(struct collector *c, struct ps_row **row)
{
	struct ps_list *list = c->list;

	if (array_reserve(&list->rows, &c->rows_room, list->count + 1, sizeof(*list->rows)))
		return -ENOMEM;
	*row = &list->rows[list->count++];
	**row = (struct ps_row){.supported = false};
	return 0;
}

static char *user_name(uid_t uid)
{
	const struct passwd *user = users_find_uid(uid);
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	return text_printable(user ? user->pw_name : number);
}

static char *command_of(const struct scan_process *process, int *unread)
{
	char text[COMMAND_MAX];
	int err = discovery_ask_cmdline(process->pid, text, sizeof(text));

	*unread = helper_has_no_answer(err) ? err : 0;
	if (!text[0])
		snprintf(text, sizeof(text), "[%s]", process->comm);
	return text_printable(text);
}

/* A process that cannot be read gets a row when its name says Python. */
static bool has_python_name(const struct scan_process *process)
{
	return strstr(process->comm, "python") || strstr(process->comm, "pypy");
}

static int fill_python(const struct discovery_python *python, struct ps_python *out)
{
	snprintf(out->version, sizeof(out->version), "%s%s%s", python->version, python->free_threaded ? "t" : "",
		 python->debug_build ? "d" : "");
	out->path = strdup(python->path);
	return out->path ? 0 : -ENOMEM;
}

int ps_fill_pythons(const struct discovery_python *pythons, size_t count, struct ps_row *row)
{
	bool first = true;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (!discovery_is_running(&pythons[i]))
			continue;
		err = fill_python(&pythons[i], first ? &row->python : &row->more[row->nr_more++]);
		first = false;
	}
	return first ? fill_python(&pythons[0], &row->python) : err;
}

/* Returns the error, or 0 where it is a fact: the process is in no container, or gone. */
static int find_container(const struct scan_process *process, struct container *out)
{
	int err = discovery_ask_container_of(process->pid, out);

	if (err)
		out->id[0] = '\0';
	return err == -ENOENT || err == -ESRCH ? 0 : err;
}

static int fill_row(const struct collector *c, const struct scan_process *process, bool supported, const char *refusal,
		    struct ps_row *row)
{
	row->process = *process;
	row->supported = supported;
	row->container_unread = find_container(process, &row->container);
	row->refusal = supported ? NULL : text_printable(refusal);
	row->user = user_name(process->uid);
	row->command = command_of(process, &row->command_unread);
	c->list->unread = c->list->unread || row->container_unread || row->command_unread;
	if (!row->user || !row->command || (!supported && !row->refusal))
		return -ENOMEM;
	return supported ? ps_fill_pythons(c->pythons, c->nr_pythons, row) : 0;
}

static bool is_wanted(const struct collector *c, const struct scan_process *process)
{
	const struct discovery_filter *filter = c->filter;
	struct container container;
	int err;

	if (!filter->not_containers.count)
		return discovery_filter_matches(filter, process, NULL);
	err = find_container(process, &container);
	if (err && discovery_filter_matches(filter, process, NULL)) {
		c->list->unread = true;
		log_warn("process %d (%s) is left out: whether it is in a container that was excluded is not known: %s",
			 process->pid, process->comm, helper_describe_error(err));
	}
	return !err && discovery_filter_matches(filter, process, container.id[0] ? &container : NULL);
}

static void note_denied(struct ps_list *list, const struct scan_process *process, const struct error *error)
{
	size_t used = strlen(list->denied_names);

	if (!list->denied++)
		list->denial = *error;
	if (list->denied <= PS_DENIED_NAMED)
		snprintf(list->denied_names + used, sizeof(list->denied_names) - used, "%s%d (%.16s)", used ? ", " : "",
			 process->pid, process->comm);
}

static int add_non_python(struct collector *c, pid_t pid, const char *why)
{
	struct non_python *process;

	if (array_reserve(&c->non_pythons, &c->non_pythons_room, c->nr_non_pythons + 1, sizeof(*c->non_pythons)))
		return -ENOMEM;
	process = &c->non_pythons[c->nr_non_pythons];
	*process = (struct non_python){.pid = pid, .why = strdup(why)};
	c->nr_non_pythons += process->why != NULL;
	return process->why ? 0 : -ENOMEM;
}

/* Reports the PIDs of the filter that no process has. */
static void tell_missing(const struct collector *c)
{
	const struct discovery_numbers *pids = &c->filter->pids;

	for (size_t i = 0; i < pids->count; i++) {
		if (discovery_numbers_have(&c->met, pids->items[i]))
			continue;
		c->list->missing = true;
		if (discovery_refuse_thread((pid_t)pids->items[i]))
			continue;
		if (c->list->hidden)
			log_error("there is no process %u, or /proc hides it (hidepid): run as root, or with "
				  "CAP_SYS_PTRACE: `%s`",
				  pids->items[i], sudo_command());
		else
			log_error("there is no process %u", pids->items[i]);
	}
}

/* A shell that has Pythons below it has what was asked for. */
static void warn_of_non_pythons(const struct collector *c)
{
	for (size_t i = 0; i < c->nr_non_pythons; i++) {
		uint32_t pid = (uint32_t)c->non_pythons[i].pid;
		const struct discovery_numbers one = {.items = &pid, .count = 1};
		bool has_rows = false;

		for (size_t k = 0; k < c->list->count && !has_rows; k++)
			has_rows = discovery_is_below(&one, c->list->rows[k].process.ppid);
		if (!has_rows)
			log_warn("%s, nor do those of its children", c->non_pythons[i].why);
	}
}

/* Says why the process is not in the list. named: by the filter. */
static int leave_out(struct collector *c, const struct scan_process *process, bool named, enum discovery_result result,
		     const struct error *error)
{
	if (result == DISCOVERY_DENIED)
		note_denied(c->list, process, error);
	if (!named || result != DISCOVERY_NOT_PYTHON)
		log_printf(named ? LOG_WARN : result == DISCOVERY_DENIED ? LOG_INFO : LOG_DEBUG, "%s", error->text);
	else if (c->filter->children)
		return add_non_python(c, process->pid, error->text);
	else
		discovery_refuse_parent(LOG_WARN, process->pid, error->text);
	return 0;
}

static int visit(const struct scan_process *process, void *arg)
{
	struct collector *c = arg;
	bool named = discovery_numbers_have(&c->filter->pids, process->pid);
	enum discovery_result result;
	struct ps_row *row;
	struct error error;
	bool supported;
	int err;

	if (named && discovery_numbers_add(&c->met, process->pid))
		return -ENOMEM;
	if (!is_wanted(c, process) || (!named && (process->kernel_thread || process->ended)))
		return 0;
	c->list->looked_at++;
	result = discovery_wait_runtimes(process->pid, !named, named ? DISCOVERY_UNMAPPED_S : 0, c->pythons,
					 PYBPF_MAX_RUNTIMES, &c->nr_pythons, &error);
	if (result == DISCOVERY_PENDING)
		return -EINTR;
	if (c->nr_pythons > PYBPF_MAX_RUNTIMES)
		c->nr_pythons = PYBPF_MAX_RUNTIMES;
	if (result == DISCOVERY_UNSUPPORTED && helper_has_no_answer(error.code))
		c->list->unread = true;
	supported = result == DISCOVERY_OK || (result == DISCOVERY_CONTRADICTED && c->nr_pythons);
	if (!supported && result != DISCOVERY_UNSUPPORTED && result != DISCOVERY_CONTRADICTED &&
	    !(result == DISCOVERY_DENIED && has_python_name(process)))
		return leave_out(c, process, named, result, &error);
	err = add_row(c, &row);
	return err ?: fill_row(c, process, supported, error.text, row);
}

int ps_collect(const struct discovery_filter *filter, struct ps_list *list)
{
	struct collector *c = calloc(1, sizeof(*c));
	struct procfs_stat init;
	int err;

	*list = (struct ps_list){0};
	if (!c)
		return -ENOMEM;
	c->filter = filter;
	c->list = list;
	/* Every PID namespace has a process 1. */
	list->hidden = procfs_read_stat(1, &init) != 0;
	err = scan_each_process(visit, c, NULL);
	if (!err)
		tell_missing(c);
	warn_of_non_pythons(c);
	for (size_t i = 0; i < c->nr_non_pythons; i++)
		free(c->non_pythons[i].why);
	free(c->non_pythons);
	free(c->met.items);
	free(c);
	return err;
}

void ps_free(struct ps_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->rows[i].python.path);
		for (size_t k = 0; k < list->rows[i].nr_more; k++)
			free(list->rows[i].more[k].path);
		free(list->rows[i].refusal);
		free(list->rows[i].user);
		free(list->rows[i].command);
	}
	free(list->rows);
	*list = (struct ps_list){0};
}

enum {
	PID,
	INSIDE,
	VERSION,
	CONTAINER,
	THREADS,
	USER,
	COMMAND,
	COLUMNS
};

static const char *const titles[COLUMNS] = {"PID", "INSIDE", "VERSION", "CONTAINER", "THREADS", "USER", "COMMAND"};
static const bool is_number[COLUMNS] = {[PID] = true, [INSIDE] = true, [THREADS] = true};

/* The texts of one row's cells; those that are not in the row itself are in the arrays below. */
struct cells {
	const char *texts[COLUMNS];
	char pid[16], inside[16], threads[16];
	char versions[PYBPF_MAX_RUNTIMES * sizeof(((struct ps_python *)NULL)->version)];
	char *container;
};

static const char *unread_parts(const struct ps_row *row)
{
	return !row->container_unread ? "arguments" : row->command_unread ? "container and arguments" : "container";
}

/* label: the number of its container's, or 0. */
static int make_cells(const struct ps_row *row, struct container_labels *labels, uint32_t label, struct cells *out)
{
	char place[CONTAINER_LABEL_MAX] = "-";
	const struct scan_process *process = &row->process;
	size_t len;

	if (row->container_unread)
		snprintf(place, sizeof(place), "?");
	snprintf(out->pid, sizeof(out->pid), "%d", process->pid);
	snprintf(out->inside, sizeof(out->inside), "%d", process->inside);
	snprintf(out->threads, sizeof(out->threads), "%u", process->threads);
	if (label && !container_labels_with_runtime(labels, label, place))
		snprintf(place, sizeof(place), "%s", row->container.name);
	out->container = text_printable(place);
	if (!out->container)
		return -ENOMEM;
	out->texts[PID] = out->pid;
	out->texts[INSIDE] = process->inside == process->pid ? "-" : out->inside;
	len = snprintf(out->versions, sizeof(out->versions), "%s", row->supported ? row->python.version : "-");
	for (size_t i = 0; i < row->nr_more; i++)
		len += snprintf(out->versions + len, sizeof(out->versions) - len, ",%s", row->more[i].version);
	out->texts[VERSION] = out->versions;
	out->texts[CONTAINER] = out->container;
	out->texts[THREADS] = out->threads;
	out->texts[USER] = row->user;
	out->texts[COMMAND] = row->command;
	return 0;
}

/* Makes the cells of each row. A container's label depends on the containers of all rows. */
static int make_all_cells(const struct ps_list *list, struct cells *cells)
{
	struct container_labels *labels = container_labels_new();
	uint32_t *numbers = calloc(list->count + 1, sizeof(*numbers));
	int err = labels && numbers ? 0 : -ENOMEM;

	for (size_t n = 0; n < list->count && !err; n++) {
		if (!list->rows[n].container.id[0])
			continue;
		numbers[n] = container_labels_add(labels, &list->rows[n].container);
		err = numbers[n] ? 0 : -ENOMEM;
	}
	for (size_t n = 0; n < list->count && !err; n++)
		err = make_cells(&list->rows[n], labels, numbers[n], &cells[n]);
	container_labels_free(labels);
	free(numbers);
	return err;
}

/* Returns the command without the folders of its first word: which interpreter it is says less than what it runs. */
static const char *without_folders(const char *command)
{
	const char *end = command + strcspn(command, " "), *name = end;

	while (name > command && name[-1] != '/')
		name--;
	return name == end ? command : name;
}

/*
 * Writes the command. If it is too long, the folders of its first word are left out; if it still is, it is cut and ends
 * in "...". --json has all of it.
 */
static void write_command(const char *command, size_t columns, FILE *out)
{
	bool cut;

	if (text_width(command) > columns)
		command = without_folders(command);
	cut = columns > strlen(MORE) && text_width(command) > columns;
	fprintf(out, "%.*s%s\n", (int)text_fit(command, cut ? columns - strlen(MORE) : columns), command,
		cut ? MORE : "");
}

static void write_row(const char *const *texts, const size_t *widths, size_t width, FILE *out)
{
	size_t used = 0;

	for (int i = 0; i < COMMAND; i++) {
		int pad = (int)(widths[i] - text_width(texts[i]));

		fprintf(out, "%*s%s%*s", is_number[i] ? pad : 0, "", texts[i], is_number[i] ? 2 : pad + 2, "");
		used += widths[i] + 2;
	}
	write_command(texts[COMMAND], !width ? COMMAND_COLUMNS : width > used ? width - used : 1, out);
}

/* Writes a sentence for each row of which something could not be read. */
static void write_unread(const struct ps_list *list, FILE *out)
{
	bool head = false;

	for (size_t n = 0; n < list->count; n++) {
		const struct ps_row *row = &list->rows[n];

		if (!row->container_unread && !row->command_unread)
			continue;
		fputs(head ? "" : "\nNot read:\n", out);
		fprintf(out, "  process %d: its %s: %s\n", row->process.pid, unread_parts(row),
			helper_describe_error(row->container_unread ?: row->command_unread));
		head = true;
	}
}

int ps_table(const struct ps_list *list, size_t width, FILE *out)
{
	struct cells *cells = calloc(list->count ? list->count : 1, sizeof(*cells));
	size_t widths[COLUMNS];
	int err = cells ? make_all_cells(list, cells) : -ENOMEM;
	bool head = false;

	for (int i = 0; i < COLUMNS; i++)
		widths[i] = text_width(titles[i]);
	for (size_t n = 0; n < list->count && !err; n++) {
		for (int i = 0; i < COLUMNS && !err; i++) {
			size_t wide = text_width(cells[n].texts[i]);

			widths[i] = wide > widths[i] ? wide : widths[i];
		}
	}
	if (!err)
		write_row(titles, widths, width, out);
	for (size_t n = 0; n < list->count && !err; n++)
		write_row(cells[n].texts, widths, width, out);
	for (size_t n = 0; n < list->count && !err; n++) {
		if (list->rows[n].supported)
			continue;
		fputs(head ? "" : "\nNot supported:\n", out);
		fprintf(out, "  %s\n", list->rows[n].refusal);
		head = true;
	}
	if (!err)
		write_unread(list, out);
	for (size_t n = 0; cells && n < list->count; n++)
		free(cells[n].container);
	free(cells);
	return err;
}

static void json_member(const char *key, const char *text, FILE *out)
{
	fprintf(out, ", \"%s\": ", key);
	if (text)
		text_json(text, out);
	else
		fputs("null", out);
}

static void json_more_pythons(const struct ps_row *row, FILE *out)
{
	if (!row->nr_more)
		return;
	fputs(", \"more_pythons\": [", out);
	for (size_t i = 0; i < row->nr_more; i++) {
		fputs(i ? ", {\"version\": " : "{\"version\": ", out);
		text_json(row->more[i].version, out);
		json_member("path", row->more[i].path, out);
		fputc('}', out);
	}
	fputc(']', out);
}

void ps_json(const struct ps_list *list, FILE *out)
{
	fputc('[', out);
	for (size_t n = 0; n < list->count; n++) {
		const struct ps_row *row = &list->rows[n];
		const struct container *container = &row->container;

		fprintf(out, "%s\n  {\"pid\": %d, \"inside_pid\": %d", n ? "," : "", row->process.pid,
			row->process.inside);
		fprintf(out, ", \"threads\": %u, \"uid\": %u", row->process.threads, row->process.uid);
		json_member("user", row->user, out);
		json_member("comm", row->process.comm, out);
		json_member("command", row->command, out);
		json_member("version", row->supported ? row->python.version : NULL, out);
		json_member("path", row->python.path, out);
		json_more_pythons(row, out);
		json_member("not_supported", row->refusal, out);
		if (row->container_unread || row->command_unread)
			json_member("not_read", unread_parts(row), out);
		if (!container->id[0]) {
			fputs(", \"container\": null}", out);
			continue;
		}
		fputs(", \"container\": {\"id\": ", out);
		text_json(container->id, out);
		json_member("name", container->name, out);
		json_member("runtime", container->runtime, out);
		json_member("pod_uid", container->pod_uid[0] ? container->pod_uid : NULL, out);
		fputs("}}", out);
	}
	fputs(list->count ? "\n]\n" : "]\n", out);
}
