// SPDX-License-Identifier: Apache-2.0
/* pybpf agent: samples without end, and keeps a profile of each epoch. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/log.h"
#include "cli/agent_options.h"
#include "cli/agent_push_options.h"
#include "cli/targets.h"
#include "helper/helper.h"
#include "rights/priority.h"
#include "session/groups.h"
#include "session/run.h"

static bool groups_go_on(void *groups)
{
	return session_groups_go_on(groups);
}

/* What SIGHUP needs. */
struct running {
	struct cli_agent_options *options;
	struct agent *agent;
};

static void on_hangup(void *arg)
{
	const struct running *running = arg;
	const char *path = running->options->config_path;
	struct agent_options fresh;

	if (!path)
		log_warn("SIGHUP reads the file of --config again, and there is none");
	else if (cli_agent_read_again(running->options, &fresh))
		log_warn("the options stay as they were");
	else if (!agent_change(running->agent, &fresh))
		log_warn("%s was read again: epochs of %g s, which are kept for %g s and in %.6g MiB; --max-cpu %g %%",
			 path, fresh.epoch_s, fresh.keep_s, (double)fresh.keep_size / (1 << 20), 100 * fresh.max_cpu);
}

static int run(struct cli_agent_options *o, struct agent *agent)
{
	const struct discovery_numbers *pids = &o->filter.pids;
	struct session_groups groups = {.filter = &o->filter, .quiet = true};
	const struct rights_wanted rights = {.level = RIGHTS_SAMPLE,
					     .makes_maps = o->session.native != SESSION_NATIVE_NONE};
	struct session *session;
	int code = CLI_FAILED;

	if (cli_targets_check(pids, &o->session, o->filter.children))
		return code;
	cli_targets_warn(&o->session);
	session = session_new(&o->session);
	priority_raise();
	if (session && !session_follow(session, pids->items, pids->count) && !session_attach(session) &&
	    !cli_drop_rights(&rights)) {
		groups.sessions[0] = session;
		if (!agent_run(agent, session, o->filter.group_count ? groups_go_on : NULL, &groups))
			code = CLI_OK;
	}
	session_free(session);
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
	o->agent.max_stacks = o->session.max_stacks;
	o->agent.freq = o->session.freq;
	o->agent.mode = o->session.mode;
}

/* Reads the files that options name, as the start does. */
static int check_files(const struct agent_options *o)
{
	struct error error;
	int code = cli_agent_push_check_files(&o->push);

	if (code || !o->serve.listen || !serve_check(&o->serve, &error))
		return code;
	log_error("%s", error.text);
	return CLI_FAILED;
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
	cli_set_verbosity(o.verbose);
	signal(SIGPIPE, SIG_IGN);
	/* A write beyond RLIMIT_FSIZE then fails with EFBIG, and is reported as other failures are. */
	signal(SIGXFSZ, SIG_IGN);
	session_run_signals(&signals);
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
