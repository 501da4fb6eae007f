// SPDX-License-Identifier: Apache-2.0
/* SipHash-2-4, from the paper, and the process's own key for it. */
#include "base/siphash.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(struct state *s, int count)
{
	while (count--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotated(s->v1, 13) ^ s->v0;
		s->v3 = rotated(s->v3, 16) ^ s->v2;
		s->v0 = rotated(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotated(s->v1, 17) ^ s->v2;
		s->v3 = rotated(s->v3, 21) ^ s->v0;
		s->v2 = rotated(s->v2, 32);
	}
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are loaded as the machine has them");

static uint64_t word(const uint8_t *bytes)
{
	uint64_t w;

	memcpy(&w, bytes, sizeof(w));
	return w;
}

/* Loads less than 8 bytes as a little-endian number. */
static uint64_t rest(const uint8_t *bytes, size_t size)
{
	uint64_t w = 0;

	for (size_t i = 0; i < size; i++)
		w |= (uint64_t)bytes[i] << 8 * i;
	return w;
}

static void take(struct state *s, uint64_t w)
{
	s->v3 ^= w;
	rounds(s, 2);
	s->v0 ^= w;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *data, size_t size)
{
	const uint64_t k0 = word(key), k1 = word(key + 8);
	/* The paper's constants: "somepseudorandomlygeneratedbytes". */
	struct state s = {
		.v0 = k0 ^ 0x736f6d6570736575u,
		.v1 = k1 ^ 0x646f72616e646f6du,
		.v2 = k0 ^ 0x6c7967656e657261u,
		.v3 = k1 ^ 0x7465646279746573u,
	};
	const uint8_t *bytes = data;
	size_t at = 0;

	for (; size - at >= 8; at += 8)
		take(&s, word(bytes + at));
	take(&s, rest(bytes + at, size - at) | (uint64_t)(uint8_t)size << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

const uint8_t *siphash_process_key(void)
{
	static uint8_t key[SIPHASH_KEY];
	static bool is_drawn;

	/* Does not wait for the pool of a kernel that has just started (Linux 5.6): the key lives as long as the
	 * process. */
	if (!is_drawn && getrandom(key, sizeof(key), GRND_INSECURE) != (ssize_t)sizeof(key))
		/* Refused by a container's filter. NOLINTNEXTLINE(performance-no-int-to-ptr) */
		memcpy(key, (const void *)getauxval(AT_RANDOM), sizeof(key));
	is_drawn = true;
	return key;
}
