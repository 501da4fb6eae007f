// SPDX-License-Identifier: Apache-2.0
/* pybpf agent: samples without end, and keeps a profile of each epoch. */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/agent_options.h"
#include "cli/agent_push_options.h"
#include "cli/targets.h"
#include "helper/helper.h"
#include "rights/priority.h"
#include "session/groups.h"
#include "session/run/run.h"

/*
 * Stacks of CPU samples that the kernel has room for. The agent takes them as soon as half of that is used, which 100
 * CPUs do in two seconds by default. With this, the maps of CPU samples and of waits, and pybpf itself, take less than
 * 64 MiB together on a small machine.
 */
#define CPU_MAX_STACKS 8192

static bool groups_go_on(void *groups)
{
	return session_groups_go_on(groups);
}

/* What SIGHUP needs. */
struct running {
	struct cli_agent_options *options;
	struct agent *agent;
};

/* Returns whether files with secrets or certificates were read, at the start. */
static bool has_secrets(const struct agent_options *o)
{
	const struct push_options *push = &o->push.common;

	return push->token || push->headers || push->ca || push->certificate || push->key || o->serve.token;
}

static void on_hangup(void *arg)
{
	const struct running *running = arg;
	const char *path = running->options->config_path;
	struct agent_options fresh;

	if (!path) {
		log_warn("SIGHUP changes nothing: there is no --config file to read again");
	} else if (cli_agent_read_again(running->options, &fresh)) {
		agent_count_refused_change(running->agent);
		log_warn("the options stay as they were");
	} else if (!agent_change(running->agent, &fresh)) {
		log_warn(
			"%s was read again: epochs of %g s, which are kept for %g s and in %.6g MiB; --max-cpu %g %%%s",
			path, fresh.epoch_s, fresh.keep_s, (double)fresh.keep_size / (1 << 20), 100 * fresh.max_cpu,
			has_secrets(&running->options->agent)
				? "; tokens, headers and certificates are read at the start only"
				: "");
	}
}

/* Returns the options of the session that measures one of the modes. */
static struct session_options options_of(const struct cli_agent_options *o, size_t mode)
{
	struct session_options options = o->session;

	options.mode = o->agent.modes[mode];
	options.chosen = &o->chosen[mode];
	options.run = (unsigned)mode;
	/* Waits begin with a stack for each thread that sleeps. */
	if (options.mode == SESSION_CPU)
		options.max_stacks = CPU_MAX_STACKS;
	return options;
}

/* Checks the processes that were given. Returns 0, or an exit code after one sentence on stderr. */
static int check_targets(const struct cli_agent_options *o)
{
	struct session_options options = options_of(o, 0);

	/* The only mode that a process may be unfit for. */
	for (size_t i = 0; i < o->agent.nr_modes; i++) {
		if (o->agent.modes[i] == SESSION_GIL)
			options.mode = SESSION_GIL;
	}
	return cli_targets_check(&o->filter.pids, &options, o->filter.children);
}

/* Makes the sessions. Returns 0, or negative errno after reporting what failed. */
static int make_sessions(const struct cli_agent_options *o, struct session **sessions)
{
	for (size_t i = 0; i < o->agent.nr_modes; i++) {
		const struct session_options options = options_of(o, i);

		sessions[i] = session_new(&options);
		if (!sessions[i])
			return -EINVAL;
	}
	return 0;
}

/* Begins to sample: all at once, for their epochs begin together. Returns as make_sessions(). */
static int begin_sessions(const struct cli_agent_options *o, struct session **sessions)
{
	const struct discovery_numbers *pids = &o->filter.pids;
	int err = 0;

	for (size_t i = 0; i < o->agent.nr_modes && !err; i++)
		err = session_follow(sessions[i], pids->items, pids->count);
	for (size_t i = 0; i < o->agent.nr_modes && !err; i++)
		err = session_attach(sessions[i]);
	return err;
}

static int run(struct cli_agent_options *o, struct agent *agent)
{
	struct session_groups groups = {.filter = &o->filter, .quiet = true};
	const struct rights_wanted rights = {.level = RIGHTS_SAMPLE,
					     .makes_maps = o->session.native != SESSION_NATIVE_NONE};
	struct session *sessions[AGENT_MODES_MAX] = {NULL};
	int code = CLI_FAILED, err;

	if (check_targets(o))
		return code;
	cli_targets_warn(&o->session);
	err = make_sessions(o, sessions);
	priority_raise();
	if (!err && !begin_sessions(o, sessions) && !cli_drop_rights(&rights)) {
		memcpy(groups.sessions, sessions, sizeof(sessions));
		if (!agent_run(agent, sessions, o->filter.group_count ? groups_go_on : NULL, &groups))
			code = CLI_OK;
	}
	for (size_t i = 0; i < AGENT_MODES_MAX; i++)
		session_free(sessions[i]);
	return code;
}

/* What a profile of the agent has of each process. */
static void set_session(struct cli_agent_options *o)
{
	o->session.start_ns = cli_start_ns;
	o->session.rolling = true;
	o->session.containers = true;
	o->session.services = &o->services;
	o->session.own_paths = &o->edit.own_paths;
	o->session.follow = o->filter.children;
	o->agent.freq = o->session.freq;
}

/* Reads the files that options name, as the start does. */
static int check_files(const struct agent_options *o)
{
	struct error error;
	int code = cli_agent_push_check_files(&o->push);

	if (code || !o->serve.listen || !serve_check(&o->serve, &error))
		return code;
	return cli_fail_of("--listen-token", error.text);
}

int cli_agent(int argc, char **argv)
{
	struct cli_targets targets = {0};
	struct cli_agent_options o = {.verbose = 0};
	struct running running = {.options = &o};
	struct agent *agent = NULL;
	struct error error;
	sigset_t signals;
	bool helped = false;
	int code;

	cli_agent_options_init(&o);
	code = cli_agent_parse(&o, argc, argv, &helped);
	if (code || helped)
		goto done;
	if (o.check) {
		code = check_files(&o.agent);
		if (!code)
			puts("The options are in order.");
		goto done;
	}
	set_session(&o);
	o.agent.on_hangup = on_hangup;
	o.agent.on_hangup_arg = &running;
	helper_go_on_at_hangup();
	cli_set_verbosity(o.verbose);
	log_never_wait();
	signal(SIGPIPE, SIG_IGN);
	/* A write beyond RLIMIT_FSIZE then fails with EFBIG, and is reported as other failures are. */
	signal(SIGXFSZ, SIG_IGN);
	/* It does not end the agent, and nohup(1) must not keep it from it. */
	signal(SIGHUP, SIG_DFL);
	signals_of_run(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	priority_raise(); /* of the helpers, too */
	code = cli_start_helpers();
	priority_restore();
	code = code ?: cli_targets_check_host();
	code = code ?: cli_targets_choose(&targets, &o.filter, &o.session, false);
	if (code)
		goto done;
	agent = agent_new(&o.agent, &error);
	if (!agent)
		log_error("%s", error.text);
	running.agent = agent;
	code = agent ? run(&o, agent) : CLI_FAILED;
done:
	agent_free(agent);
	cli_targets_free(&targets);
	cli_agent_options_free(&o);
	helper_stop();
	return code;
}
