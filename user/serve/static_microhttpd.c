// SPDX-License-Identifier: Apache-2.0
/* For the static binary, in place of microhttpd.c: libmicrohttpd is linked in (tools/static-libraries). */
#include "serve/internal.h"

int serve_microhttpd_load(struct serve_microhttpd *mhd, struct error *error)
{
	(void)error;
#define TAKE(name) mhd->name = MHD_##name;
	SERVE_MICROHTTPD_FUNCTIONS(TAKE)
#undef TAKE
	return 0;
}

const char *serve_linked(void)
{
	return MHD_get_version();
}
