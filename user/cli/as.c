// SPDX-License-Identifier: Apache-2.0
/* --as: finds the user that a command runs as, and warns about commands that run as root. */
#include "cli/as.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "base/log.h"
#include "base/users.h"

static const struct passwd *find_account(const char *text)
{
	const struct passwd *account = users_find_name(text);
	double uid;

	if (account || cli_number(text, 0, UINT32_MAX - 1, &uid) || uid != (uint32_t)uid)
		return account;
	return users_find_uid((uid_t)uid);
}

int cli_as_find(struct caller *as, const char *text)
{
	const struct passwd *account;

	caller_find(as);
	if (strcmp(text, "caller") == 0) {
		if (!as->uid)
			return cli_usage("--as caller: pybpf was not called through sudo, so the caller is root; give "
					 "the user's name");
	} else {
		account = find_account(text);
		if (!account)
			return cli_usage(
				"--as %s: there is no such user; it takes a name, a UID, or caller: who called "
				"sudo",
				text);
		as->uid = account->pw_uid;
		as->gid = account->pw_gid;
	}
	if (caller_look_up(as)) {
		log_error("out of memory while starting");
		return CLI_FAILED;
	}
	if (!as->name)
		log_warn("--as %s: this host has no user %u: the command gets / as HOME, and no group but %u", text,
			 as->uid, as->gid);
	return 0;
}

void cli_as_tell_root(void)
{
	struct caller caller;

	caller_find(&caller);
	if (!geteuid() && caller.uid)
		log_warn("the command runs as root, as pybpf does; --as caller runs it as the user who called sudo");
}
