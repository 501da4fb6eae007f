// SPDX-License-Identifier: Apache-2.0
/* Puts into the profile what stacks hold of the memory that became resident, and tells what they do not. */
#include "session/samples/resident.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/beyond.h"
#include "kernel/events.h"
#include "session/account/account_entry.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/sample_owner.h"

static void init(struct session *s)
{
	session_page_owners_init(&s->page_owners);
}

static void release(struct session *s)
{
	session_page_owners_free(&s->page_owners);
}

static int take(struct session *s, const struct pybpf_event *event)
{
	return session_page_owners_take(&s->page_owners, (const void *)event, event->size, session_takes_new_stacks(s));
}

/* Adds what a stack holds: of a process that has ended, when it held most. */
static int add_count(struct session *s, const struct session_counted *counted)
{
	const struct pybpf_thread_key of = counted->key->thread;
	uint64_t bytes = session_page_owners_get(&s->page_owners, counted->key, counted->process->ended);
	uint32_t owner, thread;

	s->touched += counted->count->value;
	if (!bytes)
		return 0;
	s->held_at_most += counted->process->ended ? bytes : 0;
	return session_find_owners(s, &of, counted->process, &owner, &thread)
		       ?: profile_add_sample(s->profile, counted->stack, owner, thread, bytes);
}

static void forget_process(struct session *s, uint64_t proc_id)
{
	session_page_owners_forget(&s->page_owners, proc_id);
}

static void tell(const struct session *s, struct session_account *account)
{
	uint64_t given, taken;

	account->has_held = true;
	session_page_owners_tell(&s->page_owners, &given, &taken);
	account->held = given - taken;
	account->unknown_touched = beyond(account->touched, given);
	account->unknown_given_back = beyond(account->given_back, taken);
	account->unsent_memory = kernel_get_memory_unsent(s->kernel);
	account->refused_memory = s->page_owners.refused;
	account->held_at_most = s->held_at_most;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	(void)p;
	if (!a->unit)
		return;
	fprintf(out, "pybpf: %.1f MiB of resident memory became new, and %.1f MiB were given back", mib(a->touched),
		mib(a->given_back));
	if (!a->has_held) {
		fputs(", which are not subtracted from the stacks\n", out);
		return;
	}
	fprintf(out,
		": stacks hold %.1f MiB of the difference; no stack is known for %.1f MiB of what became new and for "
		"%.1f MiB of what was given back\n",
		mib(a->held), mib(a->unknown_touched), mib(a->unknown_given_back));
	if (a->held_at_most)
		fprintf(out,
			"pybpf: processes that have ended are shown with what they held when each held most, in sum "
			"%.1f MiB\n",
			mib(a->held_at_most));
	if (a->refused_memory)
		fprintf(out,
			"pybpf: the owners of %.1f MiB could not be recorded: the memory was used up (see "
			"--max-memory)\n",
			mib(a->refused_memory));
	if (a->unsent_memory)
		fprintf(out,
			"pybpf: %" PRIu64 " change%s of memory %s lost, as a buffer of the kernel was full: stacks may "
			"hold more or less than shown\n",
			a->unsent_memory, a->unsent_memory == 1 ? "" : "s", a->unsent_memory == 1 ? "was" : "were");
}

static const struct session_entry entries[] = {
	{"memory", "held_bytes", SESSION_COUNT(held)},
	{"memory", "held_at_most_bytes", SESSION_COUNT(held_at_most)},
	{"memory", "unknown_touched_bytes", SESSION_COUNT(unknown_touched)},
	{"memory", "unknown_given_back_bytes", SESSION_COUNT(unknown_given_back)},
	{"memory", "refused_bytes", SESSION_COUNT(refused_memory)},
	{"memory", "lost_records", SESSION_COUNT(unsent_memory)},
	{0},
};

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->held = options->held;
}

static bool is_wanted(const struct session_options *options)
{
	return options->held;
}

const struct session_measure session_resident_measure = {
	.name = "resident memory",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.init = init,
	.free = release,
	.records = SESSION_RECORD(PYBPF_EVENT_MEMORY),
	.take = take,
	.add_count = add_count,
	.needs_records = true,
	.forget_process = forget_process,
	.tell = tell,
	.print = print,
	.entries = entries,
};
