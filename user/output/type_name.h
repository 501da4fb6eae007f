// SPDX-License-Identifier: Apache-2.0
/* What values are, in names that stores of profiles take. */
#ifndef OUTPUT_TYPE_NAME_H
#define OUTPUT_TYPE_NAME_H

/*
 * Returns the name of a measure with an underscore for all but letters, digits, '.' and '/'; NULL without memory.
 * Pyroscope refuses "page-faults" (2.2, pkg/validation/validate.go, ValidateProfile()), and it and Parca separate the
 * parts of a type by ':', which uprobes and tracepoints have.
 */
char *output_type_name(const char *name);

#endif
