// SPDX-License-Identifier: Apache-2.0
/* SipHash-2-4 (Aumasson and Bernstein, 2012): a hash that tells nothing about its input without the key. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY 16

uint64_t siphash(const uint8_t key[SIPHASH_KEY], const void *data, size_t size);

#endif
