// SPDX-License-Identifier: Apache-2.0
/*
 * Limits the headers of an answer. libcurl keeps each of them, of 7.84 to 8.2 without a bound (CVE-2023-38039), and
 * hands it on right after it.
 */
#include "network/network.h"

#define HEADERS_MAX 65536

bool network_is_over_headers(size_t header_bytes)
{
	return header_bytes > HEADERS_MAX;
}

static size_t count_header(char *bytes, size_t one, size_t count, void *sum)
{
	size_t size = one * count, *header_bytes = sum;

	(void)bytes;
	*header_bytes += size;
	/* Another number than that of the bytes ends the transfer. */
	return network_is_over_headers(*header_bytes) ? 0 : size;
}

CURLcode network_limit_headers(const struct network_curl *curl, CURL *easy, size_t *header_bytes)
{
	CURLcode code = curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, count_header);

	*header_bytes = 0;
	return code ?: curl->easy_setopt(easy, CURLOPT_HEADERDATA, header_bytes);
}
