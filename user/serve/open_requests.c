// SPDX-License-Identifier: Apache-2.0
/* The requests that wait for an answer, as the side that samples knows them. */
#include "serve/internal.h"

bool serve_open_close(struct serve_open *open, uint64_t id)
{
	for (size_t i = 0; i < open->count; i++) {
		if (open->ids[i] == id) {
			open->ids[i] = open->ids[--open->count];
			return true;
		}
	}
	return false;
}

static bool is_open(const struct serve_open *open, uint64_t id)
{
	for (size_t i = 0; i < open->count; i++) {
		if (open->ids[i] == id)
			return true;
	}
	return false;
}

static bool is_request(const struct serve_open *open, const struct serve_message *message)
{
	const bool is_profile = message->what <= SERVE_GIL;

	return message->what < SERVE_WHATS && message->seconds <= open->seconds_most &&
	       is_profile == (message->seconds > 0) && open->count < SERVE_WAITING_MAX && !is_open(open, message->id);
}

bool serve_open_take(struct serve_open *open, const struct serve_message *message, struct serve_request *request)
{
	*request = (struct serve_request){.id = message->id};
	if (message->kind == SERVE_MESSAGE_CANCEL) {
		request->cancelled = true;
		return serve_open_close(open, message->id);
	}
	if (message->kind != SERVE_MESSAGE_REQUEST || !is_request(open, message))
		return false;
	open->ids[open->count++] = message->id;
	request->what = (enum serve_what)message->what;
	request->seconds = message->seconds;
	return true;
}

bool serve_open_cancel_one(struct serve_open *open, struct serve_request *request)
{
	if (!open->count)
		return false;
	*request = (struct serve_request){.id = open->ids[--open->count], .cancelled = true};
	return true;
}
