// SPDX-License-Identifier: Apache-2.0
/* bpf/count.h on several CPUs, in every order of what they do to the maps: no stack is left that nobody sends. */
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
#define TURNS   256 /* decisions of one run, at most */
#define STACK   (256 << 10)
#define RANDOM  20000

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
};

static const struct plan *plan;

/* The maps: counts by stack and thread, and whether a stack is in map stacks. counts and stacks are only names. */
static struct {
	__u64 value[STACKS][THREADS];
	bool counted[STACKS][THREADS], stack[STACKS], sent[STACKS];
	int entries;
} world;
static int counts, stacks;

/* Each CPU is a coroutine that gives way before whatever another one can see. */
static ucontext_t scheduler, cpus[CPUS];
static char *cpu_stacks[CPUS];
static bool done[CPUS];
static int current;

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

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	static uint8_t mark;
	void *found;

	give_way();
	if (map == &stacks) {
		found = world.stack[*(const uint64_t *)key] ? &mark : NULL;
	} else {
		const struct pybpf_count_key *k = key;

		found = world.counted[k->stack_id][k->tid] ? &world.value[k->stack_id][k->tid] : NULL;
	}
	/* What it reads next may have changed meanwhile. */
	give_way();
	return found;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags)
{
	give_way();
	assert_int_equal(flags, 1 /* BPF_NOEXIST */);
	if (map == &stacks) {
		bool *there = &world.stack[*(const uint64_t *)key];

		if (*there)
			return -EEXIST;
		if (plan->stacks_fail && current >= 0 && decide(2))
			return -E2BIG;
		*there = true;
	} else {
		const struct pybpf_count_key *k = key;
		bool *there = &world.counted[k->stack_id][k->tid];

		if (*there)
			return -EEXIST;
		if (world.entries == plan->room)
			return -E2BIG;
		world.entries++;
		*there = true;
		world.value[k->stack_id][k->tid] = *(const uint64_t *)value;
	}
	return 0;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	bool *there = &world.stack[*(const uint64_t *)key];
	long err = *there ? 0 : -ENOENT;

	give_way();
	assert_ptr_equal(map, &stacks);
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
#include "count.h"

static bool is_counted(int stack)
{
	return world.counted[stack][0] || world.counted[stack][1];
}

/* At every moment: who looks only where unsent_stacks is not 0 misses no stack. */
static void check_unsent(void)
{
	uint64_t absent = 0;

	for (int i = 0; i < STACKS; i++)
		absent += is_counted(i) && !world.stack[i];
	assert_true(unsent_stacks >= absent && unsent_stacks < 1000);
}

/* Returns whether it was counted. */
static bool take_sample(const struct sample *sample, bool sending_works)
{
	const struct pybpf_count_key key = {.stack_id = (uint64_t)sample->stack, .tid = (uint32_t)sample->thread};
	int fresh, send;
	long err = stack_count(&key, 1, &fresh, &send);

	assert_true(!err || !send);
	if (send && (sending_works || decide(2)))
		world.sent[sample->stack] = true;
	else if (send)
		stack_unsent(key.stack_id);
	return !err;
}

static uint64_t taken;

static void run_cpu(int cpu)
{
	for (int i = 0; i < plan->length[cpu]; i++)
		taken += take_sample(&plan->samples[cpu][i], false);
	done[cpu] = true;
}

static void begin_cpu(int cpu)
{
	ucontext_t *c = &cpus[cpu];

	done[cpu] = plan->length[cpu] == 0;
	getcontext(c);
	c->uc_stack.ss_sp = cpu_stacks[cpu];
	c->uc_stack.ss_size = STACK;
	c->uc_link = &scheduler;
	makecontext(c, (void (*)(void))run_cpu, 1, cpu);
}

static void begin(void)
{
	memset(&world, 0, sizeof(world));
	unsent_stacks = 0;
	taken = 0;
	turns = 0;
	for (int i = 0; i < STACKS; i++) {
		if (!plan->unsent[i])
			continue;
		world.counted[i][0] = true;
		world.entries++;
		unsent_stacks++;
	}
	for (int i = 0; i < CPUS; i++)
		begin_cpu(i);
}

static void run_all(void)
{
	for (;;) {
		int able[CPUS], count = 0;

		for (int i = 0; i < CPUS; i++) {
			if (!done[i])
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
	uint64_t value = 0;

	for (int i = 0; i < STACKS; i++) {
		assert_true(!world.stack[i] || world.sent[i]);
		for (int thread = 0; thread < THREADS; thread++)
			value += world.value[i][thread];
	}
	assert_int_equal(value, taken);
	for (int i = 0; i < STACKS; i++) {
		if (!is_counted(i))
			continue;
		assert_true(take_sample(&(struct sample){i, !world.counted[i][0]}, true));
		assert_true(world.stack[i] && world.sent[i]);
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

/* More than can be gone through. */
static void test_at_random(void **unused)
{
	(void)unused;
	srand(1);
	for (int i = 0; i < RANDOM; i++) {
		struct plan p = {.room = 2 + rand() % 5, .stacks_fail = rand() % 2};

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
	for (int i = 0; i < CPUS; i++) {
		cpu_stacks[i] = malloc(STACK);
		if (!cpu_stacks[i])
			return -1;
	}
	return 0;
}

static int free_stacks(void **unused)
{
	(void)unused;
	for (int i = 0; i < CPUS; i++)
		free(cpu_stacks[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_on_two_cpus), cmocka_unit_test(test_unsent_on_two_cpus),
		cmocka_unit_test(test_no_room),         cmocka_unit_test(test_stacks_fail),
		cmocka_unit_test(test_at_random),
	};

	return cmocka_run_group_tests(tests, make_stacks, free_stacks);
}
