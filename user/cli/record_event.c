// SPDX-License-Identifier: Apache-2.0
/* --event and --period of record: what takes a sample. */
#include "cli/record_event.h"

#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/uprobe.h"

static const struct {
	const char *name;
	enum kernel_source source;
} timers[] = {
	{"auto", KERNEL_SOURCE_AUTO},
	{"cycles", KERNEL_SOURCE_CYCLES},
	{"cpu-clock", KERNEL_SOURCE_CPU_CLOCK},
};

int cli_take_event(const struct cli_option *option, const char *value, struct session_options *session,
		   struct cli_record_event *event)
{
	event->name = NULL;
	for (size_t i = 0; i < sizeof(timers) / sizeof(*timers); i++) {
		if (strcmp(value, timers[i].name) != 0)
			continue;
		session->source = timers[i].source;
		return 0;
	}
	if (kernel_parse_event(value, 1, &event->text, &event->event))
		return cli_usage("%s %s: not an event; it takes auto, cycles, cpu-clock, " KERNEL_EVENT_NAMES,
				 cli_option_spelling(option), value);
	event->name = value;
	return 0;
}

static int choose_memory(struct session_options *session, struct cli_record_event *event)
{
	struct error error;

	if (event->name)
		return cli_usage(
			"-e %s and --mode=memory contradict each other: a run counts events or measures memory",
			event->name);
	session->held = !session->touched;
	if (session->held && kernel_check_memory_points(&error)) {
		log_warn("--mode=memory: %s; stacks have all bytes that they touched, as with --touched", error.text);
		session->held = false;
	}
	kernel_choose_memory(session->held, &event->event);
	if (kernel_check_event(&event->event, &error)) {
		log_error("--mode=memory: %s", error.text);
		return CLI_FAILED;
	}
	session->events = &event->event;
	session->nr_events = 1;
	return 0;
}

int cli_choose_event(struct session_options *session, struct cli_record_event *event, bool freq, uint32_t pid)
{
	struct error error;

	if (event->memory)
		return choose_memory(session, event);
	if (!event->name)
		return 0;
	if (session->mode != SESSION_CPU)
		return cli_usage("-e %s and --mode=%s contradict each other: events are counted with --mode=cpu",
				 event->name, session->mode == SESSION_WALL ? "wall" : "offcpu");
	if (freq)
		return cli_usage("-F is the rate of the timer, and -e %s has none; --period N samples every N of them",
				 event->name);
	if (event->period)
		event->event.period = event->period;
	if (kernel_check_event(&event->event, &error)) {
		log_error("-e %s: %s", event->name, error.text);
		return CLI_FAILED;
	}
	if (event->event.path) {
		int code = cli_find_uprobe(&event->event, &event->text, pid);

		if (code)
			return code;
	}
	session->events = &event->event;
	session->nr_events = 1;
	return 0;
}
