// SPDX-License-Identifier: Apache-2.0
/* Sends states to the service manager's socket. */
#include "agent/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Notifications in each interval of the watchdog. */
#define TOLD_IN_INTERVAL 3

/* Returns the interval of WATCHDOG_USEC in seconds; 0: no watchdog, or that of another process. */
static double watchdog_interval(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!interval || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return (double)strtoull(interval, NULL, 10) / 1e6;
}

int agent_notify_open(struct agent_notify *notify, struct error *error)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = path ? strlen(path) : 0;
	int fd, err;

	*notify = (struct agent_notify){0};
	if (!size)
		return 0;
	if ((*path != '/' && *path != '@') || size >= sizeof(address.sun_path))
		return error_set(error, -EINVAL, "NOTIFY_SOCKET=%s is no socket of a service manager", path);
	memcpy(address.sun_path, path, size);
	/* The name of an abstract socket begins with NUL. */
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size))) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return error_set(error, err, "cannot reach the service manager at NOTIFY_SOCKET=%s: %s", path,
				 strerror(-err));
	}
	notify->fd = fd;
	notify->watchdog_s = watchdog_interval();
	return 0;
}

void agent_notify_tell(const struct agent_notify *notify, const char *state)
{
	/* If it fails, the manager is gone or busy, and finds out by itself. */
	if (notify->fd && send(notify->fd, state, strlen(state), MSG_NOSIGNAL) < 0)
		return;
}

void agent_notify_tell_alive(struct agent_notify *notify)
{
	double now = clock_s(CLOCK_MONOTONIC);

	if (!notify->watchdog_s || now < notify->next)
		return;
	notify->next = now + notify->watchdog_s / TOLD_IN_INTERVAL;
	agent_notify_tell(notify, "WATCHDOG=1");
}

void agent_notify_close(struct agent_notify *notify)
{
	if (notify->fd)
		close(notify->fd);
	*notify = (struct agent_notify){0};
}
