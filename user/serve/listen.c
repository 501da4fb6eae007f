// SPDX-License-Identifier: Apache-2.0
/* Opens the socket that listens: of TCP, or a Unix socket with a mode. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "output/file/place.h"
#include "serve/internal.h"

/* Clients that have not been accepted yet. */
#define BACKLOG 256

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/* Splits ADDRESS:PORT in place: [::1]:6060, 127.0.0.1:6060, localhost:6060, :6060. Returns whether it is that. */
static bool split(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':');

	if (!colon)
		return false;
	*colon = '\0';
	*port = colon + 1;
	*host = text;
	if (*text != '[')
		return true;
	if (colon == text || colon[-1] != ']')
		return false;
	colon[-1] = '\0';
	*host = text + 1;
	return true;
}

static bool parse_port(const char *text, in_port_t *port)
{
	unsigned long value;
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > 5 || text[digits])
		return false;
	value = strtoul(text, NULL, 10);
	*port = htons((in_port_t)value);
	return value <= UINT16_MAX;
}

/* Returns the length of the address, 0 if the text does not hold one. */
static socklen_t parse(const char *text, union address *address)
{
	char copy[INET6_ADDRSTRLEN + 16], *host, *port;
	bool in_brackets = *text == '[';
	in_port_t number;

	memset(address, 0, sizeof(*address));
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy) || !split(copy, &host, &port) ||
	    !parse_port(port, &number))
		return 0;
	if (!in_brackets && (!*host || strcasecmp(host, "localhost") == 0))
		host = "127.0.0.1";
	if (!in_brackets && inet_pton(AF_INET, host, &address->in.sin_addr) == 1) {
		address->in.sin_family = AF_INET;
		address->in.sin_port = number;
		return sizeof(address->in);
	}
	if (in_brackets && inet_pton(AF_INET6, host, &address->in6.sin6_addr) == 1) {
		address->in6.sin6_family = AF_INET6;
		address->in6.sin6_port = number;
		return sizeof(address->in6);
	}
	return 0;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
	return ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Writes where it really listens. Returns 0 or negative errno. */
static int write_address(struct serve_listener *listener)
{
	union address address = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(address);
	char text[INET6_ADDRSTRLEN];
	bool is_6;

	if (getsockname(listener->fd, &address.any, &length))
		return -errno;
	is_6 = address.any.sa_family == AF_INET6;
	if (!inet_ntop(address.any.sa_family, is_6 ? (void *)&address.in6.sin6_addr : (void *)&address.in.sin_addr,
		       text, sizeof(text)))
		return -errno;
	snprintf(listener->address, sizeof(listener->address), is_6 ? "http://[%s]:%u" : "http://%s:%u", text,
		 ntohs(is_6 ? address.in6.sin6_port : address.in.sin_port));
	return 0;
}

static int open_socket(struct serve_listener *listener, int family)
{
	listener->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return listener->fd < 0 ? -errno : 0;
}

static int refuse_address(const char *text, struct error *error)
{
	return error_set(
		error, -EINVAL,
		"cannot listen on %s: write ADDRESS:PORT with an address in numbers, such as 127.0.0.1:6060 or "
		"[::1]:6060, or a path with a slash for a Unix socket",
		text);
}

static int refuse_long_path(const char *path, struct error *error)
{
	return error_set(error, -ENAMETOOLONG, "cannot listen on %s: the path of a socket has at most %zu bytes", path,
			 sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
}

int serve_check_address(const char *text, struct error *error)
{
	union address address;

	if (!strchr(text, '/'))
		return parse(text, &address) ? 0 : refuse_address(text, error);
	return strlen(text) < sizeof(address.un.sun_path) ? 0 : refuse_long_path(text, error);
}

static int listen_tcp(const char *text, struct serve_listener *listener, struct error *error)
{
	union address address;
	socklen_t length = parse(text, &address);
	const int on = 1;
	int err;

	if (!length)
		return refuse_address(text, error);
	err = open_socket(listener, address.any.sa_family);
	if (!err && (setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		     bind(listener->fd, &address.any, length) || listen(listener->fd, BACKLOG)))
		err = -errno;
	listener->is_loopback = is_loopback(&address);
	err = err ?: write_address(listener);
	if (err == -EADDRINUSE)
		return error_set(error, err,
				 "cannot listen on %s: another program does (`ss -ltnp` shows which); choose another "
				 "port",
				 text);
	return err ? error_set(error, err, "cannot listen on %s: %s", text, strerror(-err)) : 0;
}

/* A folder in which nobody but its owner, root or the caller, can put a socket in the place of another. */
static int check_folder(const struct output_place *place, const char *path, struct error *error)
{
	const struct stat *status = &place->folder_status;

	if (place->planted || (status->st_uid && status->st_uid != geteuid()))
		return error_set(error, -EACCES,
				 "cannot listen on %s: its folder is not root's or pybpf's own, so that others could "
				 "answer in its place",
				 path);
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return error_set(error, -EACCES,
				 "cannot listen on %s: others than the owner may write to its folder; give it a folder "
				 "of its own, such as /run/pybpf",
				 path);
	return 0;
}

/* Removes a socket that an earlier process has left. */
static int remove_old(const struct output_place *place, const union address *address, const char *path,
		      struct error *error)
{
	int fd, err = 0;

	if (place->there < 0)
		return 0;
	if (!S_ISSOCK(place->status.st_mode))
		return error_set(
			error, -EEXIST,
			"cannot listen on %s: the file exists and is not a socket; remove it, or choose another path",
			path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
	if (!connect(fd, &address->any, sizeof(address->un)) || errno != ECONNREFUSED)
		err = error_set(error, -EADDRINUSE,
				"cannot listen on %s: another program does; end it, or choose another path", path);
	else if (unlinkat(place->folder, place->name, 0))
		err = error_set(error, -errno, "cannot remove the old socket %s: %s", path, strerror(errno));
	close(fd);
	return err;
}

/* Makes the socket, which has its mode from the first moment. */
static int bind_unix(struct serve_listener *listener, const union address *address, unsigned mode)
{
	int err = open_socket(listener, AF_UNIX);
	mode_t before;

	if (err)
		return err;
	before = umask(0777 & ~mode);
	if (bind(listener->fd, &address->any, sizeof(address->un)))
		err = -errno;
	umask(before);
	return err ?: listen(listener->fd, BACKLOG) ? -errno : 0;
}

static int listen_unix(const char *path, unsigned mode, struct serve_listener *listener, struct error *error)
{
	union address address = {.un = {.sun_family = AF_UNIX}};
	struct output_place place;
	struct caller caller;
	struct error why;
	int err;

	/* Longer paths could be listened on, but clients could not connect to them. */
	if (strlen(path) >= sizeof(address.un.sun_path))
		return refuse_long_path(path, error);
	caller_find(&caller);
	err = output_place_find(path, &caller, &place, &why);
	if (err)
		return error_set(error, err, "cannot listen on %s: %s", path, why.text);
	if (place.folder < 0 || !*place.name)
		err = error_set(error, -EINVAL, "cannot listen on %s: it is not the path of a socket", path);
	/* In the folder that was checked, whatever becomes of the path. */
	if (!err && snprintf(address.un.sun_path, sizeof(address.un.sun_path), "/proc/self/fd/%d/%s", place.folder,
			     place.name) >= (int)sizeof(address.un.sun_path))
		err = error_set(error, -ENAMETOOLONG, "cannot listen on %s: the name of the socket is too long", path);
	err = err ?: check_folder(&place, path, error);
	err = err ?: remove_old(&place, &address, path, error);
	if (!err) {
		err = bind_unix(listener, &address, mode ?: SERVE_SOCKET_MODE_DEFAULT);
		if (err)
			error_set(error, err, "cannot listen on %s: %s", path, strerror(-err));
	}
	output_place_close(&place);
	listener->is_unix = true;
	snprintf(listener->address, sizeof(listener->address), "unix:%s", path);
	return err;
}

int serve_listen(const struct serve_options *options, struct serve_listener *listener, struct error *error)
{
	int err;

	*listener = (struct serve_listener){.fd = -1};
	if (strchr(options->listen, '/'))
		err = listen_unix(options->listen, options->socket_mode, listener, error);
	else
		err = listen_tcp(options->listen, listener, error);
	if (err && listener->fd >= 0) {
		close(listener->fd);
		listener->fd = -1;
	}
	return err;
}
