// SPDX-License-Identifier: Apache-2.0
/*
 * Loads libcurl, in processes that have the network and nowhere else: a recording needs no library for the network,
 * and pybpf runs on a machine without one.
 */
#include <dlfcn.h>
#include <errno.h>

#include "network/network.h"

/* The name of its interface, which has been the same since 2006. */
#define LIBRARY "libcurl.so.4"

int network_curl_load(struct network_curl *curl, struct error *error)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct {
		void *to;
		const char *name;
	} functions[] = {
#define ROW(name) {&curl->name, "curl_" #name},
		NETWORK_CURL_FUNCTIONS(ROW)
#undef ROW
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
	network_find_authorities(curl, false);
	return 0;
}

size_t network_linked(struct network_library *libraries)
{
	(void)libraries;
	return 0;
}
