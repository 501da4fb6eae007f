// SPDX-License-Identifier: Apache-2.0
/* The memory limit of a session: it is told before it is reached, and new stacks are taken once others are forgotten.
 */
#include <sys/types.h>

#include "profiles.h"
#include "base/log.h"
#include "base/procfs.h"
#include "kernel/events.h"
#include "session/internal.h"

#define LIMIT_MIB 100ull

static struct {
	uint64_t own_mib, rings_mib, maps_mib;
	bool refused;
} played;

static unsigned warnings;

int procfs_rss(pid_t pid, uint64_t *kib)
{
	(void)pid;
	*kib = (played.own_mib + played.rings_mib) << 10;
	return 0;
}

uint64_t kernel_get_mapped_bytes(const struct kernel *k)
{
	(void)k;
	return played.rings_mib << 20;
}

uint64_t kernel_get_map_bytes(const struct kernel *k)
{
	(void)k;
	return played.maps_mib << 20;
}

void kernel_refuse_new_stacks(struct kernel *k, bool refuse)
{
	(void)k;
	played.refused = refuse;
}

void kernel_refuse_times(struct kernel *k, bool refuse)
{
	(void)k;
	(void)refuse;
}

size_t session_measures_count_times(const struct session *s)
{
	(void)s;
	return 0;
}

static void on_message(enum log_level level, const char *text)
{
	(void)text;
	warnings += level <= LOG_WARN;
}

static int begin(void **state)
{
	static struct session s;

	memset(&played, 0, sizeof(played));
	s = (struct session){.beside = &s, .options = {.rolling = true, .max_memory = LIMIT_MIB << 20}};
	warnings = 0;
	played.rings_mib = 50;
	log_set_sink(on_message);
	*state = &s;
	return 0;
}

/* Looks at the memory, long after the last look. */
static void look(struct session *s, uint64_t own_mib, uint64_t maps_mib)
{
	played.own_mib = own_mib;
	played.maps_mib = maps_mib;
	session_keep_memory(s, s->next_maps_look + 1);
}

static void test_it_is_told_before(void **state)
{
	struct session *s = *state;

	look(s, 40, 39);
	assert_false(session_nears_memory_limit(s));
	look(s, 40, 40);
	assert_true(session_nears_memory_limit(s));
	assert_false(played.refused);
	/* What it was for has ended meanwhile. */
	look(s, 30, 40);
	assert_false(session_nears_memory_limit(s));
	assert_int_equal(warnings, 0);
}

static void test_new_stacks_come_again(void **state)
{
	struct session *s = *state;

	look(s, 60, 40);
	assert_true(played.refused && session_nears_memory_limit(s));
	assert_int_equal(warnings, 1);
	/* While what is known is not forgotten, nothing changes. */
	look(s, 10, 40);
	assert_true(played.refused && session_nears_memory_limit(s));
	session_keep_new_stacks(s);
	assert_false(played.refused || session_nears_memory_limit(s));
	look(s, 60, 40);
	assert_true(played.refused);
	assert_int_equal(warnings, 2);
}

/* The limit is that of all sessions of the process. */
static void test_sessions_beside_each_other(void **state)
{
	struct session *s = *state, other = {.beside = &other, .options = s->options};

	session_join_memory(s, &other);
	look(s, 20, 30);
	assert_false(session_nears_memory_limit(s));
	/* Each reads its own maps, and has what the other has read; both map rings. */
	played.rings_mib = 25;
	look(&other, 45, 30);
	assert_true(session_nears_memory_limit(&other));
	look(s, 45, 30);
	assert_true(session_nears_memory_limit(s));
	session_leave_memory(&other);
	look(s, 45, 30);
	assert_false(session_nears_memory_limit(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_it_is_told_before, begin),
		cmocka_unit_test_setup(test_new_stacks_come_again, begin),
		cmocka_unit_test_setup(test_sessions_beside_each_other, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
