// SPDX-License-Identifier: Apache-2.0
/* Functions and types that the .c files of serve share. */
#ifndef SERVE_INTERNAL_H
#define SERVE_INTERNAL_H

#include <microhttpd.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "serve/serve.h"

/* Most requests that wait for the other process. */
#define SERVE_WAITING_MAX 32

/* X(NAME) for each function that is called, which is MHD_NAME in the library. */
#define SERVE_MICROHTTPD_FUNCTIONS(X)                                                                                  \
	X(start_daemon)                                                                                                \
	X(run)                                                                                                         \
	X(get_timeout)                                                                                                 \
	X(get_daemon_info)                                                                                             \
	X(get_connection_info)                                                                                         \
	X(lookup_connection_value)                                                                                     \
	X(create_response_from_buffer)                                                                                 \
	X(create_response_from_callback)                                                                               \
	X(create_response_from_fd64)                                                                                   \
	X(add_response_header)                                                                                         \
	X(queue_response)                                                                                              \
	X(destroy_response)                                                                                            \
	X(suspend_connection)                                                                                          \
	X(resume_connection)

/* Typed by the library's header, and found in the library. */
struct serve_microhttpd {
#define SERVE_MICROHTTPD_MEMBER(name) __typeof__(&MHD_##name) name;
	SERVE_MICROHTTPD_FUNCTIONS(SERVE_MICROHTTPD_MEMBER)
#undef SERVE_MICROHTTPD_MEMBER
};

/* Loads libmicrohttpd, if it is not linked in. Returns 0, or -ENOSYS with a sentence in *error. */
int serve_microhttpd_load(struct serve_microhttpd *mhd, struct error *error);

/* A message to the process that samples. */
enum serve_kind {
	SERVE_MESSAGE_REQUEST,
	SERVE_MESSAGE_CANCEL,
	SERVE_MESSAGE_CRASH, /* by the keeper: requests that were not answered are lost */
};

struct serve_message {
	uint64_t id;
	uint32_t kind, what, seconds, pad;
};

/* An answer to the process that serves; the body is in the file whose descriptor comes along. */
struct serve_reply {
	uint64_t id, size;
	uint32_t status, pad;
	char content_type[SERVE_CONTENT_TYPE_MAX];
};

/* Shared by the processes. What the process that serves writes is not trusted: it is only counted. */
struct serve_shared {
	_Atomic uint64_t requests, answered, wrong, denied, unavailable, left, cut, restarts;
	_Atomic uint64_t cpu_ns, ended_cpu_ns; /* of the process, and of those before it that crashed */
	/* The last argument of serve_tell_well(), and when it was called. */
	_Atomic uint64_t well_ns; /* CLOCK_MONOTONIC; written by the process that samples */
	atomic_bool is_ready;
};

/* listen.c: the socket that listens. */
struct serve_listener {
	int fd;                                 /* -1: none */
	bool is_unix, is_loopback;              /* neither: others than this machine's programs may connect */
	char address[sizeof("unix:") + 4 * 27]; /* as of serve_address() */
};

/* Checks the text of an address, without looking at what is there. Returns as serve_listen(). */
int serve_check_address(const char *text, struct error *error);
/* Returns 0, or negative errno with a sentence in *error. */
int serve_listen(const struct serve_options *options, struct serve_listener *listener, struct error *error);

/* token.c */

/*
 * Reads the first line of the file: *token, which the caller frees with serve_token_free(); NULL if path is. Returns 0,
 * or negative errno with a sentence in *error.
 */
int serve_token_read(const char *path, char **token, struct error *error);
/* Accepts NULL. */
void serve_token_free(char *token);
/*
 * Returns whether the header's value is that of the token: "Bearer TOKEN". header: NULL: there is no such header. The
 * time that this takes does not depend on how much of the token is right.
 */
bool serve_token_matches(const char *token, const char *header);

/* request.c: how a request is answered: at once, or by the process that samples. */
struct serve_rules {
	const char *token;     /* NULL: none is asked for */
	bool only_local_hosts; /* the header Host has to be an address, or localhost */
	unsigned seconds_most;
};

/* The parts of a request that matter; NULL: it does not have this part. */
struct serve_question {
	const char *method, *path, *seconds, *authorization, *host;
	/* What the process that samples has said of itself, and how long ago. */
	double silent_s;
	bool is_ready;
};

struct serve_verdict {
	unsigned status; /* 0: the other process answers it, as what and seconds say */
	enum serve_what what;
	unsigned seconds;
	char text[256]; /* with the status: a sentence, "" for none */
};

/* Returns whether this method is one that is served: GET or HEAD. */
bool serve_method_is_known(const char *method);
void serve_judge(const struct serve_rules *rules, const struct serve_question *question, struct serve_verdict *verdict);

/* clients.c: the connections: the state of each, and the deadline of that state. */
#define SERVE_CLIENTS_MAX 64

enum serve_client_state {
	SERVE_CLIENT_NONE,     /* a free row */
	SERVE_CLIENT_READS,    /* its request is being read */
	SERVE_CLIENT_WAITS,    /* for the other process */
	SERVE_CLIENT_ANSWERED, /* its answer is there */
	SERVE_CLIENT_SENDS,    /* its answer is being sent */
	SERVE_CLIENT_CUT,      /* its connection is closed as soon as libmicrohttpd sees that */
};

struct serve_client {
	enum serve_client_state state;
	struct MHD_Connection *connection;
	int fd;
	double since_s, until_s; /* CLOCK_MONOTONIC; since: begin of the connection; until: deadline of the state */
	uint64_t id;             /* while it waits */
	/* Once it is answered: the reply of the other process with the file of its body, or a sentence (body: -1). */
	struct serve_reply reply;
	int body;
	const char *apology;
};

struct serve_clients {
	struct serve_client rows[SERVE_CLIENTS_MAX];
	size_t count, waiting;
	uint64_t sending_bytes; /* of bodies */
	struct serve_shared *shared;
};

void serve_clients_init(struct serve_clients *clients, struct serve_shared *shared);
/*
 * Adds a connection; if few places are left, the oldest other one that does not wait for the other process is cut.
 * Returns NULL if there is no place.
 */
struct serve_client *serve_clients_add(struct serve_clients *clients, struct MHD_Connection *connection, int fd,
				       double now_s);
void serve_clients_remove(struct serve_clients *clients, struct serve_client *client);
/* Changes the state of a client. */
void serve_client_set(struct serve_clients *clients, struct serve_client *client, enum serve_client_state state,
		      double until_s);
/* Ends its connection. */
void serve_client_cut(struct serve_clients *clients, struct serve_client *client);
/* Returns the client that waits for the answer of this id, or NULL. */
struct serve_client *serve_clients_find(struct serve_clients *clients, uint64_t id);
/* Returns the earliest deadline of a client's state; infinity without clients. */
double serve_clients_next_s(const struct serve_clients *clients);

/* open_requests.c: the requests that wait for an answer, as the side that samples knows them. */
struct serve_open {
	uint64_t ids[SERVE_WAITING_MAX];
	size_t count;
	unsigned seconds_most;
};

/*
 * Takes a message of SERVE_MESSAGE_REQUEST or SERVE_MESSAGE_CANCEL, which may hold anything: the process that sent it
 * is not trusted. Returns whether *request is something to tell.
 */
bool serve_open_take(struct serve_open *open, const struct serve_message *message, struct serve_request *request);
/* Forgets a request that is answered. Returns whether it was open. */
bool serve_open_close(struct serve_open *open, uint64_t id);
/* Forgets any request, as cancelled. Returns whether there was one. */
bool serve_open_cancel_one(struct serve_open *open, struct serve_request *request);

/* What the processes that serve begin with. */
struct serve_process {
	int socket; /* to the process that samples */
	struct serve_listener listener;
	struct serve_shared *shared;
	struct serve_microhttpd mhd;
	struct serve_rules rules;
	uint32_t generation; /* of the process that serves: 0, and one more after each crash */
};

/* server_keeper.c: forks the process that serves, and forks it again when it crashes. */

/* A child_main of struct serve_process. */
void serve_keep(int socket, void *state);

/* server.c: the process that serves. */

/* Prepares libmicrohttpd. Returns 0, or negative errno with a sentence in *error. */
int serve_server_prepare(struct serve_process *process, struct error *error);
/* Serves until the process that samples has ended, or its socket was closed. */
void serve_server_run(void) __attribute__((noreturn));

#endif
