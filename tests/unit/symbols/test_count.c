// SPDX-License-Identifier: Apache-2.0
/*
 * bpf/count.h on several CPUs, in every order of what they do to the maps, while user space changes the sets: no stack
 * is left that nobody sends, and what user space takes and what is left add up to what was counted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "pybpf.h"

#define CPUS    3
#define SAMPLES 2 /* of one CPU */
#define STACKS  3
#define THREADS 2
#define TURNS   512 /* decisions of one run, at most */
#define STACK   (64 << 10)
#define RANDOM  20000
#define USER    CPUS /* the coroutine of user space, beside those of the CPUs */

/* A key of map counts. */
struct sample {
	int stack, thread;
};

struct plan {
	struct sample samples[CPUS][SAMPLES];
	int length[CPUS];
	bool unsent[STACKS]; /* at first: counted, not sent */
	int room;            /* of map counts */
	bool stacks_fail;    /* map stacks may refuse a new one */
	int swaps;           /* of the sets, while the samples are taken */
	unsigned known;      /* bits: at which of them what user space knows is changed as well */
};

static const struct plan *plan;

/* The maps: counts by stack and thread, and whether a stack is in map stacks. */
static struct counts {
	struct pybpf_count entry[STACKS][THREADS];
	bool counted[STACKS][THREADS];
	int entries;
	__u32 sets; /* that were chosen together with it */
} counts[PYBPF_SETS];
static struct stacks {
	bool stack[STACKS], sent[STACKS];
} stacks[PYBPF_SETS];

static __u32 current_sets;
static int user_owns; /* the set of counts that no sample may use now, or -1 */

static void *counts_of(__u32 sets)
{
	assert_int_not_equal(PYBPF_COUNTS_SET(sets), user_owns);
	return &counts[PYBPF_COUNTS_SET(sets)];
}

static void *stacks_of(__u32 sets)
{
	return &stacks[PYBPF_KNOWN_SET(sets)];
}

/* Each CPU, and user space, is a coroutine that gives way before whatever another one can see. */
static ucontext_t scheduler, cpus[CPUS + 1];
static char *cpu_stacks[CPUS + 1];
static bool done[CPUS + 1];
static int current;
/* User space waits for samples that were under way when it began to wait. */
static bool sampling[CPUS], awaited[CPUS];

/* What was decided of how many possibilities, for the next run to take another. */
static int decided[TURNS], possible[TURNS], turns, prefix;
static bool at_random;

static int decide(int options)
{
	assert_true(turns < TURNS);
	if (turns >= prefix)
		decided[turns] = at_random ? rand() % options : 0;
	possible[turns] = options;
	return decided[turns++];
}

static void give_way(void)
{
	if (current >= 0)
		swapcontext(&cpus[current], &scheduler);
}

static bool is_stacks(const void *map)
{
	return map == &stacks[0] || map == &stacks[1];
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	static uint8_t mark;
	void *found;

	give_way();
	if (is_stacks(map)) {
		found = ((struct stacks *)map)->stack[*(const uint64_t *)key] ? &mark : NULL;
	} else {
		const struct pybpf_count_key *k = key;
		struct counts *c = map;

		found = c->counted[k->stack_id][k->thread.tid] ? &c->entry[k->stack_id][k->thread.tid] : NULL;
	}
	/* What it reads next may have changed meanwhile. */
	give_way();
	return found;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags)
{
	give_way();
	assert_int_equal(flags, 1 /* BPF_NOEXIST */);
	if (is_stacks(map)) {
		bool *there = &((struct stacks *)map)->stack[*(const uint64_t *)key];

		if (*there)
			return -EEXIST;
		if (plan->stacks_fail && current >= 0 && decide(2))
			return -E2BIG;
		*there = true;
	} else {
		const struct pybpf_count_key *k = key;
		struct counts *c = map;
		bool *there = &c->counted[k->stack_id][k->thread.tid];

		if (*there)
			return -EEXIST;
		if (c->entries == plan->room)
			return -E2BIG;
		c->entries++;
		*there = true;
		c->entry[k->stack_id][k->thread.tid] = *(const struct pybpf_count *)value;
	}
	return 0;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	bool *there = &((struct stacks *)map)->stack[*(const uint64_t *)key];
	long err = *there ? 0 : -ENOENT;

	give_way();
	assert_true(is_stacks(map));
	*there = false;
	return err;
}

static void add(__u64 *word, __u64 value)
{
	give_way();
	*word += value;
}

#define BPF_NOEXIST 1
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the compiler's own, which gives way to nobody */
#define __sync_fetch_and_add(word, value) add(word, (__u64)(value))
#include "count.h" /* with counts_of and stacks_of */

static bool is_counted(const struct counts *c, int stack)
{
	return c->counted[stack][0] || c->counted[stack][1];
}

/* At every moment: who looks only where unsent_stacks is not 0 misses no stack. */
static void check_unsent(void)
{
	for (int set = 0; set < PYBPF_SETS; set++) {
		const struct counts *c = &counts[set];
		const struct stacks *sent = stacks_of(c->sets);
		uint64_t absent = 0;

		if (set == user_owns)
			continue;
		for (int i = 0; i < STACKS; i++)
			absent += is_counted(c, i) && !sent->stack[i];
		assert_true(unsent_stacks[set] >= absent && unsent_stacks[set] < 1000);
	}
}

/* What a sample is worth: by its stack. */
static __u64 worth(int stack)
{
	return 10 + (__u64)stack;
}

/* Returns whether it was counted. */
static bool take_sample(const struct sample *sample, bool sending_works)
{
	const struct pybpf_count_key key = {.stack_id = (uint64_t)sample->stack,
					    .thread.tid = (uint32_t)sample->thread};
	__u32 sets = current_sets;
	int fresh, send;
	long err = stack_count(sets, &key, worth(sample->stack), 1, &fresh, &send);

	assert_true(!err || !send);
	if (send && (sending_works || decide(2)))
		((struct stacks *)stacks_of(sets))->sent[sample->stack] = true;
	else if (send)
		stack_unsent(sets, key.stack_id);
	return !err;
}

static uint64_t taken, drained, drained_value, value_taken;

static void run_cpu(int cpu)
{
	for (int i = 0; i < plan->length[cpu]; i++) {
		const struct sample *sample = &plan->samples[cpu][i];

		give_way();
		sampling[cpu] = true;
		if (take_sample(sample, false)) {
			taken++;
			value_taken += worth(sample->stack);
		}
		sampling[cpu] = awaited[cpu] = false;
	}
	done[cpu] = true;
}

/* As the kernel does when a map of maps is changed: no sample is under way any more that was then. */
static void wait_for_samples(void)
{
	memcpy(awaited, sampling, sizeof(awaited));
	give_way();
}

static bool is_waiting(void)
{
	for (int i = 0; i < CPUS; i++) {
		if (awaited[i])
			return true;
	}
	return false;
}

static void add_up(const struct counts *c, uint64_t *count, uint64_t *value)
{
	for (int i = 0; i < STACKS; i++) {
		for (int thread = 0; thread < THREADS; thread++) {
			*count += c->entry[i][thread].count;
			*value += c->entry[i][thread].value;
		}
	}
}

/* What kernel_change_sets and kernel_take_counts do. */
static void swap_sets(bool known)
{
	__u32 old = current_sets, new = PYBPF_OTHER_COUNTS(old);
	int set = PYBPF_COUNTS_SET(old);

	if (known)
		new = PYBPF_OTHER_KNOWN(new);
	give_way();
	counts[PYBPF_COUNTS_SET(new)].sets = new;
	current_sets = new;
	wait_for_samples();
	user_owns = set;
	add_up(&counts[set], &drained, &drained_value);
	memset(&counts[set], 0, sizeof(counts[set]));
	if (known)
		memset(stacks_of(old), 0, sizeof(struct stacks));
	give_way();
	if (unsent_stacks[set]) {
		unsent_stacks[set] = 0;
		wait_for_samples();
	}
	counts[set].sets = current_sets;
	user_owns = -1;
}

static void run_user(void)
{
	for (int i = 0; i < plan->swaps; i++)
		swap_sets(plan->known >> i & 1);
	done[USER] = true;
}

static void begin_cpu(int cpu)
{
	ucontext_t *c = &cpus[cpu];

	done[cpu] = cpu == USER ? plan->swaps == 0 : plan->length[cpu] == 0;
	getcontext(c);
	c->uc_stack.ss_sp = cpu_stacks[cpu];
	c->uc_stack.ss_size = STACK;
	c->uc_link = &scheduler;
	if (cpu == USER)
		makecontext(c, run_user, 0);
	else
		makecontext(c, (void (*)(void))run_cpu, 1, cpu);
}

static void begin(void)
{
	memset(counts, 0, sizeof(counts));
	memset(stacks, 0, sizeof(stacks));
	memset(unsent_stacks, 0, sizeof(unsent_stacks));
	memset(sampling, 0, sizeof(sampling));
	memset(awaited, 0, sizeof(awaited));
	current_sets = 0;
	user_owns = -1;
	taken = drained = value_taken = drained_value = 0;
	turns = 0;
	for (int i = 0; i < STACKS; i++) {
		if (!plan->unsent[i])
			continue;
		counts[0].counted[i][0] = true;
		counts[0].entries++;
		unsent_stacks[0]++;
	}
	for (int i = 0; i <= USER; i++)
		begin_cpu(i);
}

static void run_all(void)
{
	for (;;) {
		int able[CPUS + 1], count = 0;

		for (int i = 0; i <= USER; i++) {
			if (!done[i] && (i != USER || !is_waiting()))
				able[count++] = i;
		}
		if (!count)
			break;
		current = able[count > 1 ? decide(count) : 0];
		swapcontext(&scheduler, &cpus[current]);
		current = -1;
		check_unsent();
	}
}

/* Nothing is under way any more: what is in map stacks was sent, and the rest is with its next sample. */
static void check_end(void)
{
	struct counts *c = counts_of(current_sets);
	const struct stacks *sent = stacks_of(current_sets);
	uint64_t count = drained, value = drained_value;

	for (int set = 0; set < PYBPF_SETS; set++)
		add_up(&counts[set], &count, &value);
	assert_int_equal(count, taken);
	assert_int_equal(value, value_taken);
	for (int i = 0; i < STACKS; i++) {
		assert_true(!sent->stack[i] || sent->sent[i]);
		if (!is_counted(c, i))
			continue;
		assert_true(take_sample(&(struct sample){i, !c->counted[i][0]}, true));
		assert_true(sent->stack[i] && sent->sent[i]);
	}
	check_unsent();
}

static void run_once(const struct plan *p)
{
	plan = p;
	begin();
	run_all();
	check_end();
}

/* Every decision every way. */
static void run_every_way(const struct plan *p)
{
	uint64_t runs = 0;

	at_random = false;
	prefix = 0;
	do {
		run_once(p);
		runs++;
		while (turns && decided[turns - 1] + 1 == possible[turns - 1])
			turns--;
		if (turns)
			decided[turns - 1]++;
		prefix = turns;
	} while (turns);
	assert_true(runs > 1000);
}

/* While another stack is unsent, the same new one is met on two CPUs: in one thread's name, or in those of two. */
static void test_new_on_two_cpus(void **unused)
{
	(void)unused;
	for (int thread = 0; thread < THREADS; thread++) {
		const struct plan p = {
			.samples = {{{0, 0}}, {{0, thread}}}, .length = {1, 1}, .unsent = {[2] = true}, .room = 99};

		run_every_way(&p);
	}
}

/* An unsent stack is met on two CPUs. */
static void test_unsent_on_two_cpus(void **unused)
{
	const struct plan p = {
		.samples = {{{2, 0}}, {{2, 1}}}, .length = {1, 1}, .unsent = {[1] = true, [2] = true}, .room = 99};

	(void)unused;
	run_every_way(&p);
}

/* The counts have room for one of two. */
static void test_no_room(void **unused)
{
	const struct plan p = {.samples = {{{0, 0}}, {{0, 1}}}, .length = {1, 1}, .unsent = {[2] = true}, .room = 2};

	(void)unused;
	run_every_way(&p);
}

static void test_stacks_fail(void **unused)
{
	const struct plan p = {.samples = {{{0, 0}}, {{0, 0}}},
			       .length = {1, 1},
			       .unsent = {[2] = true},
			       .room = 99,
			       .stacks_fail = true};

	(void)unused;
	run_every_way(&p);
}

/* A stack is met twice while the sets are changed twice: without its stack, that is a new generation the first time. */
static void test_swap(void **unused)
{
	(void)unused;
	for (unsigned known = 0; known < 2; known++) {
		const struct plan p = {.samples = {{{0, 0}, {0, 0}}},
				       .length = {2},
				       .unsent = {[2] = true},
				       .room = 99,
				       .swaps = 2,
				       .known = known};

		run_every_way(&p);
	}
}

/* More than can be gone through. */
static void test_at_random(void **unused)
{
	(void)unused;
	srand(1);
	for (int i = 0; i < RANDOM; i++) {
		struct plan p = {.room = 2 + rand() % 5, .stacks_fail = rand() % 2, .swaps = rand() % 5};

		p.known = (unsigned)rand();

		for (int cpu = 0; cpu < CPUS; cpu++) {
			p.length[cpu] = SAMPLES;
			for (int n = 0; n < SAMPLES; n++)
				p.samples[cpu][n] = (struct sample){rand() % STACKS, rand() % THREADS};
		}
		p.unsent[rand() % STACKS] = true;
		at_random = true;
		prefix = 0;
		run_once(&p);
	}
}

static int make_stacks(void **unused)
{
	(void)unused;
	current = -1;
	for (int i = 0; i <= USER; i++) {
		cpu_stacks[i] = malloc(STACK);
		if (!cpu_stacks[i])
			return -1;
	}
	return 0;
}

static int free_stacks(void **unused)
{
	(void)unused;
	for (int i = 0; i <= USER; i++)
		free(cpu_stacks[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_on_two_cpus),
		cmocka_unit_test(test_unsent_on_two_cpus),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_stacks_fail),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_at_random),
	};

	return cmocka_run_group_tests(tests, make_stacks, free_stacks);
}
