// SPDX-License-Identifier: Apache-2.0
/*
 * Loads libmicrohttpd, in the process that serves and nowhere else: a recording needs no library for the network, and
 * pybpf runs on a machine without one.
 */
#include <dlfcn.h>
#include <errno.h>

#include "serve/internal.h"

/* The name of its interface, which has been the same since 0.9.45 of 2016. */
#define LIBRARY "libmicrohttpd.so.12"

int serve_microhttpd_load(struct serve_microhttpd *mhd, struct error *error)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct {
		void *to;
		const char *name;
	} functions[] = {
#define ROW(name) {&mhd->name, "MHD_" #name},
		SERVE_MICROHTTPD_FUNCTIONS(ROW)
#undef ROW
	};

	if (!library)
		return error_set(
			error, -ENOSYS,
			"cannot serve: %s is not on this machine (%s); install libmicrohttpd (Debian: libmicrohttpd12)",
			LIBRARY, dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		*(void **)functions[i].to = dlsym(library, functions[i].name);
		if (!*(void **)functions[i].to)
			return error_set(error, -ENOSYS,
					 "cannot serve: %s lacks %s; install libmicrohttpd 0.9.71 or later", LIBRARY,
					 functions[i].name);
	}
	return 0;
}

const char *serve_linked(void)
{
	return NULL;
}
