// SPDX-License-Identifier: Apache-2.0
/* For the static binary, in place of curl.c: libcurl is linked in, with OpenSSL and c-ares (tools/static-libraries). */
#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include "network/network.h"

int network_curl_load(struct network_curl *curl, struct error *error)
{
	(void)error;
#define TAKE(name) curl->name = curl_##name;
	NETWORK_CURL_FUNCTIONS(TAKE)
#undef TAKE
	/* The host's openssl.cnf may name modules to load, which need the host's C library. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	network_find_authorities(curl, true);
	return 0;
}

size_t network_linked(struct network_library *libraries)
{
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

	libraries[0] = (struct network_library){"curl", info->version};
	libraries[1] = (struct network_library){"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)};
	libraries[2] = (struct network_library){"c-ares", info->ares};
	return 3;
}
