// SPDX-License-Identifier: Apache-2.0
/* Limits by Landlock (Linux 5.13) which files a process may change, whatever user it runs as. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights/internal.h"

/* Missing in linux/landlock.h of older systems. */
#define ACCESS_REFER     (1ULL << 13) /* version 2, Linux 5.19 */
#define ACCESS_TRUNCATE  (1ULL << 14) /* version 3, Linux 6.2 */
#define ACCESS_IOCTL_DEV (1ULL << 15) /* version 5, Linux 6.10 */

/* All accesses that change a file or a folder. What the committer reads is in /proc. */
#define WRITES                                                                                                         \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                  \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |                 \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                   \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
/* Accesses needed to put a file in its place: by link, or by rename over an existing file. */
#define PLACES (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)

/* Those that read one. */
#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

int rights_landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? -errno : (int)version;
}

/* Makes a set of rules, in which no access is allowed yet. Returns its descriptor or negative errno. */
static int create_ruleset(uint64_t accesses)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = accesses};
	int version = rights_landlock_version(), ruleset;

	if (version < 0)
		return version;
	/* Moving a file to another folder: version 1 always refuses it, and outputs are never moved so. */
	if (version >= 2)
		attr.handled_access_fs |= ACCESS_REFER;
	if (version >= 3)
		attr.handled_access_fs |= ACCESS_TRUNCATE;
	if (version >= 5)
		attr.handled_access_fs |= ACCESS_IOCTL_DEV;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	return ruleset < 0 ? -errno : ruleset;
}

static int allow_beneath(int ruleset, uint64_t accesses, int fd)
{
	struct landlock_path_beneath_attr beneath = {.allowed_access = accesses, .parent_fd = fd};

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) ? -errno : 0;
}

/* Closes the set. Returns 0 or negative errno. */
static int restrict_self(int ruleset)
{
	int err = syscall(SYS_landlock_restrict_self, ruleset, 0) ? -errno : 0;

	close(ruleset);
	return err;
}

int rights_landlock_restrict(const int *folders, size_t count, bool reads)
{
	const uint64_t reading = reads ? READS : 0;
	int ruleset = create_ruleset(WRITES | reading);

	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < count; i++) {
		int err = allow_beneath(ruleset, PLACES | reading, folders[i]);

		if (err) {
			close(ruleset);
			return err;
		}
	}
	return restrict_self(ruleset);
}

/* Allows to read a file, or all below a folder. A missing one allows nothing. Returns 0 or negative errno. */
static int allow_reading(int ruleset, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC), err = 0;
	struct stat status;

	if (fd < 0)
		return 0;
	if (fstat(fd, &status))
		err = -errno;
	else
		err = allow_beneath(ruleset, S_ISDIR(status.st_mode) ? READS : LANDLOCK_ACCESS_FS_READ_FILE, fd);
	close(fd);
	return err;
}

int rights_landlock_read_settings(void)
{
	/* Where distributions keep them, and where /etc/resolv.conf may point to; then those that who calls has named.
	 */
	const char *const paths[] = {
		"/etc",
		"/usr",
		"/lib",
		"/lib64",
		"/run/systemd/resolve",
		"/run/resolvconf",
		"/run/NetworkManager",
		"/var/lib/ca-certificates",
		"/nix/store",
		"/gnu/store",
		"/dev/null",
		"/dev/random",
		"/dev/urandom",
		getenv("SSL_CERT_FILE"),
		getenv("SSL_CERT_DIR"),
	};
	int ruleset = create_ruleset(WRITES | READS), err = 0;

	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !err; i++)
		err = paths[i] ? allow_reading(ruleset, paths[i]) : 0;
	if (err) {
		close(ruleset);
		return err;
	}
	return restrict_self(ruleset);
}
