// SPDX-License-Identifier: Apache-2.0
/* Tells extension modules, libraries and interpreters apart. */
#include "output/code.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* python3.12, python3.13t, libpython3.11.so.1.0: the version tells it from python-config. */
static bool is_interpreter(const char *file)
{
	static const char python[] = "python";

	file += begins(file, "lib") ? strlen("lib") : 0;
	return begins(file, python) && isdigit((unsigned char)file[strlen(python)]);
}

/*
 * Returns whether import takes such a file: NAME.so, or NAME with what importlib.machinery.EXTENSION_SUFFIXES has
 * before .so, such as cpython-312-x86_64-linux-gnu, abi3, or in Python 2.7 of Debian x86_64-linux-gnu. lib*.so could be
 * one, but is mostly a library.
 */
static bool is_extension(const char *file)
{
	static const char so[] = ".so";
	size_t length = strlen(file);

	if (length <= strlen(so) || strcmp(file + length - strlen(so), so) != 0)
		return false;
	return !begins(file, "lib") || strstr(file, ".cpython-") || strstr(file, ".abi3.");
}

enum output_code output_code_of(const struct profile *p, const struct profile_frame *frame)
{
	const char *file = profile_string(p, profile_library_of(p, frame));

	switch ((enum profile_frame_kind)frame->kind) {
	case PROFILE_PYTHON:
		return OUTPUT_CODE_PYTHON;
	case PROFILE_KERNEL:
		return OUTPUT_CODE_KERNEL;
	case PROFILE_NATIVE:
		break;
	default:
		return OUTPUT_CODE_NOTE;
	}
	if (is_interpreter(file) || !strcmp(profile_string(p, frame->name), "[CPython]"))
		return OUTPUT_CODE_INTERPRETER;
	return is_extension(file) ? OUTPUT_CODE_EXTENSION : OUTPUT_CODE_LIBRARY;
}
