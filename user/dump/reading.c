// SPDX-License-Identifier: Apache-2.0
/* Only what /proc and the interpreter say is a fact of a thread: no other error means that it has ended. */
#include "dump/reading.h"

#include <errno.h>

enum dump_reading dump_judge_reading(int err)
{
	switch (err) {
	case 0:
		return DUMP_READ;
	case -ESRCH:
	case -ENOENT:
		return DUMP_GONE;
	case -ENOMEM:
	case -EINTR:
		return DUMP_FAILED;
	default:
		return DUMP_UNREAD;
	}
}
