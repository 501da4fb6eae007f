// SPDX-License-Identifier: Apache-2.0
/* Linked into build/pybpf-san alone. */

/*
 * The search for leaks at a program's end forks and traces, which the filter of system calls refuses by then. Leaks are
 * looked for in the unit tests.
 */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) /* NOLINT(bugprone-reserved-identifier) */
{
	return "detect_leaks=0";
}
