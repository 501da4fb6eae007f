// SPDX-License-Identifier: Apache-2.0
/* Derives the stable release behind a vendor's kernel, and which changes it has. */
#include "base/host_kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define SIGNATURE_PATH "/proc/version_signature"

void host_kernel_look(struct host_kernel *kernel)
{
	FILE *f = fopen(SIGNATURE_PATH, "re");
	struct utsname host = {0};

	uname(&host);
	snprintf(kernel->release, sizeof(kernel->release), "%s", host.release);
	snprintf(kernel->version, sizeof(kernel->version), "%s", host.version);
	if (!f || !fgets(kernel->signature, sizeof(kernel->signature), f))
		kernel->signature[0] = '\0';
	if (f)
		fclose(f);
}

struct version {
	int major, minor, patch;
};

static bool parse(const char *text, struct version *v)
{
	v->patch = 0;
	return sscanf(text, "%d.%d.%d", &v->major, &v->minor, &v->patch) >= 2;
}

static bool at_least(const struct version *v, int major, int minor)
{
	return v->major > major || (v->major == major && v->minor >= minor);
}

/* Debian: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-10-02)". */
static bool debian_version(const struct host_kernel *kernel, struct version *v)
{
	static const char mark[] = " Debian ";
	const char *at = strstr(kernel->version, mark);

	return at && parse(at + strlen(mark), v);
}

/* Ubuntu: "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16". */
static bool ubuntu_version(const struct host_kernel *kernel, struct version *v)
{
	const char *at = strrchr(kernel->signature, ' ');

	return strncmp(kernel->signature, "Ubuntu ", 7) == 0 && at && parse(at + 1, v);
}

/* "5.15.133" and nothing else: an unchanged stable release. */
static bool plain_version(const struct host_kernel *kernel, struct version *v)
{
	return parse(kernel->release, v) && kernel->release[strspn(kernel->release, "0123456789.")] == '\0';
}

bool host_kernel_at_least(const struct host_kernel *kernel, int major, int minor)
{
	struct version v;

	return parse(kernel->release, &v) && at_least(&v, major, minor);
}

/*
 * Finds the stable release that the kernel is based on; without a vendor's mark it is the kernel's own number, which is
 * not higher.
 */
static bool stable_version(const struct host_kernel *kernel, struct version *v)
{
	return debian_version(kernel, v) || ubuntu_version(kernel, v) || parse(kernel->release, v);
}

bool host_kernel_checks_reads(const struct host_kernel *kernel)
{
	struct version v;

	if (!stable_version(kernel, &v))
		return false;
	return at_least(&v, 6, 4) || (v.major == 6 && v.minor == 3 && v.patch >= 10) ||
	       (v.major == 6 && v.minor == 1 && v.patch >= 36);
}

bool host_kernel_reads_without_lock(const struct host_kernel *kernel)
{
	struct version v;

	if (host_kernel_checks_reads(kernel))
		return true;
	return (debian_version(kernel, &v) || ubuntu_version(kernel, &v) || plain_version(kernel, &v)) &&
	       !at_least(&v, 5, 19);
}
