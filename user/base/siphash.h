// SPDX-License-Identifier: Apache-2.0
/* SipHash-2-4 (Aumasson and Bernstein, 2012): a hash that tells nothing about its input without the key. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY 16

uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *data, size_t size);

/*
 * Returns the key for hashes that do not leave this process and its forks: it is drawn at random at the first call. Who
 * chooses what is hashed does not know it, and so cannot choose texts that have one hash.
 */
const uint8_t *siphash_process_key(void);

#endif
