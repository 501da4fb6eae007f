// SPDX-License-Identifier: Apache-2.0
/*
 * For the static binary: calls of OpenSSL and c-ares by which the C library would load libraries of the host, which
 * need the host's C library. None is made: libcurl asks for names by c-ares, and for ports by number.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

/* The linker's --wrap has them call this one: the C library's own is there, for itself, and would be warned of. */
void *refuse_library(const char *file, int mode) __asm__("__wrap_dlopen");

void *refuse_library(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *req, struct addrinfo **pai)
{
	(void)name;
	(void)service;
	(void)req;
	(void)pai;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *ai)
{
	(void)ai;
}

int getnameinfo(const struct sockaddr *sa, socklen_t salen, char *host, socklen_t hostlen, char *serv,
		socklen_t servlen, int flags)
{
	(void)sa;
	(void)salen;
	(void)host;
	(void)hostlen;
	(void)serv;
	(void)servlen;
	(void)flags;
	return EAI_FAIL;
}

struct hostent *gethostbyname(const char *name)
{
	(void)name;
	return NULL;
}

struct servent *getservbyname(const char *name, const char *proto)
{
	(void)name;
	(void)proto;
	return NULL;
}

int getservbyport_r(int port, const char *proto, struct servent *result_buf, char *buf, size_t buflen,
		    struct servent **result)
{
	(void)port;
	(void)proto;
	(void)result_buf;
	(void)buf;
	(void)buflen;
	*result = NULL;
	return ENOENT;
}
