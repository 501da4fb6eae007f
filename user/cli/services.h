// SPDX-License-Identifier: Apache-2.0
/* All questions that helpers answer. */
#ifndef CLI_SERVICES_H
#define CLI_SERVICES_H

#include "foreign/foreign.h"

/* What cli_start_helpers() hands to foreign_start(). */
extern const struct foreign_services cli_services;

#endif
