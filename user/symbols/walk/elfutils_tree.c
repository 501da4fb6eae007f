// SPDX-License-Identifier: Apache-2.0
/*
 * For the static binary on Debian 13, whose libdw.a and libelf.a (elfutils 0.192) call functions of a libeu.a that is
 * in no package. They are search.h's, on a tree of which only the first member is known: elfutils' lock behind it is
 * for threads, and pybpf has one.
 */
#include <search.h>
#include <stddef.h>

struct elfutils_tree {
	void *root;
};

typedef int (*compare_function)(const void *, const void *);

void *tree_search(const void *key, struct elfutils_tree *tree, compare_function compare) __asm__("eu_tsearch");
void *tree_find(const void *key, struct elfutils_tree *tree, compare_function compare) __asm__("eu_tfind");
void *tree_delete(const void *key, struct elfutils_tree *tree, compare_function compare) __asm__("eu_tdelete");
void tree_destroy(struct elfutils_tree *tree, void (*free_node)(void *)) __asm__("eu_tdestroy");
void tree_init(struct elfutils_tree *tree) __asm__("eu_search_tree_init");
void tree_fini(struct elfutils_tree *tree, void (*free_node)(void *)) __asm__("eu_search_tree_fini");

void *tree_search(const void *key, struct elfutils_tree *tree, compare_function compare)
{
	return tsearch(key, &tree->root, compare);
}

void *tree_find(const void *key, struct elfutils_tree *tree, compare_function compare)
{
	return tfind(key, &tree->root, compare);
}

void *tree_delete(const void *key, struct elfutils_tree *tree, compare_function compare)
{
	return tdelete(key, &tree->root, compare);
}

void tree_destroy(struct elfutils_tree *tree, void (*free_node)(void *))
{
	tdestroy(tree->root, free_node);
	tree->root = NULL;
}

void tree_init(struct elfutils_tree *tree)
{
	tree->root = NULL;
}

void tree_fini(struct elfutils_tree *tree, void (*free_node)(void *))
{
	tree_destroy(tree, free_node);
}
