// SPDX-License-Identifier: Apache-2.0
/* Visits processes user by user, each within an equal share of the time. */
#include "session/user_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "session/cpu_time.h"
#include "session/internal.h"

bool session_runs_python(const struct processes_record *process, void *arg)
{
	(void)arg;
	return !process->ended && process->state == PROCESSES_PYTHON;
}

struct due {
	uid_t user;
	struct processes_record *process;
};

struct gathering {
	bool (*is_due)(const struct processes_record *process, void *arg);
	void *arg;
	struct due *items;
	size_t count, room;
	bool failed;
};

static void gather(struct processes_record *process, void *arg)
{
	struct gathering *g = arg;

	if (g->failed || !g->is_due(process, g->arg))
		return;
	g->failed = array_reserve(&g->items, &g->room, g->count + 1, sizeof(*g->items));
	if (!g->failed)
		g->items[g->count++] = (struct due){.user = processes_get_user(process), .process = process};
}

static int compare_users(const void *a, const void *b)
{
	const struct due *one = a, *other = b;

	return one->user < other->user ? -1 : one->user > other->user;
}

static bool is_first_of_user(const struct gathering *g, size_t at)
{
	return !at || g->items[at].user != g->items[at - 1].user;
}

/* Gathers the processes by user. Returns the number of users. The caller frees g->items. */
static size_t gather_by_user(struct session *s, struct gathering *g)
{
	size_t users = 0;

	processes_visit_all(s->processes, gather, g);
	if (g->count)
		qsort(g->items, g->count, sizeof(*g->items), compare_users);
	for (size_t i = 0; i < g->count; i++)
		users += is_first_of_user(g, i);
	return users;
}

size_t session_count_users(struct session *s, bool (*is_due)(const struct processes_record *process, void *arg),
			   void *arg)
{
	struct gathering g = {.is_due = is_due, .arg = arg};
	size_t users = gather_by_user(s, &g);

	free(g.items);
	return g.failed ? 0 : users;
}

int session_visit_by_user(struct session *s, double until_s,
			  bool (*is_due)(const struct processes_record *process, void *arg),
			  void (*visit)(struct processes_record *process, double until_s, void *arg), void *arg)
{
	struct gathering g = {.is_due = is_due, .arg = arg};
	size_t users = gather_by_user(s, &g);
	double share_until_s = until_s;

	for (size_t i = 0; i < g.count && !g.failed; i++) {
		if (is_first_of_user(&g, i)) {
			double now = session_used_s();

			share_until_s = now + (until_s - now) / (double)users--;
		}
		visit(g.items[i].process, share_until_s, arg);
	}
	free(g.items);
	return g.failed ? -ENOMEM : 0;
}
