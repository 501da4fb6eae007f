// SPDX-License-Identifier: Apache-2.0
#ifndef DOCTOR_PAGE_AGE_H
#define DOCTOR_PAGE_AGE_H

#include "doctor/doctor.h"

/* Looks whether pages that the kernel has marked as unused can be read. */
void doctor_look_page_age(const struct doctor *d, struct doctor_item *item);

#endif
