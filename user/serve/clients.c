// SPDX-License-Identifier: Apache-2.0
/* The connections: the state of each, and the deadline of that state. */
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/internal.h"

/* Places that are kept free, so that slow clients keep nobody out. */
#define PLACES_FREE 8

void serve_clients_init(struct serve_clients *clients, struct serve_shared *shared)
{
	*clients = (struct serve_clients){.shared = shared};
}

static bool may_be_cut(const struct serve_client *client)
{
	return client->state == SERVE_CLIENT_READS || client->state == SERVE_CLIENT_SENDS;
}

static void cut_oldest(struct serve_clients *clients)
{
	struct serve_client *oldest = NULL;

	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		struct serve_client *client = &clients->rows[i];

		if (may_be_cut(client) && (!oldest || client->since_s < oldest->since_s))
			oldest = client;
	}
	if (oldest)
		serve_client_cut(clients, oldest);
}

struct serve_client *serve_clients_add(struct serve_clients *clients, struct MHD_Connection *connection, int fd,
				       double now_s)
{
	if (clients->count >= SERVE_CLIENTS_MAX - PLACES_FREE)
		cut_oldest(clients);
	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		struct serve_client *client = &clients->rows[i];

		if (client->state != SERVE_CLIENT_NONE)
			continue;
		*client = (struct serve_client){.connection = connection, .fd = fd, .since_s = now_s, .body = -1};
		clients->count++;
		return client;
	}
	return NULL;
}

void serve_clients_remove(struct serve_clients *clients, struct serve_client *client)
{
	if (client->body >= 0)
		close(client->body);
	serve_client_set(clients, client, SERVE_CLIENT_NONE, 0);
	clients->count--;
}

static bool has_body(enum serve_client_state state)
{
	return state == SERVE_CLIENT_ANSWERED || state == SERVE_CLIENT_SENDS;
}

void serve_client_set(struct serve_clients *clients, struct serve_client *client, enum serve_client_state state,
		      double until_s)
{
	clients->waiting += (state == SERVE_CLIENT_WAITS) - (client->state == SERVE_CLIENT_WAITS);
	if (has_body(state) && !has_body(client->state))
		clients->sending_bytes += client->reply.size;
	if (!has_body(state) && has_body(client->state))
		clients->sending_bytes -= client->reply.size;
	client->state = state;
	client->until_s = until_s;
}

void serve_client_cut(struct serve_clients *clients, struct serve_client *client)
{
	clients->shared->cut++;
	shutdown(client->fd, SHUT_RDWR);
	serve_client_set(clients, client, SERVE_CLIENT_CUT, INFINITY);
}

struct serve_client *serve_clients_find(struct serve_clients *clients, uint64_t id)
{
	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		if (clients->rows[i].state == SERVE_CLIENT_WAITS && clients->rows[i].id == id)
			return &clients->rows[i];
	}
	return NULL;
}

double serve_clients_next_s(const struct serve_clients *clients)
{
	double next = INFINITY;

	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		if (clients->rows[i].state != SERVE_CLIENT_NONE && clients->rows[i].until_s < next)
			next = clients->rows[i].until_s;
	}
	return next;
}
