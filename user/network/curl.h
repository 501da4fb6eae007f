// SPDX-License-Identifier: Apache-2.0
/* libcurl, for processes that have the network. */
#ifndef NETWORK_CURL_H
#define NETWORK_CURL_H

#include <curl/curl.h>

#include "base/error.h"

/* The names of functions are libcurl's. Typed by its header, and found in the library when the process begins. */
struct network_curl {
	__typeof__(&curl_global_init) global_init;
	__typeof__(&curl_easy_init) easy_init;
	__typeof__(&curl_easy_reset) easy_reset;
	__typeof__(&curl_easy_setopt) easy_setopt;
	__typeof__(&curl_easy_getinfo) easy_getinfo;
	__typeof__(&curl_easy_strerror) easy_strerror;
	__typeof__(&curl_slist_append) slist_append;
	__typeof__(&curl_slist_free_all) slist_free_all;
	__typeof__(&curl_multi_init) multi_init;
	__typeof__(&curl_multi_add_handle) multi_add_handle;
	__typeof__(&curl_multi_remove_handle) multi_remove_handle;
	__typeof__(&curl_multi_perform) multi_perform;
	__typeof__(&curl_multi_info_read) multi_info_read;
	__typeof__(&curl_multi_poll) multi_poll;
};

/* Loads libcurl. Returns 0, or -ENOSYS with a sentence in *error. */
int network_curl_load(struct network_curl *curl, struct error *error);

#endif
