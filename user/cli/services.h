// SPDX-License-Identifier: Apache-2.0
/* All questions that helpers answer. */
#ifndef CLI_SERVICES_H
#define CLI_SERVICES_H

#include "helper/helper.h"

/* What cli_start_helpers() hands to helper_start(). */
extern const struct helper_services cli_services;

#endif
