// SPDX-License-Identifier: Apache-2.0
/* Adds up who held the GIL while others waited for it, and who slept with it. */
#include "session/waits/gil.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/remote.h"
#include "base/text.h"
#include "discovery/discovery.h"
#include "kernel/procs.h"
#include "kernel/waits.h"
#include "output/amount.h"
#include "profile/profile.h"
#include "session/account/account_entry.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/place_name.h"
#include "session/waits/wait_name.h"

struct place {
	uint32_t frame; /* of the profile, NOWHERE or UNKNOWN */
	uint32_t pad;
	uint64_t count, ns, longest_ns;
};

#define UNKNOWN PROFILE_NONE
#define NOWHERE (PROFILE_NONE - 1) /* nobody held the GIL */

void session_gil_init(struct session_gil *g)
{
	memset(g, 0, sizeof(*g));
	intern_init(&g->holders, sizeof(struct place), sizeof(uint32_t));
	intern_init(&g->asleep, sizeof(struct place), sizeof(uint32_t));
}

void session_gil_forget_frames(struct session_gil *g)
{
	intern_free(&g->holders);
	intern_free(&g->asleep);
}

void session_gil_free(struct session_gil *g)
{
	session_gil_forget_frames(g);
	session_gil_init(g);
}

static enum pybpf_state state_of(uint64_t wait_id)
{
	return (enum pybpf_state)PYBPF_WAIT_STATE_OF(wait_id);
}

bool session_gil_shows(uint64_t wait_id)
{
	if (wait_id & PYBPF_WAIT_WITH_GIL)
		return !pybpf_state_is_ready(state_of(wait_id));
	return state_of(wait_id) == PYBPF_STATE_GIL;
}

/* Returns the stack of the innermost function of Python, or of what stands in place of one; without any the stack. */
static uint32_t python_of(const struct profile *profile, uint32_t stack)
{
	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(profile, s)->parent) {
		const struct profile_frame *frame = profile_frame_at(profile, profile_stack_at(profile, s)->frame);

		if (frame->kind != PROFILE_KERNEL && frame->kind != PROFILE_NATIVE &&
		    strcmp(profile_string(profile, frame->name), PROFILE_NATIVE_INCOMPLETE) != 0)
			return s;
	}
	return stack;
}

static int add_place(struct intern *places, const struct profile *profile, uint32_t stack,
		     const struct pybpf_wait_time *time)
{
	struct place fresh = {.frame = UNKNOWN}, *place;
	bool is_fresh;
	uint32_t i;

	if (stack == PROFILE_ROOT)
		fresh.frame = NOWHERE;
	else if (stack != PROFILE_NONE)
		fresh.frame = profile_stack_at(profile, python_of(profile, stack))->frame;
	i = intern_add(places, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	place = intern_item(places, i);
	place->count += time->count;
	place->ns += time->ns;
	if (time->longest_ns > place->longest_ns)
		place->longest_ns = time->longest_ns;
	return 0;
}

int session_gil_add(struct session_gil *g, const struct profile *profile, uint64_t wait_id, uint32_t stack,
		    uint32_t holder, const struct pybpf_wait_time *time)
{
	if (state_of(wait_id) == PYBPF_STATE_GIL)
		return add_place(&g->holders, profile, holder, time);
	if (!(wait_id & PYBPF_WAIT_WITH_GIL))
		return 0;
	if (!pybpf_state_is_ready(state_of(wait_id)))
		return add_place(&g->asleep, profile, stack, time);
	if (state_of(wait_id) == PYBPF_STATE_THROTTLED)
		g->throttled_ns += time->ns;
	else
		g->queued_ns += time->ns;
	return 0;
}

void session_gil_note_unfinished(struct session_gil *g, uint64_t ns)
{
	if (ns > g->longest_ns)
		g->longest_ns = ns;
}

void session_gil_name_asleep(char *text, size_t size)
{
	char plain[SESSION_WAIT_NAME];

	snprintf(plain, sizeof(plain), "%s", *text == '[' ? text + 1 : text);
	snprintf(text, size, "[asleep with the GIL: %s", plain);
}

void session_gil_name_blocked(const struct profile *profile, uint32_t stack, char *out, size_t size)
{
	const struct profile_frame *frame;

	if (stack == PROFILE_NONE || stack == PROFILE_ROOT) {
		snprintf(out, size, "[blocks a thread]");
		return;
	}
	frame = profile_frame_at(profile, profile_stack_at(profile, python_of(profile, stack))->frame);
	snprintf(out, size, "[blocks: %s]", profile_string(profile, frame->name));
}

/* Returns whether the free-threaded Python runs with its GIL on: enabled, the first word of its GIL, is not 0. */
static bool has_gil(const struct discovery_python *python)
{
	uint64_t interp = 0, gil = 0;
	int enabled = 0;

	if (remote_read(python->pid, python->interp_head_addr, &interp, sizeof(interp)) || !interp ||
	    remote_read(python->pid, interp + python->build.layout.interp_gil, &gil, sizeof(gil)) || !gil)
		return true;
	return remote_read(python->pid, gil, &enabled, sizeof(enabled)) || enabled;
}

/* Returns whether it is known where a Python's GIL is. */
static bool layout_tells_gil(const struct pybpf_layout *layout)
{
	return layout->gil_from_head || layout->interp_gil || layout->gil.last_holder;
}

bool session_gil_is_known(const struct discovery_python *python, struct error *error)
{
	error->text[0] = '\0';
	if (python->free_threaded && !has_gil(python))
		snprintf(error->text, sizeof(error->text),
			 "process %d runs a free-threaded Python %s with its GIL off: no thread waits for a GIL; "
			 "--mode=wall shows the locks that its threads wait for",
			 python->pid, python->version);
	else if (!layout_tells_gil(&python->build.layout))
		snprintf(error->text, sizeof(error->text),
			 "process %d runs Python %s, which does not say where its GIL is (3.7.4 and newer do, and "
			 "older ones that are not stripped but 3.7.0 to 3.7.3): --mode=wall shows waits for it as "
			 "[lock]",
			 python->pid, python->version);
	return !error->text[0];
}

static void name_place(const struct profile *profile, const struct place *from, struct session_gil_place *to)
{
	to->count = from->count;
	to->ns = from->ns;
	to->longest_ns = from->longest_ns;
	if (from->frame < NOWHERE)
		session_name_place(profile, from->frame, to->where, sizeof(to->where));
}

static int compare_time(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return (one->ns < other->ns) - (one->ns > other->ns);
}

static void tell_holders(const struct session *s, struct session_gil_account *account)
{
	const struct intern *holders = &s->waits.gil.holders;
	struct place *sorted = holders->items;
	size_t named = 0;

	if (holders->count)
		qsort(sorted, holders->count, sizeof(*sorted), compare_time);
	for (uint32_t i = 0; i < holders->count; i++) {
		if (sorted[i].frame >= NOWHERE) {
			name_place(s->profile, &sorted[i],
				   sorted[i].frame == UNKNOWN ? &account->unknown : &account->nobody);
			continue;
		}
		account->nr_holders++;
		if (named < SESSION_GIL_HOLDERS)
			name_place(s->profile, &sorted[i], &account->holders[named++]);
	}
}

static void tell_asleep(const struct session *s, struct session_gil_account *account)
{
	const struct intern *asleep = &s->waits.gil.asleep;
	struct place sum = {.frame = UNKNOWN};

	for (uint32_t i = 0; i < asleep->count; i++) {
		const struct place *place = intern_item(asleep, i);

		sum.count += place->count;
		sum.ns += place->ns;
		if (place->longest_ns < sum.longest_ns)
			continue;
		sum.longest_ns = place->longest_ns;
		sum.frame = place->frame;
	}
	name_place(s->profile, &sum, &account->asleep);
}

static void count_process(struct processes_record *process, void *arg)
{
	struct {
		const struct session *session;
		struct session_gil_account *account;
	} *a = arg;
	const struct pybpf_layout *layout;

	if (process->state != PROCESSES_PYTHON || process->counted_elsewhere || !process->nr_runtimes)
		return;
	layout = kernel_get_layout(a->session->kernel, process->layouts[0]);
	if (layout->free_threaded)
		a->account->free_threaded++;
	else if (!layout_tells_gil(layout))
		a->account->unrecognized++;
}

/* Each sample stands for the time between two of them. */
static void tell_held(const struct session *s, const uint64_t *counters, struct session_gil_account *account)
{
	const double period_ns = 1e9 / s->options.freq;
	const uint64_t elsewhere = counters[PYBPF_COUNT_GIL_OTHER_CODE], kernel = counters[PYBPF_COUNT_GIL_KERNEL];
	const uint64_t unknown = counters[PYBPF_COUNT_GIL_UNKNOWN_CODE];
	const uint64_t all = elsewhere + kernel + unknown + counters[PYBPF_COUNT_GIL_INTERPRETER];

	account->held_ns = (uint64_t)((double)all * period_ns);
	account->held_elsewhere_ns = (uint64_t)((double)elsewhere * period_ns);
	account->held_kernel_ns = (uint64_t)((double)kernel * period_ns);
	account->held_unknown_ns = (uint64_t)((double)unknown * period_ns);
}

static void tell(const struct session *s, struct session_account *all)
{
	struct session_gil_account *account = &all->gil;
	struct {
		const struct session *session;
		struct session_gil_account *account;
	} counting = {s, account};
	struct pybpf_gil_waits waits = {0};

	all->has_gil = true;
	kernel_get_gil_waits(s->kernel, &waits);
	account->waits = waits.count;
	account->longest_ns = waits.longest_ns > s->waits.gil.longest_ns ? waits.longest_ns : s->waits.gil.longest_ns;
	account->queued_ns = s->waits.gil.queued_ns;
	account->throttled_ns = s->waits.gil.throttled_ns;
	tell_held(s, all->counters, account);
	tell_holders(s, account);
	tell_asleep(s, account);
	processes_visit_all(s->processes, count_process, &counting);
}

static void print_time(const struct session_gil_place *place, FILE *out)
{
	char all[OUTPUT_AMOUNT_MAX], longest[OUTPUT_AMOUNT_MAX];

	fprintf(out, "%s, longest %s", output_duration(place->ns, all), output_duration(place->longest_ns, longest));
}

static void print_holder(const struct session_gil_place *holder, const char *where, FILE *out)
{
	fputs("pybpf:   ", out);
	text_print(where, out);
	if (holder->count)
		fprintf(out, " blocked %" PRIu64 " wait%s, ", holder->count, text_s(holder->count));
	else
		fputs(" blocked waits that others had begun to block, ", out);
	print_time(holder, out);
	fputc('\n', out);
}

static void print_held(const struct session_gil_account *a, FILE *out)
{
	const struct {
		uint64_t ns;
		const char *what;
	} parts[] = {
		{a->held_ns - a->held_elsewhere_ns - a->held_kernel_ns - a->held_unknown_ns, "in the interpreter"},
		{a->held_elsewhere_ns, "in other code"},
		{a->held_kernel_ns, "in the kernel"},
		{a->held_unknown_ns, "in the interpreter or other code"},
		{a->queued_ns, "waiting for a CPU"},
		{a->throttled_ns, "throttled"},
		{a->asleep.ns, "asleep"},
	};
	uint64_t sum = a->held_ns + a->queued_ns + a->throttled_ns + a->asleep.ns;
	const char *between = ": ";

	if (!sum)
		return;
	fprintf(out, "pybpf: the GIL was held for some %.3f s, by samples", (double)sum / 1e9);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (parts[i].ns < 1000000)
			continue;
		fprintf(out, "%s%.3f s %s", between, (double)parts[i].ns / 1e9, parts[i].what);
		between = ", ";
	}
	fputc('\n', out);
}

void session_gil_print(const struct session_gil_account *a, uint64_t waited_ns, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	fprintf(out, "pybpf: %" PRIu64 " wait%s for the GIL", a->waits, text_s(a->waits));
	if (waited_ns)
		fprintf(out, ", %s", output_duration(waited_ns, amount));
	if (a->waits)
		fprintf(out, ", longest %s", output_duration(a->longest_ns, amount));
	if (a->nr_holders > SESSION_GIL_HOLDERS)
		fprintf(out, "; %d of the %" PRIu64 " places that held it:\n", SESSION_GIL_HOLDERS, a->nr_holders);
	else
		fputs(a->nr_holders ? "; held, as each began and after each switch interval, in:\n" : "\n", out);
	for (uint64_t i = 0; i < a->nr_holders && i < SESSION_GIL_HOLDERS; i++)
		print_holder(&a->holders[i], a->holders[i].where, out);
	if (a->nobody.ns)
		print_holder(&a->nobody, "nobody, while the next holder did not run yet,", out);
	if (a->unknown.ns)
		print_holder(&a->unknown, "a holder that is not known", out);
	if (a->asleep.count) {
		fprintf(out, "pybpf: asleep with the GIL held: %" PRIu64 " time%s, ", a->asleep.count,
			text_s(a->asleep.count));
		print_time(&a->asleep, out);
		fputs(*a->asleep.where ? " in " : "", out);
		text_print(a->asleep.where, out);
		fputc('\n', out);
	}
	print_held(a, out);
	if (a->free_threaded)
		fprintf(out,
			"pybpf: %" PRIu64 " process%s of a free-threaded build: such a build waits for a GIL only when "
			"it is on (PYTHON_GIL=1)\n",
			a->free_threaded, a->free_threaded == 1 ? " is" : "es are");
	if (a->unrecognized)
		fprintf(out,
			"pybpf: %" PRIu64 " process%s a Python before 3.7.4 that does not say where its GIL is: its "
			"waits for it are not in the profile\n",
			a->unrecognized, a->unrecognized == 1 ? " runs" : "es run");
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	(void)p;
	if (a->has_gil)
		session_gil_print(&a->gil, a->state_ns[PYBPF_STATE_GIL], out);
}

static const struct session_entry entries[] = {
	{"gil", "waits", SESSION_COUNT(gil.waits)},
	{"gil", "longest_wait_s", SESSION_SECONDS(gil.longest_ns)},
	{"gil", "holder_unknown_s", SESSION_SECONDS(gil.unknown.ns)},
	{"gil", "asleep_with_it", SESSION_COUNT(gil.asleep.count)},
	{"gil", "asleep_with_it_s", SESSION_SECONDS(gil.asleep.ns)},
	{"gil", "longest_asleep_with_it_s", SESSION_SECONDS(gil.asleep.longest_ns)},
	{"gil", "holder_waited_for_cpu_s", SESSION_SECONDS(gil.queued_ns)},
	{"gil", "holder_throttled_s", SESSION_SECONDS(gil.throttled_ns)},
	{"gil", "held_on_cpu_s", SESSION_SECONDS(gil.held_ns)},
	{"gil", "held_in_other_code_s", SESSION_SECONDS(gil.held_elsewhere_ns)},
	{"gil", "held_in_kernel_s", SESSION_SECONDS(gil.held_kernel_ns)},
	{"gil", "held_in_unknown_code_s", SESSION_SECONDS(gil.held_unknown_ns)},
	{0},
};

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	(void)options;
	kernel->gil_waits = true;
}

static bool is_wanted(const struct session_options *options)
{
	return options->mode == SESSION_GIL;
}

const struct session_measure session_gil_measure = {
	.name = "holders of the GIL",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.tell = tell,
	.print = print,
	.entries = entries,
};
