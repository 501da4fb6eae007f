// SPDX-License-Identifier: Apache-2.0
/* A profile of a service, and what passes when it is copied: for tests of edit*.c. */
#ifndef TESTS_EDITED_PROFILE_H
#define TESTS_EDITED_PROFILE_H

#include "profile/edit.h"
#include "rich_profile.h"

/* What passes; the caller frees. */
static inline struct profile *edited(const struct profile *from, const struct profile_edit *edit)
{
	struct profile *to = new_profile();
	struct error error;

	assert_int_equal(profile_edit_add(to, from, edit, &error), 0);
	assert_string_equal(error.text, "");
	return to;
}

static inline void assert_edited(const struct profile *from, const struct profile_edit *edit, const char *folded)
{
	struct profile *to = edited(from, edit);

	assert_folded(to, folded);
	profile_free(to);
}

static inline void add(struct profile *p, uint32_t stack, uint32_t owner, uint32_t thread, uint64_t value)
{
	assert_int_equal(profile_add_sample(p, stack, owner, thread, value), 0);
}

static inline uint32_t contained(struct profile *p, int pid, const char *name, const char *container)
{
	return profile_add_process(p, &(struct profile_process_info){.pid = pid, .name = name, .container = container});
}

static inline struct profile *service(void)
{
	struct profile *p = new_profile();
	uint32_t web = contained(p, 42, "web", "shop/front"), job = contained(p, 43, "job", "4f797c539e6c");
	uint32_t host = process(p, 44, "web");
	uint32_t main = profile_add_thread(p, web, 42, "web"), worker = profile_add_thread(p, web, 50, "worker-1");
	uint32_t other = profile_add_thread(p, job, 43, "job");
	uint32_t module = on(p, PROFILE_ROOT, "<module>", "app.py", 9), run = on(p, module, "Server.run", "app.py", 3);
	uint32_t again = on(p, run, "Server.run", "app.py", 4), leaf = on(p, again, "work", "lib/a.py", 7);

	add(p, leaf, web, main, 1);
	add(p, leaf, web, worker, 2);
	add(p, run, web, worker, 4);
	add(p, module, job, other, 8);
	add(p, leaf, host, PROFILE_NONE, 16);
	add(p, PROFILE_ROOT, host, PROFILE_NONE, 1000);
	profile_set_roots(p, 0);
	return p;
}

#endif
