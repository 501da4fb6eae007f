// SPDX-License-Identifier: Apache-2.0
/* pybpf [record]: samples processes or a command as the options say, and writes the profile. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/as.h"
#include "cli/debuginfod.h"
#include "cli/record_options.h"
#include "cli/targets.h"
#include "helper/helper.h"
#include "base/log.h"
#include "profile/imports.h"
#include "rights/priority.h"
#include "profile/edit.h"
#include "session/account/account.h"
#include "session/run/command.h"
#include "session/groups.h"
#include "session/run/run.h"
#include "session/account/unsampled_report.h"

struct record {
	struct cli_record_options options;
	struct cli_targets targets;
	struct output_file json;
	struct caller as; /* of --as */
};

static int open_json(struct record *r)
{
	struct error error;

	if (!r->options.json_path)
		return 0;
	if (output_file_open(&r->json, r->options.json_path, &error)) {
		log_error("cannot write to %s: %s", r->options.json_path, error.text);
		return CLI_FAILED;
	}
	if (!output_file_same(&r->json, &r->options.output.file))
		return 0;
	return cli_usage("-o %s and --json-stats %s are the same file; give two", r->options.output.path,
			 r->options.json_path);
}

static int write_json(struct record *r, const struct session_account *account)
{
	int err;

	session_account_json(account, r->json.stream);
	err = cli_output_commit_other(&r->options.output, &r->json);
	if (!err)
		return 0;
	log_error("cannot write %s: %s; no file was made or replaced", r->options.json_path, strerror(-err));
	return CLI_FAILED;
}

/* Returns a copy of the profile as the options change it, or NULL after one sentence on stderr. */
static struct profile *edited(const struct profile *profile, struct profile_edit *edit)
{
	struct profile *copy = profile_new();
	struct error error = {.code = -ENOMEM, .text = "out of memory"};

	if (copy && !profile_edit_check(edit, &error) && !profile_edit_add(copy, profile, edit, &error))
		return copy;
	log_error("cannot change the profile as the options ask: %s", error.text);
	profile_free(copy);
	return NULL;
}

static int write_profile(struct record *r, const struct profile *profile)
{
	struct profile_edit *edit = &r->options.edit;
	struct profile *copy;
	int code;

	edit->fold_imports = edit->fold_imports && profile_has_importlib(profile);
	if (!edit->anonymize && !edit->own_only && !edit->fold_idle && !edit->fold_imports && !edit->focus.count &&
	    !edit->ignore.count)
		return cli_output_write(&r->options.output, profile);
	copy = edited(profile, edit);
	code = copy ? cli_output_write(&r->options.output, copy) : CLI_FAILED;
	if (!code && !profile_total(copy) && profile_total(profile))
		log_warn("no sample is left: nothing that was sampled passes --focus and --ignore");
	else if (!code && !r->options.quiet)
		output_account_group(copy, PROFILE_ACCOUNT_LEFT_OUT, "pybpf: ", "left out", stderr);
	profile_free(copy);
	return code;
}

static void tell_account(const struct record *r, struct session *session, const struct session_account *account,
			 const struct profile *profile)
{
	session_account_print(account, profile, r->options.stats, stderr);
	/* Why a thread has no CPU time tells nothing of other events. */
	if (!account->has_states && !account->event)
		session_print_unsampled(session, account, stderr);
	session_print_simulated(session, account, stderr);
	cli_output_tell_file(&r->options.output);
	if (profile_total(profile))
		cli_output_tell_terminal(&r->options.output);
}

static int finish(struct record *r, struct session *session)
{
	const struct profile *profile;
	struct session_account account;
	int code = session_collect(session, &profile, &account) ? CLI_FAILED : CLI_OK;

	if (code)
		return code;
	code = write_profile(r, profile);
	if (cli_targets_tell_undecided(session))
		code = r->options.command ? code : code ?: CLI_FAILED;
	else if (r->options.command && !session_python_found(session))
		log_warn("no Python was found in %s: it may be another program, or have ended too early",
			 r->options.command[0]);
	else if (r->options.filter.children && !session_python_found(session))
		log_warn("no Python was found in process %u, nor in what it started", r->options.filter.pids.items[0]);
	if (!r->options.quiet)
		tell_account(r, session, &account, profile);
	if (r->options.json_path) {
		if (r->options.edit.anonymize)
			session_account_hide(&account);
		code = write_json(r, &account) ?: code;
	}
	return code;
}

static void say_end(const struct record *r, enum session_end end)
{
	const struct discovery_filter *filter = &r->options.filter;

	if (end != SESSION_END_TARGET || r->options.quiet)
		return;
	if (filter->pids.count && filter->children)
		log_warn("the processes and what they started ended during the run; what was sampled until then "
			 "follows");
	else if (filter->pids.count == 1)
		log_warn("process %u ended during the run; what was sampled until then follows", filter->pids.items[0]);
	else if (filter->pids.count)
		log_warn("all %zu processes ended during the run; what was sampled until then follows",
			 filter->pids.count);
	else
		log_warn("%s %s stopped during the run; what was sampled until then follows",
			 filter->containers.count ? "container" : "cgroup",
			 filter->containers.count ? filter->containers.items[0] : filter->cgroups.items[0]);
}

static bool groups_go_on(void *groups)
{
	return session_groups_go_on(groups);
}

/*
 * The priority is raised for what follows the load: the verifier takes as much as a second of a CPU, which would be
 * taken from the program to be profiled.
 */
static struct session *new_session(const struct record *r)
{
	struct session *session = session_new(&r->options.session);

	priority_raise();
	return session;
}

static int record_targets(struct record *r)
{
	const struct discovery_numbers *pids = &r->options.filter.pids;
	struct session_run run = {.duration_s = r->options.duration_s};
	struct session_groups groups = {.filter = &r->options.filter, .quiet = r->options.quiet};
	const struct rights_wanted rights = {.level = RIGHTS_SAMPLE,
					     .makes_maps = r->options.session.native != SESSION_NATIVE_NONE};
	struct session *session = NULL;
	enum session_end end;
	int code = CLI_FAILED;

	if (cli_targets_check(pids, &r->options.session, r->options.filter.children))
		goto done;
	if (!r->options.quiet)
		cli_targets_warn(&r->options.session);
	session = new_session(r);
	if (!session || session_follow(session, pids->items, pids->count) || session_attach(session) ||
	    cli_drop_rights(&rights))
		goto done;
	if (r->options.filter.group_count) {
		run.goes_on = groups_go_on;
		run.goes_on_arg = &groups;
	}
	groups.sessions[0] = run.sessions[0] = session;
	run.progress = !r->options.quiet && isatty(STDERR_FILENO);
	end = session_run(&run);
	session_detach(session);
	priority_restore();
	say_end(r, end);
	code = finish(r, session);
	if (end == SESSION_END_ERROR)
		code = CLI_FAILED;
done:
	session_free(session);
	return code;
}

/* The run is over and its profile written, but the command goes on, and pybpf ends with its exit status. */
static void tell_wait(const struct record *r, struct session_command *command)
{
	if (session_command_reap(command, 0))
		return;
	log_warn("sampling has ended and the profile is written%s%s; waiting for %s (process %d) to end",
		 r->options.output.path ? " to " : "", r->options.output.path ?: "", r->options.command[0],
		 command->pid);
}

static int record_command(struct record *r, const struct session_signals *before)
{
	struct session_command command = {0};
	struct rights_wanted rights = {.level = RIGHTS_SAMPLE,
				       .makes_maps = r->options.session.native != SESSION_NATIVE_NONE};
	struct session_run run = {.command = &command, .duration_s = r->options.duration_s};
	struct session *session = NULL;
	enum session_end end;
	int code = CLI_FAILED, err;
	uint32_t command_pid;

	if (!r->options.as && !r->options.quiet)
		cli_as_tell_root();
	err = session_command_start(&command, r->options.command, before, r->options.as ? &r->as : NULL);
	if (err) {
		log_error("cannot start %s: %s", r->options.command[0], strerror(-err));
		goto done;
	}
	command_pid = (uint32_t)command.pid;
	session = new_session(r);
	rights.command = command.pid;
	if (!session || session_follow(session, &command_pid, 1) || session_attach(session) || cli_drop_rights(&rights))
		goto done;
	code = session_command_release(&command, r->options.command[0]);
	if (code)
		goto done;
	run.sessions[0] = session;
	end = session_run(&run);
	session_detach(session);
	priority_restore();
	code = finish(r, session);
	if (end == SESSION_END_ERROR)
		code = CLI_FAILED;
	if (!code && end == SESSION_END_DURATION && !r->options.quiet)
		tell_wait(r, &command);
	if (!code && end == SESSION_END_TARGET && !r->options.quiet)
		session_print_left_behind(session, stderr);
	session_run_command(&command);
	if (!code)
		code = command.exit_code;
done:
	session_command_drop(&command);
	session_free(session);
	return code;
}

int cli_record(int argc, char **argv)
{
	struct record r = {.options = {.session = SESSION_OPTIONS_DEFAULT}};
	struct session_signals before;
	bool done = false;
	int code = cli_record_parse(&r.options, argc, argv, &done);

	if (code || done)
		return code;
	r.options.session.start_ns = cli_start_ns;
	cli_set_verbosity(r.options.verbose);
	r.options.session.measure_kernel = r.options.stats || r.options.json_path;
	session_take_signals(&before);
	code = cli_output_connect(&r.options.output);
	if (!code && r.options.session.native != SESSION_NATIVE_NONE)
		code = cli_debuginfod_start(r.options.debuginfod, &r.options.session.fetch);
	r.options.session.fetch_progress = !r.options.quiet && isatty(STDERR_FILENO);
	if (!code && r.options.as)
		code = cli_as_find(&r.as, r.options.as);
	priority_raise(); /* of the helpers, too */
	code = code ?: cli_start_helpers();
	priority_restore();
	code = code ?: cli_targets_check_host();
	r.options.session.follow = r.options.command ? !r.options.no_children : r.options.filter.children;
	code = code ?: cli_targets_choose(&r.targets, &r.options.filter, &r.options.session, r.options.command);
	code = code ?: cli_output_open(&r.options.output);
	if (!code)
		cli_output_guard(&r.options.output);
	code = code ?: open_json(&r);
	code = code ?: cli_output_entrust(&r.options.output, &r.json);
	if (!code)
		code = r.options.command ? record_command(&r, &before) : record_targets(&r);
	output_file_discard(&r.json);
	cli_output_discard(&r.options.output);
	caller_free(&r.as);
	cli_targets_free(&r.targets);
	discovery_filter_free(&r.options.filter);
	profile_edit_free(&r.options.edit);
	helper_stop();
	fetch_end(&r.options.session.fetch);
	return code;
}
