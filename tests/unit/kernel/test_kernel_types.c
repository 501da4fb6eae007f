// SPDX-License-Identifier: Apache-2.0
/* The kernel's types as they lie in its file: as libbpf reads them, and refused where they are no BTF. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel_types.h"

/* Checks that they are those that libbpf has read. */
static void check(const struct kernel_types *types, const struct btf *btf)
{
	assert_int_equal(types->count, btf__type_cnt(btf));
	for (uint32_t id = 1; id < types->count; id++) {
		const struct btf_type *one = kernel_types_get(types, id), *other = btf__type_by_id(btf, id);

		assert_memory_equal(one, other, kernel_type_size(one));
		assert_string_equal(kernel_types_string(types, one->name_off),
				    btf__name_by_offset(btf, other->name_off));
	}
}

static void reads_those_of_the_kernel(void **state)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct kernel_types types;

	(void)state;
	if (!btf || access("/sys/kernel/btf/vmlinux", R_OK)) {
		btf__free(btf);
		skip();
	}
	assert_int_equal(kernel_types_open(&types), 0);
	check(&types, btf);
	kernel_types_close(&types);
	btf__free(btf);
}

/* One type of each kind. */
static struct btf *make_types(void)
{
	struct btf *btf = btf__new_empty();
	int number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED), function, prototype;

	assert_true(btf__add_ptr(btf, number) > 0 && btf__add_array(btf, number, number, 3) > 0);
	assert_true(btf__add_struct(btf, "pair", 8) > 0);
	assert_true(!btf__add_field(btf, "a", number, 0, 0) && !btf__add_field(btf, "b", number, 32, 0));
	assert_true(btf__add_union(btf, "either", 4) > 0 && !btf__add_field(btf, "a", number, 0, 0));
	assert_true(btf__add_enum(btf, "few", 4) > 0 && !btf__add_enum_value(btf, "ONE", 1));
	assert_true(btf__add_enum64(btf, "many", 8, false) > 0 && !btf__add_enum64_value(btf, "MOST", 1ull << 40));
	assert_true(btf__add_fwd(btf, "later", BTF_FWD_STRUCT) > 0 && btf__add_typedef(btf, "word", number) > 0);
	assert_true(btf__add_volatile(btf, number) > 0 && btf__add_const(btf, number) > 0);
	assert_true(btf__add_restrict(btf, number) > 0 && btf__add_float(btf, "double", 8) > 0);
	prototype = btf__add_func_proto(btf, number);
	assert_true(prototype > 0 && !btf__add_func_param(btf, "argument", number));
	function = btf__add_func(btf, "word", BTF_FUNC_STATIC, prototype);
	assert_true(function > 0 && btf__add_var(btf, "variable", BTF_VAR_STATIC, number) > 0);
	assert_true(btf__add_datasec(btf, ".data", 4) > 0);
	assert_true(btf__add_decl_tag(btf, "tag", function, 0) > 0 && btf__add_type_tag(btf, "user", number) > 0);
	return btf;
}

static void knows_each_kind(void **state)
{
	struct btf *btf = make_types();
	struct kernel_types types;
	uint32_t size, found;
	const void *bytes = btf__raw_data(btf, &size);

	(void)state;
	assert_int_equal(kernel_types_take(&types, bytes, size), 0);
	check(&types, btf);
	found = kernel_types_find(&types, BTF_KIND_FUNC, "word");
	assert_int_equal(found, btf__find_by_name_kind(btf, "word", BTF_KIND_FUNC));
	assert_int_not_equal(found, kernel_types_find(&types, BTF_KIND_TYPEDEF, "word"));
	assert_int_equal(kernel_types_find(&types, BTF_KIND_FUNC, "pair"), 0);
	kernel_types_close(&types);
	btf__free(btf);
}

static void refuses_what_is_no_btf(void **state)
{
	struct btf *btf = make_types();
	struct kernel_types types;
	uint32_t size;
	const void *bytes = btf__raw_data(btf, &size);
	uint8_t *copy = malloc(size);

	(void)state;
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	for (uint32_t cut = 0; cut < size; cut++) {
		/* Without the room behind, so that the sanitizer sees a read of it. */
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, copy, cut);
		assert_int_equal(kernel_types_take(&types, part, cut), -EINVAL);
		free(part);
	}
	((struct btf_type *)(copy + sizeof(struct btf_header)))->info = 31u << 24;
	assert_int_equal(kernel_types_take(&types, copy, size), -EINVAL);
	free(copy);
	btf__free(btf);
}

static void refuses_a_part_of_a_type(void **state)
{
	struct btf *btf = make_types();
	struct kernel_types whole, types;
	uint32_t size, next = 1;
	const void *bytes = btf__raw_data(btf, &size);
	struct btf_header *header = malloc(size);

	(void)state;
	assert_non_null(header);
	memcpy(header, bytes, size);
	assert_int_equal(kernel_types_take(&whole, bytes, size), 0);
	for (uint32_t length = 0; length < ((const struct btf_header *)bytes)->type_len; length++) {
		header->type_len = length;
		if (length == whole.offsets[next]) {
			assert_int_equal(kernel_types_take(&types, header, size), 0);
			assert_int_equal(types.count, next);
			kernel_types_close(&types);
			next += next + 1 < whole.count;
		} else {
			assert_int_equal(kernel_types_take(&types, header, size), -EINVAL);
		}
	}
	kernel_types_close(&whole);
	free(header);
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_those_of_the_kernel),
		cmocka_unit_test(knows_each_kind),
		cmocka_unit_test(refuses_what_is_no_btf),
		cmocka_unit_test(refuses_a_part_of_a_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
