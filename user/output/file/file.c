// SPDX-License-Identifier: Apache-2.0
/* Opens an output file without a name, and gives it its name when it is complete. */
#include "output/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "output/file/place.h"

#define MODE_NEW  0600
#define MODE_KEPT 0777 /* set-user-ID, set-group-ID and sticky bit were meant for the old content */
#define ACL       "system.posix_acl_access"
#define ACL_MOST  65536 /* XATTR_SIZE_MAX of linux/limits.h */

/* The name of a descriptor's file in /proc. */
struct proc_name {
	char text[32];
};

static struct proc_name proc_name(int fd)
{
	struct proc_name name;

	snprintf(name.text, sizeof(name.text), "/proc/self/fd/%d", fd);
	return name;
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Opens an existing file that is not a regular file: a terminal, a device, a FIFO. */
static int open_as_it_is(const struct output_place *place, const struct caller *caller, int *fd, struct error *error)
{
	struct stat status;

	if (S_ISDIR(place->status.st_mode))
		return -EISDIR;
	if (S_ISFIFO(place->status.st_mode) && !caller_trusts(caller, place->status.st_uid))
		return error_set(error, -EACCES, "it is a FIFO of user %u, who could make the run wait",
				 place->status.st_uid);
	*fd = openat(place->folder, place->name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0) {
		if (errno == ENXIO && S_ISFIFO(place->status.st_mode))
			return error_set(error, -ENXIO, "it is a FIFO that nobody reads");
		return -errno;
	}
	if (!fstat(*fd, &status) && same_inode(&status, &place->status))
		return fcntl(*fd, F_SETFL, 0) ? -errno : 0; /* the FIFO has a reader: writes may block */
	return error_set(error, -EAGAIN, "it was replaced in the meantime");
}

static int make_stream(int fd, FILE **stream)
{
	int err;

	*stream = fdopen(fd, "w");
	if (*stream)
		return 0;
	err = -errno;
	close(fd);
	return err;
}

static int make_stream_of(int fd, FILE **stream)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
		return make_stream(fd, stream);
	close(fd);
	return -EBADF;
}

/* Returns whether /proc is mounted, which linkat needs for a file that has no name yet. */
static bool can_be_linked(int fd)
{
	struct stat own, found;

	return !fstat(fd, &own) && !stat(proc_name(fd).text, &found) && same_inode(&own, &found);
}

static int make_name(char *name, size_t size)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	snprintf(name, size, ".pybpf-%016" PRIx64, random);
	return 0;
}

/* Creates a file in the folder: without a name if the file system supports that, else with a temporary one. */
static int make_inode(struct output_file *file)
{
	char name[sizeof(file->temporary)];
	int err;

	file->inode = openat(file->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, MODE_NEW);
	if (file->inode >= 0) {
		if (can_be_linked(file->inode))
			return 0;
		close(file->inode);
		file->inode = -1;
	} else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS) {
		/* overlayfs returns EPERM for a folder that was removed. */
		return errno == EPERM && !file->folder_status.st_nlink ? -ENOENT : -errno;
	}
	err = make_name(name, sizeof(name));
	if (err)
		return err;
	file->inode = openat(file->folder, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, MODE_NEW);
	if (file->inode < 0)
		return -errno;
	memcpy(file->temporary, name, sizeof(name));
	return 0;
}

/*
 * Gives the new file the old one's ACL, or removes its ACL if the old one had none. Returns false if that failed.
 */
static bool keep_acl(const struct output_place *place, int fd)
{
	char acl[ACL_MOST];
	ssize_t size = getxattr(proc_name(place->there).text, ACL, acl, sizeof(acl));

	if (size >= 0)
		return !fsetxattr(fd, ACL, acl, (size_t)size, 0);
	if (errno == EOPNOTSUPP)
		return true;
	/* The new file may have an ACL from the folder's default ACL. */
	return errno == ENODATA && (!fremovexattr(fd, ACL) || errno == ENODATA || errno == EOPNOTSUPP);
}

static int keep_status(const struct output_place *place, int fd, struct error *error)
{
	mode_t mode = place->status.st_mode & MODE_KEPT, both = (mode >> 3) & mode & 07;
	bool same_group;
	struct stat own;

	if (fstat(fd, &own))
		return -errno;
	if (own.st_uid != place->status.st_uid && fchown(fd, place->status.st_uid, (gid_t)-1))
		return error_set(error, -EPERM,
				 "it belongs to user %u, who would lose it; remove it, or choose another name",
				 place->status.st_uid);
	same_group = own.st_gid == place->status.st_gid || !fchown(fd, (uid_t)-1, place->status.st_gid);
	/* Without the old ACL or group, give group and others only the rights that both had: nobody gains any. */
	if (!keep_acl(place, fd) || !same_group)
		mode = (mode & 0700) | (mode_t)(both << 3) | both;
	return fchmod(fd, mode) ? -errno : 0;
}

static int set_status(const struct output_place *place, const struct caller *caller, int fd)
{
	gid_t group = place->folder_status.st_mode & S_ISGID ? (gid_t)-1 : caller->gid;

	if (fchmod(fd, MODE_NEW))
		return -errno;
	/* If the file system does not let root change the owner (NFS), root stays the owner. */
	if (caller->uid != geteuid() && place->folder_status.st_uid == caller->uid && fchown(fd, caller->uid, group) &&
	    errno != EPERM)
		return -errno;
	return 0;
}

static bool has_attribute(int fd, uint64_t attribute)
{
	struct statx status;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) &&
	       status.stx_attributes & status.stx_attributes_mask & attribute;
}

/* Checks before the run for errors that rename(2) would report only after it. Returns 0 or negative errno. */
static int can_be_replaced(const struct output_place *place, struct error *error)
{
	if (has_attribute(place->there, STATX_ATTR_MOUNT_ROOT))
		return error_set(error, -EBUSY,
				 "a file is mounted there, which cannot be replaced; mount its folder instead");
	if (has_attribute(place->there, STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) {
		return error_set(error, -EPERM,
				 "it is marked as immutable or append-only, and cannot be replaced; "
				 "`chattr -ia` ends that");
	}
	if (has_attribute(place->folder, STATX_ATTR_APPEND))
		return error_set(error, -EPERM,
				 "its folder is marked as append-only, and nothing in it can be replaced; "
				 "`chattr -a` ends that");
	return 0;
}

/* Opens a new file that will get the place's name. Returns 0 or negative errno. */
static int open_file(struct output_file *file, struct output_place *place, const struct caller *caller,
		     struct error *error)
{
	int err = 0, fd;

	if (output_place_is_planted(place, caller))
		return error_set(
			error, -EACCES,
			"it belongs to user %u, in or below a folder where others may put files; remove it, or choose "
			"another name",
			place->status.st_uid);
	if (place->there >= 0)
		err = can_be_replaced(place, error);
	if (err)
		return err;
	memcpy(file->name, place->name, sizeof(file->name));
	file->folder_status = place->folder_status;
	file->folder = place->folder;
	file->inode = place->folder = -1;
	err = make_inode(file);
	if (err)
		return err;
	if (place->there >= 0) {
		file->old = place->status;
		err = keep_status(place, file->inode, error);
	} else {
		err = set_status(place, caller, file->inode);
	}
	if (err || fstat(file->inode, &file->status))
		return err ?: -errno;
	/*
	 * Closing the stream may report a failed write (FUSE, NFS), so it is closed before the file gets its name; the
	 * stream therefore has a descriptor of its own.
	 */
	fd = fcntl(file->inode, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : make_stream(fd, &file->stream);
}

int output_file_open(struct output_file *file, const char *path, struct error *error)
{
	struct output_place place;
	struct caller caller;
	int err;

	memset(file, 0, sizeof(*file));
	caller_find(&caller);
	err = output_place_find(path, &caller, &place, error);
	if (err)
		return err;
	if (place.descriptor < 0 && place.there >= 0 && !S_ISREG(place.status.st_mode))
		err = open_as_it_is(&place, &caller, &place.descriptor, error);
	if (!err && place.descriptor >= 0) {
		err = make_stream_of(place.descriptor, &file->stream);
		place.descriptor = -1;
	} else if (!err) {
		err = open_file(file, &place, &caller, error);
	}
	output_place_close(&place);
	if (err) {
		output_file_discard(file);
		if (!error->code)
			error_set(error, err, "%s", strerror(-err));
	}
	return err;
}

int output_file_give_as(struct output_file *file, const struct output_file *other)
{
	struct caller caller;
	gid_t group;

	caller_find(&caller);
	if (caller.uid == file->status.st_uid || caller.uid != other->status.st_uid)
		return 0;
	group = file->folder_status.st_mode & S_ISGID ? (gid_t)-1 : caller.gid;
	return fchown(file->inode, caller.uid, group) || fstat(file->inode, &file->status) ? -errno : 0;
}

bool output_file_same(const struct output_file *a, const struct output_file *b)
{
	if (!*a->name || !*b->name)
		return false;
	if (same_inode(&a->folder_status, &b->folder_status) && strcmp(a->name, b->name) == 0)
		return true;
	return a->old.st_ino && same_inode(&a->old, &b->old);
}

static bool is_member(gid_t group)
{
	gid_t groups[1024];
	int count = getgroups(sizeof(groups) / sizeof(*groups), groups);

	for (int i = 0; i < count; i++) {
		if (groups[i] == group)
			return true;
	}
	return group == getegid();
}

/* Returns whether the process's user can create files in the folder without any capability. */
static bool can_write_plainly(const struct output_file *file)
{
	const struct stat *folder = &file->folder_status;
	mode_t mode = folder->st_mode;

	if (folder->st_uid == geteuid())
		mode >>= 6;
	else if (is_member(folder->st_gid))
		mode >>= 3;
	/* An ACL may deny rights that the mode shows. */
	return (mode & 03) == 03 && getxattr(proc_name(file->folder).text, ACL, NULL, 0) < 0;
}

bool output_file_needs_fowner(const struct output_file *file)
{
	uid_t own = geteuid();

	return *file->name && file->folder_status.st_mode & S_ISVTX && file->folder_status.st_uid != own &&
	       (file->status.st_uid != own || (file->old.st_ino && file->old.st_uid != own));
}

bool output_file_needs_override(const struct output_file *file)
{
	/* CAP_FOWNER is enough to link it. */
	bool foreign = !*file->temporary && file->status.st_uid != geteuid() && !output_file_needs_fowner(file);

	return *file->name && (foreign || !can_write_plainly(file));
}

/* Gives the file its final name. Returns 0 or negative errno. */
static int appear(struct output_file *file)
{
	struct proc_name inode = proc_name(file->inode);

	if (!*file->temporary) {
		char name[sizeof(file->temporary)];
		int err;

		if (linkat(AT_FDCWD, inode.text, file->folder, file->name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		err = make_name(name, sizeof(name));
		if (err)
			return err;
		if (linkat(AT_FDCWD, inode.text, file->folder, name, AT_SYMLINK_FOLLOW))
			return -errno;
		memcpy(file->temporary, name, sizeof(name));
	}
	if (renameat(file->folder, file->temporary, file->folder, file->name))
		return -errno;
	file->temporary[0] = '\0';
	return 0;
}

/* Waits until the content is on the disk: after a power failure, a file that has its name must have its content. */
static int reach_disk(FILE *stream)
{
	while (fsync(fileno(stream))) {
		/* Errors of file systems that do not support fsync. */
		if (errno == EINVAL || errno == EROFS || errno == ENOSYS || errno == EOPNOTSUPP)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

size_t output_file_descriptors(const struct output_file *file, int out[OUTPUT_FILE_DESCRIPTORS])
{
	if (!*file->name)
		return 0;
	out[0] = file->folder;
	out[1] = file->inode;
	out[2] = fileno(file->stream);
	return OUTPUT_FILE_DESCRIPTORS;
}

void output_file_entrust(struct output_file *file)
{
	if (!*file->name)
		return;
	close(file->inode);
	close(file->folder);
	file->name[0] = file->temporary[0] = '\0';
	file->entrusted = true;
}

int output_file_commit(struct output_file *file)
{
	int err = 0;

	errno = 0;
	if (fflush(file->stream) || ferror(file->stream))
		err = errno ? -errno : -EIO;
	if (!err && (*file->name || file->entrusted))
		err = reach_disk(file->stream);
	if (fclose(file->stream) && !err)
		err = -errno;
	file->stream = NULL;
	if (!err && *file->name)
		err = appear(file);
	output_file_discard(file);
	return err;
}

void output_file_discard(struct output_file *file)
{
	if (file->stream)
		fclose(file->stream);
	if (*file->temporary)
		unlinkat(file->folder, file->temporary, 0);
	if (*file->name) {
		if (file->inode >= 0)
			close(file->inode);
		close(file->folder);
	}
	memset(file, 0, sizeof(*file));
}
