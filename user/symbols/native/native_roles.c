// SPDX-License-Identifier: Apache-2.0
#include "symbols/native/native_roles.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	enum native_role role;
} known[] = {
	{"slp_switch", NATIVE_ROLE_SWITCH},
	{"_ZL10slp_switchv", NATIVE_ROLE_SWITCH},
	{"_Unwind_RaiseException", NATIVE_ROLE_UNWINDER},
	{"_Unwind_ForcedUnwind", NATIVE_ROLE_UNWINDER},
	{"_Unwind_Resume", NATIVE_ROLE_UNWINDER},
	{"_Unwind_Resume_or_Rethrow", NATIVE_ROLE_UNWINDER},
	{"greenlet::UserGreenlet::inner_bootstrap", NATIVE_ROLE_GREENLET},
	{"g_initialstub", NATIVE_ROLE_OLD_GREENLET},
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

enum native_role native_role_of(const char *name, const char *file)
{
	if (!*name)
		return begins(file, "_greenlet.") || begins(file, "greenlet.") ? NATIVE_ROLE_OF_GREENLET
									       : NATIVE_ROLE_NONE;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(name, known[i].name))
			return known[i].role;
	}
	return begins(name, "_ZN8greenlet12UserGreenlet15inner_bootstrapE") ? NATIVE_ROLE_GREENLET : NATIVE_ROLE_NONE;
}
