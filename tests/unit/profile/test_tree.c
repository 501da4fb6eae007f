// SPDX-License-Identifier: Apache-2.0
#include "profile/tree.h"

#include "profiles.h"

static void take(struct profile *p, uint32_t stack, uint64_t value)
{
	take_in(p, stack, process(p, 42, "python3"), value);
}

static void build(const struct profile *p, bool by_line, struct profile_tree *tree)
{
	assert_int_equal(profile_tree_build(p, by_line, tree), 0);
}

/* The child of a node that has such a frame's name; PROFILE_TREE_NONE: none. */
static uint32_t child(const struct profile *p, const struct profile_tree *tree, uint32_t node, const char *name)
{
	for (uint32_t c = tree->nodes[node].first_child; c != PROFILE_TREE_NONE; c = tree->nodes[c].next_sibling) {
		const struct profile_tree_node *n = &tree->nodes[c];

		if (n->kind == PROFILE_TREE_FRAME &&
		    strcmp(profile_string(p, profile_frame_at(p, n->what)->name), name) == 0)
			return c;
	}
	return PROFILE_TREE_NONE;
}

static void assert_node(const struct profile_tree *tree, uint32_t node, uint64_t self, uint64_t total, uint32_t depth)
{
	assert_int_not_equal(node, PROFILE_TREE_NONE);
	assert_int_equal(tree->nodes[node].self, self);
	assert_int_equal(tree->nodes[node].total, total);
	assert_int_equal(tree->nodes[node].depth, depth);
}

/* What holds of each tree. */
static void check(const struct profile *p, const struct profile_tree *tree)
{
	uint64_t self = 0;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct profile_tree_node *node = &tree->nodes[i];
		uint64_t below = 0, last = UINT64_MAX;

		self += node->self;
		assert_true(i ? node->parent < i : node->parent == PROFILE_TREE_NONE);
		assert_true(node->depth <= tree->depth);
		for (uint32_t c = node->first_child; c != PROFILE_TREE_NONE; c = tree->nodes[c].next_sibling) {
			assert_int_equal(tree->nodes[c].parent, i);
			assert_true(tree->nodes[c].total <= last);
			last = tree->nodes[c].total;
			below += last;
		}
		assert_int_equal(node->total, node->self + below);
	}
	assert_int_equal(self, profile_total(p));
	assert_int_equal(tree->nodes[0].total, self);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();
	struct profile_tree tree;

	(void)unused;
	build(p, false, &tree);
	assert_int_equal(tree.count, 1);
	assert_int_equal(tree.depth, 0);
	check(p, &tree);
	profile_tree_free(&tree);
	profile_tree_free(&tree);
	profile_free(p);
}

static void test_functions_and_lines(void **unused)
{
	struct profile *p = new_profile();
	uint32_t root = on(p, PROFILE_ROOT, "main", "a.py", 1), other = on(p, PROFILE_ROOT, "main", "a.py", 2);
	struct profile_tree tree;
	uint32_t node;

	(void)unused;
	take(p, on(p, root, "f", "a.py", 5), 3);
	take(p, on(p, other, "f", "a.py", 6), 4);
	take(p, on(p, other, "f", "b.py", 6), 5); /* another f */
	take(p, on(p, root, "g", "a.py", 9), 20);
	take(p, root, 1);
	take(p, PROFILE_ROOT, 100); /* no frames: in no tree */
	build(p, false, &tree);
	check(p, &tree);
	assert_int_equal(tree.count, 5);
	node = child(p, &tree, 0, "main");
	assert_node(&tree, node, 1, 33, 1);
	/* Largest first. */
	assert_int_equal(tree.nodes[node].first_child, child(p, &tree, node, "g"));
	assert_node(&tree, child(p, &tree, node, "f"), 7, 7, 2);
	profile_tree_free(&tree);

	build(p, true, &tree);
	check(p, &tree);
	assert_int_equal(tree.count, 7);
	assert_node(&tree, tree.nodes[0].first_child, 1, 24, 1);
	profile_tree_free(&tree);
	profile_free(p);
}

static void test_roots(void **unused)
{
	struct profile *p = new_profile();
	uint32_t one = process(p, 1, "one"), two = process(p, 2, "two");
	uint32_t thread = profile_add_thread(p, one, 11, "worker");
	uint32_t s = on(p, PROFILE_ROOT, "main", "a.py", 1), f = on(p, s, "f", "a.py", 2);
	struct profile_tree tree;
	uint32_t node;

	(void)unused;
	take_in(p, f, one, 1);
	assert_int_equal(profile_add_sample(p, f, one, thread, 2), 0);
	take_in(p, f, two, 4);
	take_in(p, s, two, 8);
	profile_set_roots(p, 0);
	build(p, false, &tree);
	check(p, &tree);
	assert_int_equal(tree.count, 3);
	profile_tree_free(&tree);

	profile_set_roots(p, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS | PROFILE_ROOT_THREAD);
	build(p, false, &tree);
	check(p, &tree);
	node = tree.nodes[0].first_child;
	assert_int_equal(tree.nodes[node].kind, PROFILE_TREE_CONTAINER);
	assert_int_equal(tree.nodes[node].next_sibling, PROFILE_TREE_NONE);
	node = tree.nodes[node].first_child;
	assert_int_equal(tree.nodes[node].kind, PROFILE_TREE_PROCESS);
	assert_int_equal(tree.nodes[node].what, two);
	assert_node(&tree, child(p, &tree, child(p, &tree, node, "main"), "f"), 4, 4, 4);
	node = tree.nodes[node].next_sibling;
	assert_int_equal(tree.nodes[node].what, one);
	assert_node(&tree, node, 0, 3, 2);
	/* The thread, and beside it what has none. */
	node = tree.nodes[node].first_child;
	assert_int_equal(tree.nodes[node].kind, PROFILE_TREE_THREAD);
	assert_node(&tree, node, 0, 2, 3);
	assert_int_equal(tree.nodes[tree.nodes[node].next_sibling].kind, PROFILE_TREE_FRAME);
	profile_tree_free(&tree);
	profile_free(p);
}

/* A process that started others is one node, whether they or it have the samples. */
static void test_parents(void **unused)
{
	struct profile *p = new_profile();
	uint32_t master = process(p, 1, "master"), worker = process(p, 2, "worker"),
		 f = on(p, PROFILE_ROOT, "f", "a.py", 2);
	const struct profile_process_info infos[] = {{.pid = 7, .name = "sh"}, {.pid = 1, .name = "master"}};
	uint32_t above = profile_add_parent(p, PROFILE_NONE, &infos[0], false), node;
	struct profile_tree tree;

	(void)unused;
	take_in(p, f, master, 1);
	take_in(p, f, worker, 2);
	assert_int_equal(profile_set_parent(p, master, above), 0);
	assert_int_equal(profile_set_parent(p, worker, profile_add_parent(p, above, &infos[1], false)), 0);
	profile_set_roots(p, PROFILE_ROOT_PARENTS | PROFILE_ROOT_PROCESS);
	build(p, false, &tree);
	check(p, &tree);
	node = tree.nodes[0].first_child;
	assert_int_equal(tree.nodes[node].kind, PROFILE_TREE_PARENT);
	assert_int_equal(tree.nodes[node].what, above);
	assert_int_equal(tree.nodes[node].next_sibling, PROFILE_TREE_NONE);
	node = tree.nodes[node].first_child;
	assert_int_equal(tree.nodes[node].kind, PROFILE_TREE_PROCESS);
	assert_int_equal(tree.nodes[node].what, master);
	assert_int_equal(tree.nodes[node].next_sibling, PROFILE_TREE_NONE);
	assert_node(&tree, child(p, &tree, node, "f"), 1, 1, 3);
	profile_tree_free(&tree);
	profile_free(p);
}

/* No stack is too deep, and many that share their root cost what they do not share. */
static void test_deep(void **unused)
{
	enum {
		DEPTH = 20000
	};
	struct profile *p = new_profile();
	uint32_t s = PROFILE_ROOT, deepest = 0;
	struct profile_tree tree;

	(void)unused;
	for (int i = 0; i < DEPTH; i++) {
		s = on(p, s, i % 2 ? "odd" : "even", "deep.py", 1);
		take(p, s, 1);
	}
	build(p, false, &tree);
	check(p, &tree);
	assert_int_equal(tree.count, DEPTH + 1);
	assert_int_equal(tree.depth, DEPTH);
	for (uint32_t i = 0; i < tree.count; i++)
		deepest = tree.nodes[i].depth == DEPTH ? i : deepest;
	assert_node(&tree, deepest, 1, 1, DEPTH);
	profile_tree_free(&tree);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty), cmocka_unit_test(test_functions_and_lines),
		cmocka_unit_test(test_roots), cmocka_unit_test(test_parents),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
