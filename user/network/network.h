// SPDX-License-Identifier: Apache-2.0
/* What processes that have the network, and nothing else, have in common. */
#ifndef NETWORK_NETWORK_H
#define NETWORK_NETWORK_H

#include <stddef.h>

#include "base/error.h"
#include "network/curl.h"

/* Checks a URL that somebody gave. Returns 0, or -EINVAL with a sentence in *error. */
int network_check_url(const char *url, struct error *error);

/*
 * Makes the calling process, which was just forked and has one thread, one of a user without rights that has stderr,
 * for messages, and the kept descriptors, which are sorted; signals that a terminal or a service manager sends to all
 * processes do not end it. Loads libcurl. What is still to do is rights_drop(). Returns 0, or negative errno with a
 * sentence in *error: -ENOSYS if this machine has no libcurl.
 */
int network_begin(int *kept, size_t count, struct network_curl *curl, struct error *error);

/* A library that the binary holds. */
struct network_library {
	const char *name; /* of Debian's source package */
	const char *version;
};
#define NETWORK_LIBRARIES_MAX 3

/* Tells the libraries for the network that are linked in, NETWORK_LIBRARIES_MAX at most. Returns their number. */
size_t network_linked(struct network_library *libraries);

#endif
