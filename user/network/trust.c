// SPDX-License-Identifier: Apache-2.0
/* Which certificates of authorities are trusted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network/curl.h"

static const char *named(const char *variable)
{
	const char *path = getenv(variable);

	return path && *path ? path : NULL;
}

/* Returns the first of the paths, which end with NULL, that can be read; NULL: none. */
static const char *first_of(const char *const *paths)
{
	while (*paths && access(*paths, R_OK))
		paths++;
	return *paths;
}

void network_find_authorities(struct network_curl *curl, bool looks)
{
	static const char *const files[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch, Gentoo, NixOS */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat, Amazon Linux */
		"/etc/ssl/ca-bundle.pem",             /* SUSE */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem", /* Alpine without its package of certificates */
		NULL,
	};
	/* Files that are named by hashes of what they hold. */
	static const char *const folders[] = {"/etc/ssl/certs", NULL};

	curl->ca_file = named("SSL_CERT_FILE");
	curl->ca_folder = named("SSL_CERT_DIR");
	if (!looks || curl->ca_file || curl->ca_folder)
		return;
	curl->ca_file = first_of(files);
	if (!curl->ca_file)
		curl->ca_folder = first_of(folders);
	curl->knows_no_authority = !curl->ca_file && !curl->ca_folder;
}

CURLcode network_trust(const struct network_curl *curl, CURL *easy, const char *pem)
{
	struct curl_blob blob = {.data = (void *)pem, .len = pem ? strlen(pem) : 0, .flags = CURL_BLOB_NOCOPY};
	CURLcode code = CURLE_OK;

	if (pem)
		code = curl->easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
	else if (!curl->ca_file && !curl->ca_folder)
		return CURLE_OK;
	else
		code = curl->easy_setopt(easy, CURLOPT_CAINFO, curl->ca_file);
	/* Else those of the folder that it was built with are trusted as well. */
	return code ?: curl->easy_setopt(easy, CURLOPT_CAPATH, pem ? NULL : curl->ca_folder);
}
