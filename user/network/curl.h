// SPDX-License-Identifier: Apache-2.0
/* libcurl, for processes that have the network. */
#ifndef NETWORK_CURL_H
#define NETWORK_CURL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/error.h"

/* X(NAME) for each function that is called, which is curl_NAME in the library. */
#define NETWORK_CURL_FUNCTIONS(X)                                                                                      \
	X(global_init)                                                                                                 \
	X(easy_init)                                                                                                   \
	X(easy_cleanup)                                                                                                \
	X(easy_setopt)                                                                                                 \
	X(easy_getinfo)                                                                                                \
	X(easy_strerror)                                                                                               \
	X(slist_append)                                                                                                \
	X(slist_free_all)                                                                                              \
	X(multi_init)                                                                                                  \
	X(multi_add_handle)                                                                                            \
	X(multi_remove_handle)                                                                                         \
	X(multi_perform)                                                                                               \
	X(multi_info_read)                                                                                             \
	X(multi_poll)

struct network_curl {
	/* Typed by the library's header, and found in the library when the process begins. */
#define NETWORK_CURL_MEMBER(name) __typeof__(&curl_##name) name;
	NETWORK_CURL_FUNCTIONS(NETWORK_CURL_MEMBER)
#undef NETWORK_CURL_MEMBER
	/* The certificates of authorities; both NULL: in the places that the library was built with. */
	const char *ca_file, *ca_folder;
	bool knows_no_authority; /* there are none: every server of https is refused */
};
/* A part of a sentence for that. */
#define NETWORK_NO_AUTHORITY "no authority's certificate is on this machine, or in this container"

/*
 * Loads libcurl, if it is not linked in, and finds the certificates of authorities. Returns 0, or -ENOSYS with a
 * sentence in *error.
 */
int network_curl_load(struct network_curl *curl, struct error *error);

/*
 * Finds the certificates of authorities: those that SSL_CERT_FILE or SSL_CERT_DIR names, which may stay unread until
 * later. looks: else those of the places where distributions have them.
 */
void network_find_authorities(struct network_curl *curl, bool looks);

/*
 * Makes a transfer trust the authorities whose certificates are in pem, which must live as long as the transfer, and
 * no other; pem NULL: those that were found. Returns what libcurl returns.
 */
CURLcode network_trust(const struct network_curl *curl, CURL *easy, const char *pem);

/*
 * Has a transfer fail when the headers of the answer have more than 64 KiB. Sets *header_bytes to 0, and counts their
 * bytes there, which must live as long as the transfer. Returns what libcurl returns.
 */
CURLcode network_limit_headers(const struct network_curl *curl, CURL *easy, size_t *header_bytes);
/* Returns whether these were too many bytes. */
bool network_is_over_headers(size_t header_bytes);
/* A part of a sentence for that. */
#define NETWORK_OVER_HEADERS "the headers of its answer have more than 64 KiB"

#endif
