// SPDX-License-Identifier: Apache-2.0
/* The options of record that say how to sample. */

#include "cli/record_options.h"

#include <stddef.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

/* A mode of the command line beside those of the session: of SESSION_CPU, some threads only. */
#define MODE_EXCEPTION (SESSION_GIL + 1)
#define MODE_MEMORY    (SESSION_GIL + 2)

static const struct cli_word mode_words[] = {
	{"cpu", SESSION_CPU},
	{"wall", SESSION_WALL},
	{"offcpu", SESSION_OFFCPU},
	{"gil", SESSION_GIL},
	{"exception", MODE_EXCEPTION},
	{"memory", MODE_MEMORY},
	{0},
};

static int take_mode(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	int mode = SESSION_CPU, code = cli_option_word(option, value, &mode);

	r->session.exception = mode == MODE_EXCEPTION;
	r->event.memory = mode == MODE_MEMORY;
	r->session.mode = mode > SESSION_GIL ? SESSION_CPU : (enum session_mode)mode;
	return code;
}

enum wait_detail {
	WAIT_DETAIL_ALL,
	WAIT_DETAIL_NONE,
};

static const struct cli_word wait_detail_words[] = {
	{"all", WAIT_DETAIL_ALL},
	{"none", WAIT_DETAIL_NONE},
	{0},
};

#define DURATION_LEAST_S 0.001
#define DURATION_MOST_S  1e9

#define MIN_BLOCK_LEAST_S   1e-6
#define ASYNC_BLOCK_LEAST_S 1e-3

static int take_duration(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	if (cli_duration(value, &r->duration_s) || r->duration_s < DURATION_LEAST_S || r->duration_s > DURATION_MOST_S)
		return cli_usage(
			"%s %s: not a duration; it takes seconds above 0, such as 30 or 0.5, or 500ms, 2m, 1h; "
			"without %s the run lasts until Ctrl-C, or until the processes end",
			cli_option_spelling(option), value, cli_option_spelling(option));
	return 0;
}

static int take_freq(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	int code = cli_option_rate(option, value, &r->session.freq);

	r->freq_given = !code;
	return code;
}

static int take_min_block(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	double seconds;

	if (cli_duration(value, &seconds) || seconds < MIN_BLOCK_LEAST_S || seconds > DURATION_MOST_S)
		return cli_usage("%s %s: not a length of waits; it takes a time such as 500us, 1ms or 0.5 (in seconds)",
				 cli_option_spelling(option), value);
	r->session.min_block_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return 0;
}

static int take_async(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	if (value && strcmp(value, "all") != 0)
		return cli_usage("%s=%s: it takes all, or no value", cli_option_spelling(option), value);
	r->session.tasks = true;
	r->session.suspended |= value != NULL;
	return 0;
}

static int take_async_block(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	double seconds;

	if (cli_duration(value, &seconds) || seconds < ASYNC_BLOCK_LEAST_S || seconds > DURATION_MOST_S)
		return cli_usage("%s %s: not a length of callbacks; it takes a time from 1ms up, such as 20ms or 0.5 "
				 "(in seconds)",
				 cli_option_spelling(option), value);
	r->session.loop_block_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return 0;
}

int cli_take_native(const struct cli_option *option, const char *value, struct session_options *session)
{
	if (value && strcmp(value, "all") != 0)
		return cli_usage("%s=%s: it takes all, or no value", cli_option_spelling(option), value);
	session->native = value ? SESSION_NATIVE_ALL : SESSION_NATIVE;
	return 0;
}

static int take_native(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	return cli_take_native(option, value, &r->session);
}

void cli_take_native_lines(struct session_options *session)
{
	session->native_lines = true;
	if (session->native == SESSION_NATIVE_NONE)
		session->native = SESSION_NATIVE;
}

static int take_native_lines(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	(void)option;
	(void)value;
	cli_take_native_lines(&r->session);
	return 0;
}

static int take_native_memory(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	return cli_option_mib(option, value, SESSION_NATIVE_MEMORY_LEAST, SESSION_NATIVE_MEMORY_MOST,
			      &r->session.native_memory);
}

static int take_event(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	return cli_take_event(option, value, &r->session, &r->event);
}

/* Events of a second at most, in the fastest case. */
#define PERIOD_MOST 1000000000

static int take_period(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;

	return cli_option_whole(option, value, 1, PERIOD_MOST, &r->event.period);
}

static int take_wait_detail(const struct cli_option *option, const char *value, void *target)
{
	struct cli_record_options *r = target;
	int which = WAIT_DETAIL_ALL, code = cli_option_word(option, value, &which);

	r->session.no_wait_detail = which == WAIT_DETAIL_NONE;
	return code;
}

const struct cli_option cli_record_sampling_options[] = {
	{"mode", 0, "MODE",
	 "cpu: where threads use CPUs (default); wall: all the time of all threads, with what they wait for; offcpu: "
	 "the same without the time on CPUs; gil: the time that threads wait for the GIL, with its holder, or sleep "
	 "while holding it; times are in microseconds; exception: as cpu, but only threads that raise or handle an "
	 "exception; memory: bytes of resident memory, by the stack that touched it first, less what was released "
	 "since",
	 .take = take_mode, .words = mode_words},
	{"gil", 0, NULL, "only threads that hold the GIL, or, in free-threaded builds, that are attached to Python",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.gil)},
	{"gc", 0, NULL, "mark garbage collections, with [gc] as the last frame, above the function that triggered them",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.gc)},
	{"opcodes", 0, NULL,
	 "add the bytecode instruction that the last function executes, as the last frame; the specialized one from "
	 "3.11 on",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.opcodes)},
	{"duration", 'd', "SECONDS",
	 "stop after this time, in seconds or with a unit: 500ms, 2m, 1h (default: at Ctrl-C, or when the processes "
	 "end)",
	 .take = take_duration},
	{"freq", 'F', "HZ",
	 "samples per second and CPU, from 1 to the kernel's limit (default " CLI_NUMBER(SESSION_FREQ_DEFAULT) ")",
	 .take = take_freq},
	{"rate", 'r', "HZ", .take = take_freq},
	{"idle", 0, NULL,
	 "with --mode=wall and offcpu: also show threads that slept throughout while others of their process ran; in "
	 "text, list waits for work (pools, servers, event loops) by function, not as one row",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.idle_threads)},
	{"wait-detail", 0, "WHICH",
	 "with --mode=wall and offcpu: all: name peers, files and processes that are waited for (default); none",
	 .take = take_wait_detail, .words = wait_detail_words},
	{"min-block", 0, "TIME",
	 "with --mode=wall and offcpu: leave out waits shorter than this, such as 500us or 1ms; the account has their "
	 "number and total time",
	 .take = take_min_block},
	{"wakers", 0, NULL,
	 "with --mode=wall, offcpu and gil: after each wait, add what ended it: a thread with its Python functions, a "
	 "timer or an interrupt",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.wakers)},
	{"gil-holders", 0, NULL,
	 "with --mode=gil: show the stacks of the threads that held the GIL instead of the stacks that waited for it",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.gil_holders)},
	{"gil-pairs", 0, NULL,
	 "with --mode=gil: after each wait, add the functions of the thread that held the GIL, innermost first, so "
	 "that a flame graph shows both sides",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.gil_pairs)},
	{"touched", 0, NULL,
	 "with --mode=memory: count all memory that became resident, including what was released since",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.touched)},
	{"async", 0, "all",
	 "add the running asyncio task, and the tasks that await it, to the stacks, as [task: NAME]; =all, with "
	 "--mode=wall and offcpu: also the time of suspended tasks, with the functions in which they are suspended and "
	 "what they await; Python 3.7 and later",
	 .take = take_async, .optional = true},
	{"async-block", 0, "TIME",
	 "with --async: the account lists callbacks that block their event loop for this time or longer, by task and "
	 "line (default 50ms)",
	 .take = take_async_block},
	{"event", 'e', "EVENT",
	 "cycles, cpu-clock, or auto: cycles where the CPU can count them (default); or an event to count instead of "
	 "time: page-faults, minor-faults, major-faults, context-switches, tracepoint:CATEGORY:NAME, "
	 "uprobe:PATH:SYMBOL",
	 .take = take_event},
	{"kernel", 0, NULL, "add the kernel's functions after the function that runs, as NAME_[k]",
	 .take = cli_take_flag, .offset = offsetof(struct cli_record_options, session.kernel_stacks)},
	{"native", 'n', "all",
	 "add functions of C and other compiled languages between those of Python, without the interpreter's own; "
	 "=all: with those; x86-64 and Linux 5.17 or later",
	 .take = take_native, .optional = true},
	{"native-lines", 0, NULL,
	 "--native with line numbers of these functions, and with functions inlined into them, for files whose debug "
	 "information (DWARF) is in them or is found elsewhere",
	 .take = take_native_lines},
	{"debuginfod", 0, "URL",
	 "with --native: the debuginfod server to ask, after the run, for debug files that are missing here; several "
	 "are separated by blanks; used instead of $DEBUGINFOD_URLS; no: ask none",
	 .take = cli_take_text, .offset = offsetof(struct cli_record_options, debuginfod)},
	{"native-memory", 0, "MIB",
	 "memory for the tables by which --native finds callers (default " CLI_NUMBER(
		 SESSION_NATIVE_MEMORY_DEFAULT) "), in addition to --max-memory",
	 .take = take_native_memory},
	{"period", 'c', "N", "with an event that is counted: take one sample for every N events on a CPU (default 1)",
	 .take = take_period},
	{0},
};
