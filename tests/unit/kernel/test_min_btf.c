// SPDX-License-Identifier: Apache-2.0
/* What is kept of a kernel's types: all that a field's offset and size are found by, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kernel_types.h"
#include "kernel/min_btf.h"

/* A struct of that many bytes with one int. Returns its number. */
static int add_struct(struct btf *btf, const char *name, uint32_t size, int member, const char *member_name)
{
	int id = btf__add_struct(btf, name, size);

	assert_int_equal(btf__add_field(btf, member_name, member, 8 * (size - 4), 0), 0);
	return id;
}

/*
 * struct task { int pid; struct entity se; struct memory *mm; struct entity more[3]; handler run; }, where nothing
 * names memory, and what a handler takes.
 */
static struct btf *make_kernel(void)
{
	struct btf *btf = btf__new_empty();
	int number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	int entity = add_struct(btf, "entity", 24, number, "vruntime");
	int memory = add_struct(btf, "memory", 1000, number, "users");
	int pointer = btf__add_ptr(btf, memory);
	int constant = btf__add_const(btf, entity);
	int array = btf__add_array(btf, number, constant, 3);
	int function = btf__add_func_proto(btf, memory), added = btf__add_func_param(btf, "m", pointer);
	int handler = btf__add_typedef(btf, "handler", function);
	int task = btf__add_struct(btf, "task", 128);
	assert_int_equal(btf__add_field(btf, "pid", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "se", entity, 64, 0), 0);
	assert_int_equal(btf__add_field(btf, "mm", pointer, 256, 0), 0);
	assert_int_equal(btf__add_field(btf, "more", array, 320, 0), 0);
	assert_int_equal(btf__add_field(btf, "run", handler, 960, 0), 0);
	assert_int_equal(added, 0);
	assert_true(task > 0);
	assert_true(btf__add_struct(btf, "other", 8) > 0);
	return btf;
}

static void take(struct kernel_types *types, const struct btf *kernel)
{
	uint32_t size;
	const void *bytes = btf__raw_data(kernel, &size);

	assert_int_equal(kernel_types_take(types, bytes, size), 0);
}

static struct btf *cut(const struct btf *kernel, const struct btf *object)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct kernel_types types;
	struct btf *btf;
	char path[32];

	assert_true(fd >= 0);
	take(&types, kernel);
	assert_int_equal(kernel_write_min_btf(&types, object, fd), 0);
	kernel_types_close(&types);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	btf = btf__parse(path, NULL);
	assert_non_null(btf);
	close(fd);
	return btf;
}

static const struct btf_type *find(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	assert_true(id > 0);
	return btf__type_by_id(btf, (uint32_t)id);
}

static void keeps_fields_and_what_lies_in_them(void **state)
{
	struct btf *kernel = make_kernel(), *object = btf__new_empty(), *out;
	const struct btf_type *task, *element;
	const struct btf_member *members;

	(void)state;
	assert_true(btf__add_struct(object, "task___flavor", 4) > 0);
	out = cut(kernel, object);
	task = find(out, "task");
	members = btf_members(task);
	assert_int_equal(task->size, 128);
	assert_int_equal(btf_vlen(task), 5);
	assert_string_equal(btf__name_by_offset(out, members[1].name_off), "se");
	assert_int_equal(btf_member_bit_offset(task, 1), 64);
	assert_ptr_equal(btf__type_by_id(out, members[1].type), find(out, "entity"));
	assert_int_equal(btf__resolve_size(out, members[2].type), 8);
	assert_int_equal(btf__resolve_size(out, members[3].type), 72);
	element = btf__type_by_id(out, btf_array(btf__type_by_id(out, members[3].type))->type);
	assert_true(btf_is_const(element));
	assert_ptr_equal(btf__type_by_id(out, element->type), find(out, "entity"));
	assert_int_equal(btf_member_bit_offset(task, 4), 960);
	/* Neither what a pointer points to, nor a function's types, nor what was not named. */
	assert_int_equal(btf__find_by_name(out, "memory"), -ENOENT);
	assert_int_equal(btf__find_by_name(out, "other"), -ENOENT);
	assert_int_equal(btf__find_by_name_kind(out, "entity", BTF_KIND_UNION), -ENOENT);
	btf__free(out);
	btf__free(object);
	btf__free(kernel);
}

static void keeps_all_types_of_one_name(void **state)
{
	struct btf *kernel = make_kernel(), *object = btf__new_empty(), *out;
	int number = btf__find_by_name(kernel, "int"), found = 0;

	(void)state;
	add_struct(kernel, "task", 256, number, "pid");
	assert_true(btf__add_struct(object, "task", 4) > 0);
	out = cut(kernel, object);
	for (uint32_t id = 1; id < btf__type_cnt(out); id++)
		found += strcmp(btf__name_by_offset(out, btf__type_by_id(out, id)->name_off), "task") == 0;
	assert_int_equal(found, 2);
	btf__free(out);
	btf__free(object);
	btf__free(kernel);
}

static void says_that_it_cannot_write(void **state)
{
	struct btf *kernel = make_kernel(), *object = btf__new_empty();
	struct kernel_types types;

	(void)state;
	take(&types, kernel);
	assert_int_equal(kernel_write_min_btf(&types, object, -1), -EBADF);
	kernel_types_close(&types);
	btf__free(object);
	btf__free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_fields_and_what_lies_in_them),
		cmocka_unit_test(keeps_all_types_of_one_name),
		cmocka_unit_test(says_that_it_cannot_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
