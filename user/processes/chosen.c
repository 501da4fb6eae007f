// SPDX-License-Identifier: Apache-2.0
/* Samples some services only. */
#include "processes/internal.h"

bool processes_is_chosen(const struct processes *p, struct processes_record *process)
{
	if (!p->options.chosen || !p->options.chosen->count)
		return true;
	processes_label_service(p, process);
	return process->service && discovery_service_is_chosen(p->options.chosen, process->service);
}
