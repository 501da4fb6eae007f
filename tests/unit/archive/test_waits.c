// SPDX-License-Identifier: Apache-2.0
/* Epochs of waits: time and counts by thread, state and function are conserved, however epochs are merged and removed.
 */
#include "epochs.h"

#define THREADS   5
#define FUNCTIONS 6
#define FIRST_TID 200

static const char *const states[] = {"", "sleep", "lock", "network"};
#define STATES (sizeof(states) / sizeof(*states))

struct sums {
	struct {
		uint64_t us, count;
	} of[THREADS][STATES][FUNCTIONS];
	uint64_t state_ns[STATES]; /* of the account */
};

/* The time of a thread in a state and a function in an epoch; 0: none. */
static uint64_t us_of(unsigned epoch, unsigned thread, size_t state, unsigned function)
{
	const unsigned mixed =
		(epoch + 1) * 2654435761u ^ (thread * 40503u + (unsigned)state * 9973u + function * 131u);

	return mixed % 3 ? 0 : 1 + mixed % 60000000;
}

/* A wait that only goes on has time and no count. */
static uint64_t count_of(uint64_t us)
{
	return us % 4;
}

static void add_sums(struct sums *to, unsigned epoch)
{
	for (unsigned t = 0; t < THREADS; t++) {
		for (size_t s = 0; s < STATES; s++) {
			for (unsigned f = 0; f < FUNCTIONS; f++) {
				const uint64_t us = us_of(epoch, t, s, f);

				to->of[t][s][f].us += us;
				to->of[t][s][f].count += us ? count_of(us) : 0;
				to->state_ns[s] += us * 1000;
			}
		}
	}
}

static void add_time(struct profile *p, uint32_t owner, uint32_t thread, size_t state, unsigned function, uint64_t us)
{
	const char name[] = {'f', (char)('0' + function), '\0'};
	uint32_t stack = on(p, PROFILE_ROOT, name, "w.py", 1);

	if (*states[state])
		stack = profile_add_stack(p, stack, profile_add_wait(p, states[state], "[a wait]", 0));
	assert_int_equal(profile_add_time(p, stack, owner, thread, us, count_of(us)), 0);
	assert_int_equal(profile_add_account(p, PROFILE_ACCOUNT_STATES, states[state], "", us * 1000), 0);
}

static void add_epoch(struct archive_store *store, unsigned epoch)
{
	struct profile *p = new_profile();
	/* The second half of the threads is another process; names change. */
	const uint32_t owners[] = {process(p, 1, "web"), process(p, 2, "job")};
	char name[32];

	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", PROFILE_UNIT_TIME, 0}), 0);
	for (unsigned t = 0; t < THREADS; t++) {
		const uint32_t owner = owners[t > THREADS / 2];
		uint32_t thread;

		snprintf(name, sizeof(name), "worker-%u", epoch / 17);
		thread = profile_add_thread(p, owner, (int32_t)(FIRST_TID + t), name);
		for (size_t s = 0; s < STATES; s++) {
			for (unsigned f = 0; f < FUNCTIONS; f++) {
				if (us_of(epoch, t, s, f))
					add_time(p, owner, thread, s, f, us_of(epoch, t, s, f));
			}
		}
	}
	commit_epoch(store, p, START_MS + epoch * MINUTE_MS);
	profile_free(p);
}

static size_t state_by_name(const char *name)
{
	size_t s = 0;

	while (s < STATES && strcmp(states[s], name) != 0)
		s++;
	assert_true(s < STATES);
	return s;
}

static void read_sums(struct sums *to)
{
	struct profile *p = read_all();
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	const struct profile_account *account;

	for (size_t i = 0; i < count; i++) {
		const unsigned t = (unsigned)profile_thread_at(p, samples[i].thread)->tid - FIRST_TID;
		const size_t s = state_by_name(profile_string(p, profile_state_of(p, samples[i].stack)));
		const struct profile_stack *stack = profile_stack_at(p, samples[i].stack);
		unsigned f;

		stack = *states[s] ? profile_stack_at(p, stack->parent) : stack;
		f = (unsigned)profile_string(p, profile_frame_at(p, stack->frame)->name)[1] - '0';
		assert_true(t < THREADS && f < FUNCTIONS);
		to->of[t][s][f].us += samples[i].value;
		to->of[t][s][f].count += samples[i].count;
	}
	account = profile_account_entries(p, &count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(profile_string(p, account[i].group), PROFILE_ACCOUNT_STATES);
		to->state_ns[state_by_name(profile_string(p, account[i].key))] += account[i].value;
	}
	profile_free(p);
}

/* What a reader finds is the sum of the epochs that the folder's names promise. Returns their number. */
static unsigned assert_kept(const struct archive_store *store)
{
	struct sums wanted = {.state_ns = {0}}, found = {.state_ns = {0}};
	unsigned kept = 0;

	for (size_t i = 0; i < store->list.count; i++) {
		const struct archive_span *span = &store->list.epochs[i].span;

		for (uint64_t number = span->first; !store->list.epochs[i].is_part && number <= span->last; number++) {
			add_sums(&wanted, (unsigned)number - 1);
			kept++;
		}
	}
	read_sums(&found);
	assert_memory_equal(&found, &wanted, sizeof(found));
	return kept;
}

static void test_hours_are_merged(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	struct archive_store store;
	struct error error;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 150; i++)
		add_epoch(&store, i);
	assert_int_equal(assert_kept(&store), 150);
	/* Also between the steps: the sum of an hour stands beside its parts. */
	assert_int_equal(archive_store_retain(&store, &limits, START_MS + 27 * HOUR_MS, &error), 1);
	assert_int_equal(store.list.count, 151);
	assert_int_equal(assert_kept(&store), 150);
	retain(&store, &limits, START_MS + 27 * HOUR_MS);
	assert_int_equal(store.list.count, 2 + 30);
	assert_int_equal(assert_kept(&store), 150);
	archive_store_close(&store);
	empty();
}

/* Beyond --keep-size whole epochs go, the oldest first, with all of their time. */
static void test_size_is_kept(void **unused)
{
	struct archive_limits limits = {.keep_ms = 7 * 24 * HOUR_MS, .keep_size = 1 << 30};
	struct archive_store store;
	unsigned kept = 0;

	(void)unused;
	open_store(&store);
	for (unsigned i = 0; i < 130; i++)
		add_epoch(&store, i);
	for (uint64_t size = archive_store_size(&store); size > 2000; size = size * 2 / 3) {
		limits.keep_size = size;
		retain(&store, &limits, START_MS + 130 * MINUTE_MS);
		kept = assert_kept(&store);
		assert_int_equal(store.list.epochs[store.list.count - 1].span.last, 130);
	}
	assert_in_range(kept, 1, 60);
	archive_store_close(&store);
	empty();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hours_are_merged),
		cmocka_unit_test(test_size_is_kept),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
