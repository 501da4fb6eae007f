// SPDX-License-Identifier: Apache-2.0
/* How a process that has the network begins. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child/child.h"
#include "network/network.h"
#include "rights/rights.h"

int network_begin(int *kept, size_t count, struct network_curl *curl, struct error *error)
{
	int err;

	child_block_signals();
	err = child_let_go(STDOUT_FILENO, kept, count);
	if (err)
		return error_set(error, err, "cannot prepare the process that has the network: %s", strerror(-err));
	/* A core file would hold tokens. */
	child_limit(RLIMIT_CORE, 0);
	err = rights_become_nobody(error);
	err = err ?: network_curl_load(curl, error);
	if (!err && curl->global_init(CURL_GLOBAL_DEFAULT))
		err = error_set(error, -EIO, "cannot prepare libcurl: curl_global_init() failed");
	return err;
}
