// SPDX-License-Identifier: Apache-2.0
/* What kind of code a function is: Python, or compiled code, by the name of its file. */
#ifndef OUTPUT_CODE_H
#define OUTPUT_CODE_H

#include "profile/profile.h"

enum output_code {
	OUTPUT_CODE_PYTHON,
	OUTPUT_CODE_EXTENSION,   /* a module in compiled code, as Python imports it */
	OUTPUT_CODE_LIBRARY,     /* any other file, and code that is in no file */
	OUTPUT_CODE_INTERPRETER, /* of CPython itself */
	OUTPUT_CODE_KERNEL,
	OUTPUT_CODE_NOTE, /* no function: a remark */
};

/* Returns the kind of a frame's code. Compiled code is told by the name of its file, which is not always kept with its
 * path. */
enum output_code output_code_of(const struct profile *p, const struct profile_frame *frame);

#endif
