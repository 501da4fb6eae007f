// SPDX-License-Identifier: Apache-2.0
/* Writes functions, methods, classes and modules by their names. Offsets are from the end of the object's header on. */
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_value_internal.h"

/* Adds the name of a function, a builtin function, or whatever else can be called. */
static void write_name(struct py_values *v, const struct py_object *o)
{
	char text[PY_TYPE_NAME] = "", *name = NULL;
	uint64_t at;

	if (!strcmp(o->type.name, "function") &&
	    py_get(v, o->fields + py_facts(v)->function->qualname, &at, sizeof(at)))
		name = py_values_name(v, at);
	/* PyCFunctionObject.m_ml, whose first field is ml_name. */
	if (!strcmp(o->type.name, "builtin_function_or_method") && py_get(v, o->fields, &at, sizeof(at)) &&
	    py_get(v, at, &at, sizeof(at)) && !py_read_name(v, at, text))
		text[0] = '\0';
	py_out_text(&v->out, name ? name : text[0] ? text : PY_VALUE_UNREADABLE);
	free(name);
}

static bool write_function(struct py_values *v, const struct py_object *o)
{
	size_t size = v->out.size;

	py_out_text(&v->out, "<function ");
	write_name(v, o);
	py_out_mark(&v->out, size + 1, o->at);
	py_out_text(&v->out, ">");
	return true;
}

/* Adds what a method is bound to. */
static void write_self(struct py_values *v, const struct py_object *self)
{
	size_t begin;

	py_out_text(&v->out, " of ");
	begin = v->out.size;
	py_out_print(&v->out, "%s object", self->type.name);
	py_out_mark(&v->out, begin, self->at);
}

/* Its m_self is a module, or what it is a method of. */
static bool write_builtin(struct py_values *v, const struct py_object *o)
{
	struct py_object self;
	uint64_t at;
	bool of_object = py_get(v, o->fields + PYBPF_CFUNCTION_SELF, &at, sizeof(at)) && at &&
			 py_look_at(v, at, &self) && strcmp(self.type.name, "module") != 0;

	py_out_text(&v->out, of_object ? "<built-in method " : "<built-in function ");
	write_name(v, o);
	if (of_object)
		write_self(v, &self);
	py_out_text(&v->out, ">");
	return true;
}

/* im_func, im_self. */
static bool write_method(struct py_values *v, const struct py_object *o)
{
	struct py_object function, self;
	uint64_t at[2];

	if (!py_get(v, o->fields, at, sizeof(at)) || !py_look_at(v, at[0], &function))
		return false;
	py_out_text(&v->out, at[1] ? "<bound method " : "<unbound method ");
	write_name(v, &function);
	if (at[1] && py_look_at(v, at[1], &self))
		write_self(v, &self);
	py_out_text(&v->out, ">");
	return true;
}

/* md_dict. */
static bool write_module(struct py_values *v, const struct py_object *o)
{
	uint64_t names, at;
	struct py_dict dict;
	char *name = NULL;

	if (py_get(v, o->fields, &names, sizeof(names)) && py_open_dict(&v->r, names, &dict) &&
	    py_find_text(&v->r, &dict, "__name__", &at))
		name = py_values_name(v, at);
	if (!name)
		return false;
	py_out_text(&v->out, "<module '");
	py_out_text(&v->out, name);
	py_out_text(&v->out, "'>");
	free(name);
	return true;
}

/* A class's own name has no module in it; that of a type of C has. */
bool py_write_class(struct py_values *v, const struct py_object *o)
{
	struct py_type type;
	struct py_dict dict;
	char *module = NULL;
	uint64_t at;

	if (!py_type_at(v, o->at, &type))
		return false;
	if ((type.flags & PYBPF_TPFLAGS_HEAPTYPE) && !strchr(type.name, '.') && py_open_dict(&v->r, type.dict, &dict) &&
	    py_find_text(&v->r, &dict, "__module__", &at))
		module = py_values_name(v, at);
	py_out_text(&v->out, py_facts(v)->repr->has_old_literals && !(type.flags & PYBPF_TPFLAGS_HEAPTYPE)
				     ? "<type '"
				     : "<class '");
	if (module && strcmp(module, "builtins") != 0) {
		py_out_text(&v->out, module);
		py_out_text(&v->out, ".");
	}
	py_out_print(&v->out, "%s'>", type.name);
	free(module);
	return true;
}

const struct py_known py_known_callables[] = {
	{"function", write_function}, {"builtin_function_or_method", write_builtin},
	{"method", write_method},     {"instancemethod", write_method}, /* 2.7 */
	{"module", write_module},     {NULL, NULL},
};
