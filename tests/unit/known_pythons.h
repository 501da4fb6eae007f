// SPDX-License-Identifier: Apache-2.0
/*
 * The Pythons of which tests have data, for tests of C: what a new one is added to. Fuzz targets choose by number, so
 * that the inputs that they keep stay what they are: new rows come last.
 */
#ifndef TESTS_KNOWN_PYTHONS_H
#define TESTS_KNOWN_PYTHONS_H

/* Versions whose layouts are tables, of release and of debug builds: layout_from_table(). */
static const int known_tables[][2] = {{2, 7}, {3, 6}, {3, 7}, {3, 8}, {3, 9}, {3, 10}, {3, 11}, {3, 12}};
#define KNOWN_TABLES (sizeof(known_tables) / sizeof(known_tables[0]))

/* Versions and builds whose debug offsets are tests/data/debug-offsets-NAME.bin. */
static const char *const known_debug_offsets[] = {"3.13", "3.13-debug", "3.14", "3.14t", "3.15", "3.15t"};
#define KNOWN_DEBUG_OFFSETS (sizeof(known_debug_offsets) / sizeof(known_debug_offsets[0]))

/* Versions and builds of which a process's memory is saved in tests/data: patterns of names. */
static const char *const known_memories[] = {"*2.7*",     "*3.6*",  "*3.7*",  "*3.8*",  "*3.9*",   "*3.10*",
					     "*3.11*",    "*3.12*", "*3.13*", "*3.14*", "*3.15*",  "*3.11-dbg",
					     "*3.14-dbg", "*3.13t", "*-musl", "*-pie",  "system-*"};
#define KNOWN_MEMORIES (sizeof(known_memories) / sizeof(known_memories[0]))

#endif
