// SPDX-License-Identifier: Apache-2.0
/* Which errors say that there was no answer, and why. */
#include <errno.h>
#include <string.h>

#include "helper/helper.h"

bool helper_has_no_answer(int err)
{
	switch (err) {
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -EPROTO:
	case -EBUSY:
	case -EINTR:
	case -ENOTCONN:
		return true;
	default:
		return false;
	}
}

const char *helper_describe_error(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "the helper process gave no answer in time";
	case -ECONNRESET:
		return "the helper process crashed or was killed";
	case -EPROTO:
		return "the helper process gave an invalid answer";
	case -EBUSY:
		return "left alone for a minute, after a helper process crashed or took too long at it";
	case -EINTR:
		return "stopped by a signal";
	case -ENOTCONN:
		return "no helper process could be made";
	default:
		return strerror(-err);
	}
}
