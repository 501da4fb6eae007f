// SPDX-License-Identifier: Apache-2.0
/* Which hosts of a fleet send their profiles on a day: a share of them, by chance, and others on the next day. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/internal.h"
#include "base/siphash.h"

#define NS_PER_DAY UINT64_C(86400000000000)

bool agent_host_is_chosen(double share, const char *host, uint64_t ns)
{
	/* The same on all hosts, and in all versions. */
	static const uint8_t key[SIPHASH_KEY] = "pybpf-hosts-day";
	char text[512];
	uint64_t hash;

	snprintf(text, sizeof(text), "%" PRIu64 " %s", ns / NS_PER_DAY, host);
	hash = siphash(key, text, strlen(text));
	return share >= 1 || (double)hash < share * 0x1p64;
}
