// SPDX-License-Identifier: Apache-2.0
/* Reads the variables of frames. */
#include "dump/locals.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/objects/py_frame.h"

/* A variable as it is packed: its marks follow, and a name and a text, each with its NUL. */
struct packed {
	uint32_t frame;
	uint8_t kind;
	uint8_t pad;
	uint16_t nr_marks;
	uint32_t name_size, text_size;
	uint64_t object;
};

struct reader {
	struct py_values *values;
	const struct pybpf_layout *layout;
	struct dump_variables variables; /* of the code object that was met last */
	bool has_variables;
	uint64_t frame; /* address of the one whose variables are read */
	char *out;
	size_t size, room;
	size_t reserve; /* of the room, for one mark behind the last variable */
	bool full;
};

static void pack(struct reader *r, const struct dump_local *local, size_t text_size)
{
	struct packed head = {.frame = local->frame,
			      .kind = (uint8_t)local->kind,
			      .nr_marks = (uint16_t)local->nr_marks,
			      .object = local->object,
			      .name_size = (uint32_t)strlen(local->name),
			      .text_size = (uint32_t)text_size};
	size_t marks_size = local->nr_marks * sizeof(struct py_mark);
	size_t size = sizeof(head) + marks_size + head.name_size + 1 + text_size + 1;
	char *to = r->out + r->size;

	if (size + (local->name[0] ? r->reserve : 0) > r->room - r->size) {
		r->full = true;
		return;
	}
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	if (marks_size)
		memcpy(to, local->marks, marks_size);
	to += marks_size;
	memcpy(to, local->name, head.name_size + 1);
	memcpy(to + head.name_size + 1, local->text, text_size);
	r->out[r->size + size - 1] = '\0';
	r->size += size;
}

/*
 * Returns whether the frame is still one of that function. A thread that slept before and sleeps again may have called
 * others meanwhile, with frames in the same place.
 */
static bool is_in_function(const struct reader *r)
{
	uint64_t code;

	return !py_values_read(r->values, r->frame + r->layout->frame_code, &code, sizeof(code)) &&
	       (code & ~(uint64_t)r->layout->code_tag_mask) == r->variables.code;
}

/*
 * Reads the object of a slot, and of the cell in it; 0: the variable has no value. is_own: the slot is of that
 * function.
 */
static bool read_object(struct reader *r, const struct dump_variable *variable, uint64_t slot, uint64_t *object,
			bool *is_own)
{
	uint64_t word, content;

	if (py_values_read(r->values, slot, &word, sizeof(word)))
		return false;
	*object = py_frame_object(r->layout, word);
	*is_own = is_in_function(r);
	if (*is_own && *object && variable->is_in_cell && py_values_open_cell(r->values, *object, &content))
		*object = content;
	return true;
}

static void read_variable(struct reader *r, uint32_t frame, const struct dump_variable *variable, uint64_t slot)
{
	struct dump_local local = {.frame = frame, .kind = variable->kind, .name = variable->name};
	size_t size = strlen(PY_VALUE_UNREADABLE);

	local.text = PY_VALUE_UNREADABLE;
	for (unsigned i = 0; !i || i < py_values_worth(r->values); i++) {
		uint64_t object;
		const char *text;
		size_t text_size;
		bool is_own;

		py_values_begin(r->values, i > 0);
		if (!read_object(r, variable, slot, &object, &is_own)) {
			if (py_values_are_over(r->values))
				return;
			break;
		}
		if (!is_own)
			continue;
		if (!object)
			return;
		text = py_values_text(r->values, variable->name, object, &text_size);
		/* A part of it may be missing. */
		if (py_values_are_over(r->values))
			return;
		if (!py_values_hold(r->values))
			continue;
		local.text = text;
		local.object = object;
		local.marks = py_values_marks(r->values, &local.nr_marks);
		size = text_size;
		break;
	}
	pack(r, &local, size);
}

static void read_frame(struct reader *r, uint32_t frame, uint64_t code, uint64_t address)
{
	uint64_t first = address + py_frame_locals(r->layout);

	if (!r->has_variables || r->variables.code != code)
		r->has_variables = dump_variables_read(r->values, r->layout, code, &r->variables);
	r->frame = address;
	for (size_t i = 0; r->has_variables && i < r->variables.count && !r->full; i++)
		read_variable(r, frame, &r->variables.items[i], first + 8ull * r->variables.items[i].slot);
}

size_t dump_locals_read(const struct py_values_of *of, const struct walk_stack *stack, void *out, size_t room)
{
	struct reader *r = calloc(1, sizeof(*r));
	/* In a stack that was cut, the frames nearest to the leaf are where they were. */
	uint32_t count = stack->depth > PYBPF_MAX_FRAMES ? PYBPF_HALF_FRAMES : stack->depth;
	size_t size = 0;

	if (!r)
		return 0;
	r->values = py_values_new(of);
	r->layout = of->layout;
	r->out = out;
	r->room = room;
	r->reserve = sizeof(struct packed) + 2;
	for (uint32_t i = 0; i < count && r->values; i++) {
		const struct dump_local beyond = {.frame = i, .kind = DUMP_LOCAL_BEYOND, .name = "", .text = ""};

		if (stack->frames[i].kind == PYBPF_FRAME_MARKER || !stack->addresses[i])
			continue;
		if (!r->full && !py_values_are_over(r->values))
			read_frame(r, i, stack->frames[i].code, stack->addresses[i]);
		if (r->full || py_values_are_over(r->values)) {
			r->full = false;
			pack(r, &beyond, 0);
			break;
		}
	}
	size = r->size;
	dump_variables_free(&r->variables);
	py_values_free(r->values);
	free(r);
	return size;
}

/* Returns how many frames from the root on are the same in both. */
static uint32_t same_frames(const struct walk_stack *a, const struct walk_stack *b)
{
	uint32_t most = a->depth < b->depth ? a->depth : b->depth, same = 0;

	if (a->depth > PYBPF_MAX_FRAMES || b->depth > PYBPF_MAX_FRAMES)
		return 0;
	while (same < most) {
		uint32_t i = a->depth - 1 - same, j = b->depth - 1 - same;

		if (a->addresses[i] != b->addresses[j] || a->frames[i].word != b->frames[j].word ||
		    a->frames[i].sig != b->frames[j].sig)
			break;
		same++;
	}
	return same;
}

size_t dump_locals_keep_same(void *bytes, size_t size, const struct walk_stack *stack, const struct walk_stack *again)
{
	uint32_t left = stack->depth - same_frames(stack, again);
	struct dump_locals locals = {.bytes = malloc(size + 1), .size = size};
	struct reader to = {.out = bytes, .room = size};
	struct dump_local local;
	uint32_t marked = UINT32_MAX;

	if (!locals.bytes)
		return 0;
	memcpy(locals.bytes, bytes, size);
	for (size_t at = 0; dump_locals_next(&locals, &at, &local);) {
		const struct dump_local moving = {
			.frame = local.frame, .kind = DUMP_LOCAL_MOVING, .name = "", .text = ""};

		if (local.frame >= left)
			pack(&to, &local, strlen(local.text));
		else if (marked != local.frame)
			pack(&to, &moving, 0);
		marked = local.frame;
	}
	free(locals.bytes);
	return to.size;
}

/* Returns whether the marks are in their order, and within the text. */
static bool are_sound(const struct dump_local *local, uint32_t size)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < local->nr_marks; i++) {
		struct py_mark mark = dump_local_mark(local, i);

		if (mark.begin >= mark.at || mark.at < before || mark.at > size)
			return false;
		before = mark.at;
	}
	return true;
}

bool dump_locals_next(const struct dump_locals *locals, size_t *at, struct dump_local *out)
{
	const char *bytes = locals->bytes;
	size_t left = locals->size - *at, marks_size;
	struct packed head;

	if (!bytes || *at > locals->size || left < sizeof(head))
		return false;
	memcpy(&head, bytes + *at, sizeof(head));
	left -= sizeof(head);
	marks_size = head.nr_marks * sizeof(struct py_mark);
	if (head.kind >= DUMP_LOCAL_KINDS || marks_size >= left || head.name_size >= left - marks_size ||
	    head.text_size >= left - marks_size - head.name_size - 1)
		return false;
	*out = (struct dump_local){.frame = head.frame,
				   .kind = head.kind,
				   .object = head.object,
				   .marks = bytes + *at + sizeof(head),
				   .nr_marks = head.nr_marks};
	out->name = (const char *)out->marks + marks_size;
	out->text = out->name + head.name_size + 1;
	*at += sizeof(head) + marks_size + head.name_size + head.text_size + 2;
	return !out->name[head.name_size] && !out->text[head.text_size] && are_sound(out, head.text_size);
}
