// SPDX-License-Identifier: Apache-2.0
/*
 * Loads libcurl, in processes that have the network and nowhere else: a recording needs no library for the network,
 * and pybpf runs on a machine without one.
 */
#include <dlfcn.h>
#include <errno.h>

#include "network/curl.h"

/* The name of its interface, which has been the same since 2006. */
#define LIBRARY "libcurl.so.4"

int network_curl_load(struct network_curl *curl, struct error *error)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct {
		void *to;
		const char *name;
	} functions[] = {
		{&curl->global_init, "curl_global_init"},
		{&curl->easy_init, "curl_easy_init"},
		{&curl->easy_reset, "curl_easy_reset"},
		{&curl->easy_setopt, "curl_easy_setopt"},
		{&curl->easy_getinfo, "curl_easy_getinfo"},
		{&curl->easy_strerror, "curl_easy_strerror"},
		{&curl->slist_append, "curl_slist_append"},
		{&curl->slist_free_all, "curl_slist_free_all"},
		{&curl->multi_init, "curl_multi_init"},
		{&curl->multi_add_handle, "curl_multi_add_handle"},
		{&curl->multi_remove_handle, "curl_multi_remove_handle"},
		{&curl->multi_perform, "curl_multi_perform"},
		{&curl->multi_info_read, "curl_multi_info_read"},
		{&curl->multi_poll, "curl_multi_poll"},
	};

	if (!library)
		return error_set(
			error, -ENOSYS,
			"cannot use the network: %s is not on this machine (%s); install libcurl (Debian: libcurl4)",
			LIBRARY, dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		*(void **)functions[i].to = dlsym(library, functions[i].name);
		if (!*(void **)functions[i].to)
			return error_set(error, -ENOSYS,
					 "cannot use the network: %s lacks %s, which libcurl has had since 7.66",
					 LIBRARY, functions[i].name);
	}
	return 0;
}
