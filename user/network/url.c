// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "network/network.h"

int network_check_url(const char *url, struct error *error)
{
	const char *host = strncasecmp(url, "http://", 7) == 0    ? url + 7
			   : strncasecmp(url, "https://", 8) == 0 ? url + 8
								  : NULL;

	if (!host || !*host || *host == '/')
		return error_set(error, -EINVAL, "%s: not a URL of HTTP; write http://HOST:PORT/PATH or https://...",
				 url);
	if (memchr(host, '@', strcspn(host, "/?#")))
		return error_set(error, -EINVAL,
				 "a URL must not have a user and a password in it; put them into the file "
				 "with the headers, as Authorization: Basic ...");
	for (const char *c = url; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
			return error_set(error, -EINVAL, "%s: a URL has no blank, control character or #", url);
	}
	return 0;
}
