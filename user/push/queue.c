// SPDX-License-Identifier: Apache-2.0
/* Bodies that wait in memory, the oldest first. */
#include <stdlib.h>

#include "push/internal.h"

void push_body_free(struct push_body *body)
{
	if (body)
		free(body->bytes);
	free(body);
}

void push_queue_init(struct push_queue *queue)
{
	*queue = (struct push_queue){.first = NULL};
	queue->last = &queue->first;
}

void push_queue_append(struct push_queue *queue, struct push_body *body)
{
	body->next = NULL;
	*queue->last = body;
	queue->last = &body->next;
	queue->count++;
	queue->bytes += body->message.size;
}

struct push_body *push_queue_take(struct push_queue *queue)
{
	struct push_body *body = queue->first;

	if (!body)
		return NULL;
	queue->first = body->next;
	if (!queue->first)
		queue->last = &queue->first;
	queue->count--;
	queue->bytes -= body->message.size;
	return body;
}
