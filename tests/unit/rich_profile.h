// SPDX-License-Identifier: Apache-2.0
/* A random profile with entries of every kind, and the comparison of two profiles for equality. */
#ifndef RICH_PROFILE_H
#define RICH_PROFILE_H

#include "profile/mappings.h"
#include "profile/parents.h"
#include "profiles.h"

static inline uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
	return (uint32_t)(*state >> 33) % below;
}

/* Texts of any bytes but NUL. */
static inline const char *draw_text(uint64_t *state)
{
	static char text[64];
	uint32_t size = draw(state, 20);

	for (uint32_t i = 0; i < size; i++)
		text[i] = (char)(1 + draw(state, 255));
	text[size] = '\0';
	return text;
}

static inline void add_rows(struct profile *p, uint64_t *state)
{
	for (int i = 0; i < 200; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s", draw_text(state));
		profile_add_frame(p, draw(state, 8) ? PROFILE_PYTHON : PROFILE_NOTE, name, draw_text(state),
				  (int32_t)draw(state, 5000) - 1, (int32_t)draw(state, 5000) - 1);
	}
	for (int i = 0; i < 40; i++) {
		struct profile_place place = {.line = 1 + (int32_t)draw(state, 5000), .first_line = 1};

		place.end_line = place.line + (int32_t)draw(state, 3);
		place.column = (int32_t)draw(state, 200);
		place.end_column = place.column + 1 + (int32_t)draw(state, 50);
		profile_add_python(p, "spans", draw_text(state), &place);
	}
	for (int i = 0; i < 5; i++) {
		char path[80];

		snprintf(path, sizeof(path), "/lib/%s", draw_text(state));
		profile_add_mapping(p, &(struct profile_mapping_info){
					       .file = path + 5,
					       .path = i ? path : "",
					       .build_id = i % 2 ? "0123456789abcdef" : "",
					       .start = 4096ull * i,
					       .limit = 1ull << (20 + 8 * i),
					       .offset = draw(state, 4096),
				       });
	}
	for (int i = 0; i < 40; i++) {
		struct profile_code code = {.mapping = (uint32_t)i % 6 - 1, .marks = draw(state, 5), .line = i % 4 - 1};

		code.address = code.mapping == PROFILE_NONE ? 0 : 4096ull * code.mapping + draw(state, 1 << 20);
		profile_add_code(p, "compiled", draw_text(state), &code);
	}
	for (int i = 0; i < 20; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s", draw_text(state));
		profile_add_wait(p, i % 2 ? "network" : "lock", name, i % 3 ? 0 : (int32_t)draw(state, INT32_MAX));
	}
	profile_add_frame(p, PROFILE_PYTHON, "last", "line.py", INT32_MAX, INT32_MAX);
	for (int i = 0; i < 2000; i++)
		profile_add_stack(p, draw(state, profile_stack_count(p)), draw(state, profile_frame_count(p)));
	for (int i = 0; i < 10; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s", draw_text(state));
		profile_add_process(p, &(struct profile_process_info){
					       .pid = (int32_t)draw(state, 5),
					       .inner_pid = (int32_t)draw(state, 3),
					       .name = name,
					       .container = draw(state, 2) ? draw_text(state) : NULL,
					       .service = draw(state, 2) ? draw_text(state) : NULL,
					       .attributes = draw(state, 2) ? draw_text(state) : NULL,
				       });
	}
	profile_add_process(p, &(struct profile_process_info){.pid = INT32_MAX, .name = ""});
	for (int i = 0; i < 10; i++) {
		uint32_t above = i % 3 ? draw(state, (uint32_t)i) : PROFILE_NONE;

		above = profile_add_parent(
			p, above,
			&(struct profile_process_info){.pid = i + 100, .inner_pid = i % 2, .name = draw_text(state)},
			i % 4 == 0);
		assert_int_equal(profile_set_parent(p, draw(state, profile_process_count(p)), above), 0);
	}
	for (int i = 0; i < 40; i++)
		profile_add_thread(p, draw(state, profile_process_count(p)), (int32_t)draw(state, INT32_MAX),
				   draw_text(state));
}

static inline struct profile *rich_profile(uint64_t seed)
{
	struct profile *p = new_profile();
	uint64_t state = seed;
	const struct profile_sample *samples;
	size_t count;
	char text[64];

	add_rows(p, &state);
	for (int i = 0; i < 3000; i++) {
		uint32_t thread = draw(&state, profile_thread_count(p) + 5), owner;

		if (thread >= profile_thread_count(p))
			thread = PROFILE_NONE;
		owner = thread == PROFILE_NONE ? draw(&state, profile_process_count(p))
					       : profile_thread_at(p, thread)->process;
		assert_int_equal(profile_add_time(p, draw(&state, profile_stack_count(p)), owner, thread,
						  1 + draw(&state, 1000), draw(&state, 50)),
				 0);
	}
	samples = profile_samples(p, &count);
	for (uint32_t i = 0; i < count; i++) {
		for (uint64_t left = samples[i].value, n = 0; left && n < 3; n++) {
			uint32_t value = 1 + draw(&state, (uint32_t)left);

			assert_int_equal(profile_add_event(p, draw(&state, 2000000000) * 20ull, i, value), 0);
			left -= value;
		}
	}
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%s", draw_text(&state));
		assert_int_equal(profile_add_account(p, i % 2 ? "lost" : "without", text, draw_text(&state),
						     draw(&state, UINT32_MAX)),
				 0);
		assert_int_equal(profile_set_fact(p, text, draw_text(&state)), 0);
		assert_int_equal(profile_set_source(p, text, draw_text(&state)), 0);
		assert_int_equal(profile_set_origin(p, text, (enum profile_origin)(i % PROFILE_ORIGINS)), 0);
	}
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 1000000000 / 99}), 0);
	profile_set_roots(p, PROFILE_ROOT_THREAD | PROFILE_ROOT_BY_COUNT);
	return p;
}

#define assert_same_text(a, i, b, j) assert_string_equal(profile_string(a, i), profile_string(b, j))

static inline void assert_same_parents(const struct profile *a, const struct profile *b)
{
	const struct profile_parents *of_a = profile_get_parents(a), *of_b = profile_get_parents(b);

	assert_int_equal(of_a->list.count, of_b->list.count);
	for (uint32_t i = 0; i < of_a->list.count; i++) {
		const struct profile_parent *x = profile_parents_at(of_a, i), *y = profile_parents_at(of_b, i);

		assert_int_equal(x->above, y->above);
		assert_int_equal(x->process.pid, y->process.pid);
		assert_int_equal(x->process.inner_pid, y->process.inner_pid);
		assert_same_text(a, x->process.name, b, y->process.name);
		assert_same_text(a, x->process.container, b, y->process.container);
		assert_int_equal(x->ended, y->ended);
	}
	for (uint32_t i = 0; i < profile_process_count(a); i++)
		assert_int_equal(profile_parents_of(of_a, i), profile_parents_of(of_b, i));
}

static inline void assert_same_mappings(const struct profile *a, const struct profile *b)
{
	assert_int_equal(profile_mapping_count(a), profile_mapping_count(b));
	for (uint32_t i = 0; i < profile_mapping_count(a); i++) {
		const struct profile_mapping *x = profile_mapping_at(a, i), *y = profile_mapping_at(b, i);

		assert_same_text(a, x->file, b, y->file);
		assert_same_text(a, x->build_id, b, y->build_id);
		assert_same_text(a, x->path, b, y->path);
		assert_true(x->start == y->start && x->limit == y->limit && x->offset == y->offset);
	}
}

static inline void assert_same_rows(const struct profile *a, const struct profile *b)
{
	assert_int_equal(profile_frame_count(a), profile_frame_count(b));
	for (uint32_t i = 0; i < profile_frame_count(a); i++) {
		const struct profile_frame *x = profile_frame_at(a, i), *y = profile_frame_at(b, i);

		assert_same_text(a, x->name, b, y->name);
		assert_same_text(a, x->file, b, y->file);
		assert_int_equal(x->line, y->line);
		assert_int_equal(x->first_line, y->first_line);
		assert_int_equal(x->end_line, y->end_line);
		assert_int_equal(x->column, y->column);
		assert_int_equal(x->end_column, y->end_column);
		assert_int_equal(x->kind, y->kind);
		assert_same_text(a, x->state, b, y->state);
		assert_int_equal(x->waker, y->waker);
		assert_int_equal(x->mapping, y->mapping);
		assert_int_equal(x->marks, y->marks);
		assert_true(x->address == y->address);
	}
	assert_int_equal(profile_stack_count(a), profile_stack_count(b));
	for (uint32_t i = 1; i < profile_stack_count(a); i++)
		assert_memory_equal(profile_stack_at(a, i), profile_stack_at(b, i), sizeof(struct profile_stack));
	assert_int_equal(profile_process_count(a), profile_process_count(b));
	for (uint32_t i = 0; i < profile_process_count(a); i++) {
		const struct profile_process *x = profile_process_at(a, i), *y = profile_process_at(b, i);

		assert_int_equal(x->pid, y->pid);
		assert_int_equal(x->inner_pid, y->inner_pid);
		assert_same_text(a, x->name, b, y->name);
		assert_same_text(a, x->container, b, y->container);
		assert_same_text(a, x->service, b, y->service);
		assert_same_text(a, x->attributes, b, y->attributes);
	}
	assert_same_parents(a, b);
	assert_same_mappings(a, b);
	assert_int_equal(profile_thread_count(a), profile_thread_count(b));
	for (uint32_t i = 0; i < profile_thread_count(a); i++) {
		const struct profile_thread *x = profile_thread_at(a, i), *y = profile_thread_at(b, i);

		assert_int_equal(x->process, y->process);
		assert_int_equal(x->tid, y->tid);
		assert_same_text(a, x->name, b, y->name);
	}
}

static inline void assert_same_values(const struct profile *a, const struct profile *b)
{
	size_t n, m;
	const struct profile_sample *x = profile_samples(a, &n), *y = profile_samples(b, &m);
	const struct profile_event *e = profile_events(a, &n), *f = profile_events(b, &m);

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(e[i].time_ns, f[i].time_ns);
		assert_int_equal(e[i].sample, f[i].sample);
		assert_int_equal(e[i].value, f[i].value);
	}
	profile_samples(a, &n);
	profile_samples(b, &m);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(x[i].stack, y[i].stack);
		assert_int_equal(x[i].process, y[i].process);
		assert_int_equal(x[i].thread, y[i].thread);
		assert_int_equal(x[i].value, y[i].value);
		assert_int_equal(x[i].count, y[i].count);
	}
}

static inline void assert_same_run(const struct profile *a, const struct profile *b)
{
	struct profile_measure v = profile_get_measure(a), w = profile_get_measure(b);
	size_t n, m;
	const struct profile_account *x = profile_account_entries(a, &n), *y = profile_account_entries(b, &m);
	const struct profile_fact *f, *g;
	const struct profile_source *s, *t;

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_same_text(a, x[i].group, b, y[i].group);
		assert_same_text(a, x[i].key, b, y[i].key);
		assert_same_text(a, x[i].text, b, y[i].text);
		assert_int_equal(x[i].value, y[i].value);
	}
	f = profile_facts(a, &n);
	g = profile_facts(b, &m);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_same_text(a, f[i].key, b, g[i].key);
		assert_same_text(a, f[i].value, b, g[i].value);
	}
	s = profile_sources(a, &n);
	t = profile_sources(b, &m);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_same_text(a, s[i].file, b, t[i].file);
		assert_same_text(a, s[i].text, b, t[i].text);
	}
	assert_int_equal(profile_string_count(a), profile_string_count(b));
	for (uint32_t i = 0; i < profile_string_count(a); i++)
		assert_int_equal(profile_origin_of(a, i), profile_origin_of(b, i));
	assert_string_equal(v.name, w.name);
	assert_string_equal(v.unit, w.unit);
	assert_int_equal(v.period_ns, w.period_ns);
	assert_int_equal(profile_wanted_roots(a), profile_wanted_roots(b));
}

static inline void assert_same_profile(const struct profile *a, const struct profile *b)
{
	assert_same_rows(a, b);
	assert_same_values(a, b);
	assert_same_run(a, b);
}

#endif
