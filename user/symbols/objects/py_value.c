// SPDX-License-Identifier: Apache-2.0
/* The text of a variable, within the limits of its level, by the writers of all types. */
#include "symbols/objects/py_value.h"

#include <stdlib.h>

#include "symbols/secrets/py_secret.h"
#include "symbols/objects/py_value_internal.h"

static const struct py_limits limits[PY_VALUE_LEVELS] = {
	{.text = 400, .string = 100, .items = 10, .levels = 4},
	{.text = 4000, .string = 1000, .items = 100, .levels = 6},
	{.text = PY_OUT_MAX, .string = 10000, .items = 1000, .levels = 9},
};

static const struct py_known *const types[] = {
	py_known_containers, py_known_library, py_known_callables, py_known_instances, py_known_numpy, NULL,
};

static const struct py_writers writers = {
	.single = py_known_scalars,
	.types = types,
	.classes = py_known_classes,
	.member_of_enum = py_write_enum,
	.exception = py_write_exception,
	.namedtuple = py_write_namedtuple,
	.type = py_write_class,
	.instance = py_write_instance,
};

struct py_values *py_values_new(const struct py_values_of *of)
{
	struct py_values *v = calloc(1, sizeof(*v));
	unsigned level = of->level < 1 ? 1 : of->level > PY_VALUE_LEVELS ? PY_VALUE_LEVELS : of->level;

	if (!v)
		return NULL;
	v->of = *of;
	v->limits = &limits[level - 1];
	v->writers = &writers;
	py_read_init(v, level);
	return v;
}

void py_values_free(struct py_values *v)
{
	if (v)
		py_snapshot_free(&v->snapshot);
	free(v);
}

const char *py_values_text(struct py_values *v, const char *name, uint64_t object, size_t *size)
{
	py_out_begin(&v->out, v->limits->text);
	if (py_hides_name(v, name))
		py_out_text(&v->out, PY_VALUE_HIDDEN);
	else
		py_write(v, object);
	py_out_end(&v->out);
	*size = v->out.size;
	return v->out.bytes;
}

const struct py_mark *py_values_marks(const struct py_values *v, uint32_t *count)
{
	*count = v->out.nr_marks;
	return v->out.marks;
}
