// SPDX-License-Identifier: Apache-2.0
/* Opens, writes and commits the output that -o and -f choose, or sends it through a pager to stdout. */
#include "cli/destination.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/other_tools.h"
#include "cli/rules.h"
#include "cli/suggestions.h"
#include "base/log.h"
#include "output/amount.h"

#define FORMAT_HELP_COLUMN 38

static const char *format_names(void)
{
	static char names[512];
	size_t at = 0;

	for (const struct output_format *f = output_formats(); f->name && at < sizeof(names); f++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", f->name);
	return names;
}

void cli_print_format(const struct output_format *format, const char *help)
{
	char left[64];

	snprintf(left, sizeof(left), "        %-11s %.*s", format->name, (int)strcspn(format->suffixes, " "),
		 format->suffixes);
	cli_print_entry(left, FORMAT_HELP_COLUMN, help);
}

static void list_formats(void)
{
	for (const struct output_format *f = output_formats(); f->name; f++)
		cli_print_format(f, f->help);
}

static int take_format(const struct cli_option *option, const char *name, void *target)
{
	const char *other = cli_find_format_word(name);
	struct cli_output *output = target;
	struct cli_suggestions suggestions;
	char asked[256];

	output->format = output_by_name(name);
	if (output->format)
		return 0;
	cli_suggestions_begin(&suggestions, other ?: name);
	for (const struct output_format *f = output_formats(); f->name; f++)
		cli_suggestions_try(&suggestions, f->name);
	return cli_usage("%s %s: no such format; there are %s%s", cli_option_spelling(option), name, format_names(),
			 cli_suggestions_text(&suggestions, "", asked, sizeof(asked)));
}

static int take_limit(const struct cli_option *option, const char *value, void *target)
{
	struct cli_output *output = target;
	uint64_t rows = 0;
	int code = cli_option_whole(option, value, 1, UINT32_MAX, &rows);

	output->options.rows = (uint32_t)rows;
	return code;
}

static const struct cli_word sort_words[] = {
	{"self", OUTPUT_SORT_SELF},
	{"total", OUTPUT_SORT_TOTAL},
	{"own", OUTPUT_SORT_OWN},
	{"count", OUTPUT_SORT_COUNT},
	{0},
};

static int take_path(const struct cli_option *option, const char *value, void *target)
{
	struct cli_output *output = target;

	(void)option;
	output->bare = strcmp(value, "-") == 0;
	output->path = output->bare ? NULL : value;
	return 0;
}

#define WRITE_TO_FILE                                                                                                  \
	"write to FILE at the end, in place of stdout; the suffix chooses the format; a new file has mode 0600, a "    \
	"replaced one keeps its owner and mode; - is stdout, without a pager"

const struct cli_option cli_output_path_options[] = {
	{"output", 'o', "FILE", WRITE_TO_FILE, .take = take_path},
	{0},
};

const struct cli_option cli_output_url_options[] = {
	{"output", 'o', "FILE", WRITE_TO_FILE "; or a URL, http:// or https://, to which the profile is sent",
	 .take = take_path},
	{0},
};

const struct cli_option cli_output_format_options[] = {
	{"format", 'f', "FORMAT",
	 "the format; without -f, the suffix of -o decides; without both: text on a terminal or for a saved profile, "
	 "else folded:",
	 .list = list_formats, .values = format_names, .take = take_format},
	{"limit", 0, "N", "rows of the table of format text (default " CLI_NUMBER(OUTPUT_ROWS_DEFAULT) ")",
	 .take = take_limit},
	{"sort", 0, "WHAT",
	 "order of that table: self (default); total; own: the program's own functions with the libraries that they "
	 "call, and their waits; count: waits by their number",
	 .take = cli_take_word, .offset = offsetof(struct cli_output, options.sort), .words = sort_words},
	{"frame-marks", 0, NULL,
	 "in folded stacks, append _[n] to functions of compiled code (--native), as _[k] is appended to the kernel's",
	 .take = cli_take_flag, .offset = offsetof(struct cli_output, options.frame_marks)},
	{0},
};

const char *cli_format_suffixes(void)
{
	static char suffixes[512];
	size_t at = 0;

	for (const struct output_format *f = output_formats(); f->name && at < sizeof(suffixes); f++)
		at += (size_t)snprintf(suffixes + at, sizeof(suffixes) - at, "%s%.*s", at ? ", " : "",
				       (int)strcspn(f->suffixes, " "), f->suffixes);
	return suffixes;
}

#define CHOSEN(field) CLI_CHOSEN(struct output_options, field)

static const struct cli_choice choices[] = {
	{"--by=line", CHOSEN(by_line)}, /* or --by=expression */
	{"--by=state", CHOSEN(by_state)}, {"--by=import", CHOSEN(by_import)}, {"--sort", CHOSEN(sort)}, {0},
};

static const struct cli_rule rules[] = {
	{"--by=import", .excludes = "--by=line, --by=state, --sort",
	 .sentence = "--by=import is a table of its own, without --by=line, --by=state and --sort"},
	{"--sort", .excludes = "--by=state",
	 .sentence = "--sort and --by=state exclude each other: that table is by the time of all states"},
	{0},
};

const struct cli_rules cli_output_rules = {"record and report", sizeof(struct output_options), choices, rules};

int cli_output_choose(struct cli_output *output, const char *fallback)
{
	int code = 0;

	output->chosen = output->format || output->path || output->bare;
	if (cli_receiver_is_url(output->path))
		code = cli_receiver_choose(&output->receiver, output->path, &output->format);
	code = code ?: cli_receiver_check_unused(&output->receiver);
	if (code)
		return code;
	if (!output->format)
		output->format = output->path ? output_by_path(output->path) : output_by_name(fallback);
	if (!output->format)
		return cli_usage("-o %s: no format has that suffix; there are %s, and -f chooses one for any name",
				 output->path, cli_format_suffixes());
	if (output->format->needs & OUTPUT_BINARY && !output->path && isatty(STDOUT_FILENO))
		return cli_usage("-f %s: a binary format, which is not written to a terminal; give -o FILE, or send it "
				 "to a file or a program",
				 output->format->name);
	if (output->options.by_line && !output->format->by_line)
		return cli_usage("--by=line: %s has no lines in place of functions; text and svg have",
				 output->format->name);
	if (output->options.by_expression && !output->format->by_expression)
		return cli_usage("--by=expression: %s has no place for expressions; text, json and pybpf have",
				 output->format->name);
	output->options.by_line |= output->options.by_expression;
	if (output->options.by_state && !output->format->by_state)
		return cli_usage("--by=state: %s has no columns of states; text has", output->format->name);
	if (output->options.by_import && !output->format->rows)
		return cli_usage("--by=import: %s has no table of modules; text has", output->format->name);
	if (output->options.frame_marks && !output->format->frame_marks)
		return cli_usage("--frame-marks: %s has no marks after functions; folded has", output->format->name);
	if (output->options.rows && !output->format->rows)
		return cli_usage("--limit: %s is no table; text is", output->format->name);
	if (output->options.sort && !output->format->rows)
		return cli_usage("--sort: %s is no table; text is", output->format->name);
	return cli_rules_check(&cli_output_rules, &output->options);
}

/* Indices of the files that the committer process holds. */
enum {
	KEPT_OUTPUT,
	KEPT_SPARE,
	KEPT_OTHER,
};

int cli_output_connect(struct cli_output *output)
{
	return cli_receiver_start(&output->receiver);
}

int cli_output_open(struct cli_output *output)
{
	struct error error;

	if (!output->path)
		cli_pager_prepare(&output->pager, output->paged && !output->bare);
	if (!output->path || output->receiver.push || !output_file_open(&output->file, output->path, &error))
		return CLI_OK;
	log_error("cannot write to %s: %s", output->path, error.text);
	return CLI_FAILED;
}

/* Opens the file for a profile that cannot be sent. */
static void open_kept(struct cli_output *output)
{
	struct error error;

	snprintf(output->kept_path, sizeof(output->kept_path), "pybpf-%d.pybpf", getpid());
	if (output_file_open(&output->file, output->kept_path, &error))
		log_warn("the profile is lost if it cannot be sent, since no file can be made here: %s", error.text);
}

void cli_output_guard(struct cli_output *output)
{
	output->precious = true;
	if (output->receiver.push)
		open_kept(output);
	else if (output->path)
		cli_spare_open(&output->spare, &output->file, output->path);
}

int cli_output_entrust(struct cli_output *output, struct output_file *other)
{
	struct output_file *const files[] = {
		[KEPT_OUTPUT] = &output->file, [KEPT_SPARE] = &output->spare.file, [KEPT_OTHER] = other};
	size_t count = other ? sizeof(files) / sizeof(*files) : 1;
	struct error error;

	if (!output_committer_start(&output->committer, files, count, &error))
		return CLI_OK;
	log_error("cannot prepare the output: %s", error.text);
	return CLI_FAILED;
}

int cli_output_commit_other(struct cli_output *output, struct output_file *other)
{
	return output_committer_commit(&output->committer, other, KEPT_OTHER);
}

void cli_output_discard(struct cli_output *output)
{
	output_file_discard(&output->file);
	output_file_discard(&output->spare.file);
	output_committer_stop(&output->committer);
	cli_receiver_end(&output->receiver);
	cli_pager_discard(&output->pager);
}

/* As write(), with what it left in the stream's buffer. */
static int write_all(int (*write)(const void *what, FILE *out), const void *what, FILE *out)
{
	int err = write(what, out);

	return !err && fflush(out) ? -errno : err;
}

/* Writes the spare file, if there is one, for the error that the output's own file had. Returns whether it has its
 * name. */
static bool write_spare(struct cli_output *output, int err, int (*write)(const void *what, FILE *out), const void *what)
{
	struct cli_spare *spare = &output->spare;

	if (!cli_spare_is_for(err) || !spare->file.stream || write_all(write, what, spare->file.stream) ||
	    output_committer_commit(&output->committer, &spare->file, KEPT_SPARE))
		return false;
	log_error("cannot write %s: %s; what was to be written there is in %s", output->path, strerror(-err),
		  spare->path);
	return true;
}

/* Notes how large the file is, and gives it its name. Returns 0 or negative errno. */
static int commit(struct cli_output *output)
{
	struct stat status;
	uint64_t size = 0;
	int err;

	if (!fstat(fileno(output->file.stream), &status) && S_ISREG(status.st_mode))
		size = (uint64_t)status.st_size;
	err = output_committer_commit(&output->committer, &output->file, KEPT_OUTPUT);
	output->size = err ? 0 : size;
	return err;
}

static int write_file(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what)
{
	int err = write_all(write, what, output->file.stream);

	if (err && write_spare(output, err, write, what))
		return CLI_FAILED;
	while (output->precious && cli_spare_is_for(err) &&
	       cli_spare_wait_for_room(output->file.stream, output->path, err))
		err = write_all(write, what, output->file.stream);
	if (err)
		output_file_discard(&output->file);
	else
		err = commit(output);
	if (!err)
		return CLI_OK;
	if (!write_spare(output, err, write, what) && err != -ECANCELED)
		log_error("cannot write %s: %s; no file was made or replaced", output->path, strerror(-err));
	return CLI_FAILED;
}

static int write_stdout(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what)
{
	int err;

	do {
		cli_pager_start(&output->pager);
		err = write(what, output->pager.stream);
	} while (cli_pager_finish(&output->pager, &err));
	if (!err)
		return CLI_OK;
	if (err != -ECANCELED)
		log_error("cannot write to stdout: %s", strerror(-err));
	return CLI_FAILED;
}

int cli_output_through(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what)
{
	/* A write beyond RLIMIT_FSIZE then fails with EFBIG, and is reported as other failures are. */
	signal(SIGXFSZ, SIG_IGN);
	return output->path ? write_file(output, write, what) : write_stdout(output, write, what);
}

struct formatted {
	const struct cli_output *output;
	const struct profile *profile;
};

static int write_formatted(const void *what, FILE *out)
{
	const struct formatted *f = what;
	struct output_options options = f->output->options;

	if (!f->output->path)
		options.width = cli_terminal_width();
	return f->output->format->write(f->profile, &options, out);
}

static int write_kept(const void *profile, FILE *out)
{
	return output_pybpf(profile, &(struct output_options){0}, out);
}

/* Sends the profile; if that fails, writes it to the file that cli_output_guard() opened. */
static int send_profile(struct cli_output *output, const struct profile *profile)
{
	if (cli_receiver_send(&output->receiver, profile))
		return CLI_OK;
	if (!output->file.stream) {
		log_error("the profile was not sent");
		return CLI_FAILED;
	}
	output->path = output->kept_path;
	if (!cli_output_through(output, write_kept, profile))
		log_error("the profile was not sent, and is in %s: `pybpf report %s -o %s` sends it", output->path,
			  output->path, output->receiver.url);
	/* It was reported already. */
	output->size = 0;
	return CLI_FAILED;
}

int cli_output_write(struct cli_output *output, const struct profile *profile)
{
	if (output->receiver.push)
		return send_profile(output, profile);
	return cli_output_through(output, write_formatted, &(struct formatted){output, profile});
}

void cli_output_tell_file(const struct cli_output *output)
{
	char size[OUTPUT_AMOUNT_MAX];

	cli_receiver_tell(&output->receiver);
	if (output->size)
		log_warn("wrote %s (%s)", output->path, output_bytes(output->size, size));
}

void cli_output_tell_terminal(const struct cli_output *output)
{
	if (output->path || output->bare || !isatty(STDOUT_FILENO))
		return;
	if (!output->chosen)
		fputs("pybpf: -o FILE.html makes a report for the browser, -o FILE.pybpf keeps all for `pybpf report` "
		      "and "
		      "`pybpf diff`; -f folded prints stacks\n",
		      stderr);
	else if (!strcmp(output->format->name, "folded"))
		log_warn(
			"these are folded stacks: -f text prints a table, -o FILE.html makes a report for the browser");
	else if (strcmp(output->format->name, "text"))
		log_warn("this is %s, for other programs: -o FILE writes it to a file", output->format->name);
}
