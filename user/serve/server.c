// SPDX-License-Identifier: Apache-2.0
/*
 * The process that serves. libmicrohttpd reads requests and sends answers; a request that the other process has to
 * answer is suspended meanwhile, and its connection watched here. Each connection has one request, and a time for
 * each of its states.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/message.h"
#include "serve/internal.h"

/* Seconds for reading a request, and for sending an answer: of SERVE_BODY_MAX at half a MiB a second. */
#define READ_S 10.0
#define SEND_S 128.0
/* Seconds in which answers are sent after the other process has ended. */
#define END_S 1.0
/* Bytes of memory of a connection, into which the request's and the answer's headers have to fit. */
#define CONNECTION_MEMORY 16384
/* Until a message is asked for once more for which there was no memory. */
#define MEMORY_WAIT_MS 100
/* Most connections of one address of a network: others have places, too. */
#define CONNECTIONS_OF_ADDRESS 16

static struct server {
	const struct serve_process *process;
	const struct serve_microhttpd *mhd;
	struct serve_shared *shared;
	struct MHD_Daemon *daemon;
	int epoll;
	struct serve_clients clients;
	uint64_t next_id;
	bool closed; /* a connection was */
	bool ends;
	double end_s;
} server;

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

static struct serve_client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		server.mhd->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_connection(void *unused, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;
	struct serve_client *client;

	(void)unused;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			serve_clients_remove(&server.clients, *context);
		*context = NULL;
		server.closed = true;
		return;
	}
	info = server.mhd->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	client = serve_clients_add(&server.clients, connection, info->connect_fd, now_s());
	if (client)
		serve_client_set(&server.clients, client, SERVE_CLIENT_READS, now_s() + READ_S);
	*context = client;
}

/* Counts an answer that is sent, whichever process gave it: each request has one. */
static void count_status(unsigned status)
{
	if (status == MHD_HTTP_OK)
		server.shared->answered++;
	else if (status == MHD_HTTP_UNAUTHORIZED)
		server.shared->denied++;
	else if (status >= MHD_HTTP_INTERNAL_SERVER_ERROR)
		server.shared->unavailable++;
	else if (status >= MHD_HTTP_BAD_REQUEST)
		server.shared->wrong++;
}

/* Has the response sent, and gives it up. NULL: there was no memory for it. */
static enum MHD_Result send_response(struct MHD_Connection *connection, struct MHD_Response *response, unsigned status,
				     const char *content_type)
{
	const struct serve_microhttpd *mhd = server.mhd;
	struct serve_client *client = client_of(connection);
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (mhd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) &&
	    mhd->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") &&
	    mhd->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
	    mhd->add_response_header(response, "X-Content-Type-Options", "nosniff") &&
	    (status != MHD_HTTP_UNAUTHORIZED ||
	     mhd->add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer")) &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     mhd->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD")))
		result = mhd->queue_response(connection, status, response);
	mhd->destroy_response(response);
	if (result) {
		count_status(status);
		serve_client_set(&server.clients, client, SERVE_CLIENT_SENDS, now_s() + SEND_S);
	}
	return result;
}

/* Answers with a sentence. */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
	char line[sizeof(((struct serve_verdict *)NULL)->text) + 1];
	int length = snprintf(line, sizeof(line), "%s\n", text);

	return send_response(connection,
			     server.mhd->create_response_from_buffer((size_t)length, line, MHD_RESPMEM_MUST_COPY),
			     status, "text/plain; charset=utf-8");
}

static ssize_t read_nothing(void *unused, uint64_t at, char *buffer, size_t room)
{
	(void)unused;
	(void)at;
	(void)buffer;
	(void)room;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Answers HEAD of a profile, whose size nobody knows before it was taken. */
static enum MHD_Result send_head(struct MHD_Connection *connection, unsigned status)
{
	return send_response(connection,
			     server.mhd->create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL),
			     status, "application/octet-stream");
}

/* Asks the other process. Returns 0 or negative errno. */
static int ask(const struct serve_client *client, const struct serve_verdict *verdict)
{
	const struct serve_message message = {
		.kind = SERVE_MESSAGE_REQUEST, .id = client->id, .what = verdict->what, .seconds = verdict->seconds};

	return send(server.process->socket, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(message)
		       ? 0
		       : -errno;
}

static enum MHD_Result hand_on(struct serve_client *client, const struct serve_verdict *verdict)
{
	double patience = verdict->seconds ? verdict->seconds + SERVE_SLACK_S : SERVE_QUICK_S;

	if (server.clients.waiting == SERVE_WAITING_MAX)
		return send_text(client->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "Too many requests wait for pybpf already; try again later.");
	client->id = server.next_id++;
	if (server.ends || ask(client, verdict))
		return send_text(client->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "pybpf does not take requests now; try again later.");
	serve_client_set(&server.clients, client, SERVE_CLIENT_WAITS, now_s() + patience);
	server.mhd->suspend_connection(client->connection);
	return MHD_YES;
}

static enum MHD_Result judge(struct serve_client *client, const char *path, const char *method)
{
	const struct serve_microhttpd *mhd = server.mhd;
	struct MHD_Connection *connection = client->connection;
	const struct serve_question question = {
		.method = method,
		.path = path,
		.seconds = mhd->lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "seconds"),
		.authorization =
			mhd->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
		.host = mhd->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
		.silent_s = server.ends ? INFINITY : now_s() - (double)server.shared->well_ns / 1e9,
		.is_ready = server.shared->is_ready,
	};
	struct serve_verdict verdict;

	serve_judge(&server.process->rules, &question, &verdict);
	if (!verdict.status)
		return hand_on(client, &verdict);
	return *verdict.text ? send_text(connection, verdict.status, verdict.text)
			     : send_head(connection, verdict.status);
}

/* Sends what the other process has answered. */
static enum MHD_Result send_answer(struct serve_client *client)
{
	struct MHD_Response *response;
	int body = client->body;

	if (body < 0)
		return send_text(client->connection, MHD_HTTP_SERVICE_UNAVAILABLE, client->apology);
	/* The response closes it. */
	client->body = -1;
	response = server.mhd->create_response_from_fd64(client->reply.size, body);
	if (!response)
		close(body);
	return send_response(client->connection, response, client->reply.status, client->reply.content_type);
}

/*
 * Is called when the headers of a request are there, with *context NULL; then when the request is whole, or a part of
 * its body is there; and once more after a suspended connection was resumed.
 */
static enum MHD_Result on_request(void *unused, struct MHD_Connection *connection, const char *path, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **context)
{
	struct serve_client *client = client_of(connection);

	(void)unused;
	(void)version;
	(void)upload;
	/* Without a body, and not while the connection ends. */
	if (!client || *upload_size || (client->state != SERVE_CLIENT_READS && client->state != SERVE_CLIENT_ANSWERED))
		return MHD_NO;
	if (client->state == SERVE_CLIENT_ANSWERED)
		return send_answer(client);
	if (!*context && serve_method_is_known(method)) {
		*context = client;
		return MHD_YES;
	}
	server.shared->requests++;
	if (!serve_method_is_known(method))
		return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD are served here.");
	return judge(client, path, method);
}

/* Lets libmicrohttpd go on with a client that waited. apology: NULL if the other process has answered. */
static void resume(struct serve_client *client, const char *apology)
{
	client->apology = apology;
	serve_client_set(&server.clients, client, SERVE_CLIENT_ANSWERED, INFINITY);
	server.mhd->resume_connection(client->connection);
}

/* Tells the other process that nobody waits for its answer. */
static void cancel(const struct serve_client *client)
{
	const struct serve_message message = {.kind = SERVE_MESSAGE_CANCEL, .id = client->id};

	/* If the socket's queue is full, the other process sends an answer that nobody reads. */
	send(server.process->socket, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The client has gone: lets libmicrohttpd end its connection. */
static void leave(struct serve_client *client)
{
	cancel(client);
	server.shared->left++;
	serve_client_set(&server.clients, client, SERVE_CLIENT_CUT, INFINITY);
	server.mhd->resume_connection(client->connection);
}

/* The other process does not answer any more: its clients get an error. */
static void begin_to_end(void)
{
	server.ends = true;
	server.end_s = now_s() + END_S;
	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		if (server.clients.rows[i].state == SERVE_CLIENT_WAITS)
			resume(&server.clients.rows[i], "pybpf ends.");
	}
}

/*
 * Takes over the body's file if the client still waits and there is room for it. body: -1: there was no descriptor
 * left for it, or no memory.
 */
static void take_reply(struct serve_reply *reply, int body)
{
	struct serve_client *client = serve_clients_find(&server.clients, reply->id);

	reply->content_type[sizeof(reply->content_type) - 1] = '\0';
	if (!client) {
		if (body >= 0)
			close(body);
	} else if (body < 0) {
		resume(client, "There is no memory for the answer; try again later.");
	} else if (reply->size > SERVE_BODY_MAX - server.clients.sending_bytes) {
		close(body);
		resume(client, "Too much is being sent to slow clients already; try again later.");
	} else {
		client->reply = *reply;
		client->body = body;
		resume(client, NULL);
	}
}

/* Receives one message. Returns whether there was one. */
static bool receive(void)
{
	static struct serve_reply reply;
	int body;
	ssize_t n = child_receive(server.process->socket, &reply, sizeof(reply), &body, 1, MSG_DONTWAIT);

	if (n == sizeof(reply)) {
		take_reply(&reply, body);
		return true;
	}
	if (!n || n == -ECONNRESET)
		begin_to_end();
	else if (n != -EAGAIN)
		/* The kernel has no memory: the message stays where it is. */
		poll(NULL, 0, MEMORY_WAIT_MS);
	return false;
}

static void tend_clients(void)
{
	double now = now_s();

	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		struct serve_client *client = &server.clients.rows[i];

		if (client->state == SERVE_CLIENT_NONE || client->until_s > now)
			continue;
		if (client->state == SERVE_CLIENT_WAITS) {
			cancel(client);
			resume(client, "pybpf did not answer in time; try again later.");
		} else {
			serve_client_cut(&server.clients, client);
		}
	}
}

static int wait_ms(void)
{
	unsigned MHD_LONG_LONG ms;
	double until = serve_clients_next_s(&server.clients), left;

	if (server.ends && server.end_s < until)
		until = server.end_s;
	left = ceil((until - now_s()) * 1000);
	if (server.mhd->get_timeout(server.daemon, &ms) && (double)ms < left)
		left = (double)ms;
	/* -1: without an end. */
	return left > 1e6 ? -1 : left > 0 ? (int)left : 0;
}

/* Waits for the network, the other process, or a client that goes away. */
static void wait_for_something(void)
{
	struct pollfd fds[2 + SERVE_WAITING_MAX] = {
		{.fd = server.epoll, .events = POLLIN},
		{.fd = server.ends ? -1 : server.process->socket, .events = POLLIN}};
	struct serve_client *of[2 + SERVE_WAITING_MAX] = {NULL};
	nfds_t count = 2;

	for (size_t i = 0; i < SERVE_CLIENTS_MAX; i++) {
		if (server.clients.rows[i].state != SERVE_CLIENT_WAITS)
			continue;
		fds[count] = (struct pollfd){.fd = server.clients.rows[i].fd, .events = POLLRDHUP};
		of[count++] = &server.clients.rows[i];
	}
	if (poll(fds, count, wait_ms()) <= 0)
		return;
	for (nfds_t i = 2; i < count; i++) {
		if (fds[i].revents)
			leave(of[i]);
	}
	if (fds[1].revents) {
		while (receive())
			;
	}
}

int serve_server_prepare(struct serve_process *process, struct error *error)
{
	const bool is_network = !process->listener.is_unix && !process->listener.is_loopback;
	const union MHD_DaemonInfo *info;

	server = (struct server){
		.process = process,
		.mhd = &process->mhd,
		.shared = process->shared,
		/* Answers to requests of a process that has crashed find no client. */
		.next_id = (uint64_t)process->generation << 32 | 1,
	};
	serve_clients_init(&server.clients, process->shared);
	server.daemon = process->mhd.start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, NULL, MHD_OPTION_LISTEN_SOCKET,
		process->listener.fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVE_CLIENTS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, is_network ? (unsigned)CONNECTIONS_OF_ADDRESS : 0,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	info = server.daemon ? process->mhd.get_daemon_info(server.daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return error_set(error, -EIO, "cannot serve at %s: libmicrohttpd does not start",
				 process->listener.address);
	server.epoll = info->epoll_fd;
	return 0;
}

/* Lets libmicrohttpd do what it can do without waiting. */
static void run_daemon(void)
{
	do {
		server.closed = false;
		if (!server.mhd->run(server.daemon)) {
			log_error("nothing is served any more: libmicrohttpd has failed");
			_exit(1);
		}
		/* Where its connections were at their limit, it listens again in its next turn only. */
	} while (server.closed);
}

void serve_server_run(void)
{
	while (true) {
		tend_clients();
		/* After connections were resumed, which neither its descriptor nor its timeout tells. */
		run_daemon();
		if (server.ends && (!server.clients.count || now_s() >= server.end_s))
			_exit(0);
		server.shared->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		wait_for_something();
	}
}
