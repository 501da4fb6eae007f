// SPDX-License-Identifier: Apache-2.0
/* Makes a request of Pyroscope's push.v1. */
#include "push/push_v1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "push/push_v1.pb-c.h"

/* Labels of our own: the kind, the service and the host. */
#define OWN_LABELS 3

/* Writes a random UUID, of version 4 and variant 1 as RFC 9562 has them. */
static void make_uuid(char out[37])
{
	uint8_t b[16] = {0};

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		b[0] = 0;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
		 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

struct labels {
	PushV1__Label *items, **pointers;
	size_t count;
	bool no_memory;
};

static void add_label(struct labels *labels, const char *name, const char *value)
{
	PushV1__Label *label = &labels->items[labels->count];

	if (!*value)
		return;
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->items[i].name, name) == 0)
			return;
	}
	push_v1__label__init(label);
	label->name = (char *)name;
	/* Texts of protobuf are UTF-8. */
	label->value = text_printable(value);
	labels->no_memory |= !label->value;
	labels->pointers[labels->count++] = label;
}

static void free_labels(struct labels *labels)
{
	for (size_t i = 0; i < labels->count; i++)
		free(labels->items[i].value);
	free(labels->items);
	free(labels->pointers);
}

static void pack(const struct push_v1 *from, struct labels *labels, struct proto_bytes *to)
{
	PushV1__Request request = PUSH_V1__REQUEST__INIT;
	PushV1__Series series = PUSH_V1__SERIES__INIT, *one_series = &series;
	PushV1__Sample sample = PUSH_V1__SAMPLE__INIT, *one_sample = &sample;
	char uuid[37];

	make_uuid(uuid);
	sample.raw_profile = (ProtobufCBinaryData){.len = from->pprof_size, .data = (uint8_t *)from->pprof};
	sample.id = uuid;
	series.labels = labels->pointers;
	series.n_labels = labels->count;
	series.samples = &one_sample;
	series.n_samples = 1;
	request.series = &one_series;
	request.n_series = 1;
	push_v1__request__pack_to_buffer(&request, &to->base);
}

int push_v1_make(const struct push_v1 *from, struct proto_bytes *to)
{
	struct labels labels = {.items = calloc(from->nr_labels + OWN_LABELS, sizeof(*labels.items)),
				.pointers = calloc(from->nr_labels + OWN_LABELS, sizeof(*labels.pointers))};

	labels.no_memory = !labels.items || !labels.pointers;
	if (!labels.no_memory) {
		add_label(&labels, "__name__", from->name);
		add_label(&labels, "service_name", from->service);
		add_label(&labels, "host", from->host);
		for (size_t i = 0; i < from->nr_labels; i++)
			add_label(&labels, from->labels[i].key, from->labels[i].value);
	}
	if (!labels.no_memory)
		pack(from, &labels, to);
	free_labels(&labels);
	return labels.no_memory || to->no_memory ? -ENOMEM : 0;
}
