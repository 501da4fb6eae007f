// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies on the disk, in some files of one size that are written in turn. The process that sends has no right to open a
 * file: all are open from its beginning. A record is a head and the bytes of a body; its head says whether it still
 * waits, and a checksum whether it is whole. When there is no place, the file with the oldest records is emptied.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "output/file/place.h"
#include "push/internal.h"

#define MAGIC "pybpfsp1"

enum state {
	STATE_WAITS = 1,
	STATE_DONE = 2,
};

struct head {
	char magic[8];
	uint32_t state;
	uint32_t checksum; /* of all behind it: the rest of the head, and the bytes */
	uint64_t sequence;
	struct push_message message;
};

static uint32_t checksum(const struct head *head, const void *bytes)
{
	const Bytef *from = (const Bytef *)&head->sequence;
	uLong sum = crc32(0, from, (uInt)(sizeof(*head) - offsetof(struct head, sequence)));

	return (uint32_t)crc32(sum, bytes, (uInt)head->message.size);
}

static int open_segment(int folder, unsigned i, const char *path, struct error *error)
{
	char name[32];
	int fd, err;

	snprintf(name, sizeof(name), "segment-%u.spool", i);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return error_set(error, -errno, "cannot open %s/%s: %s", path, name, strerror(errno));
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = -errno;
	close(fd);
	return error_set(error, err, "the spool folder %s is in use by another pybpf; give each its own", path);
}

int push_spool_open(struct push_spool *spool, const char *folder, uint64_t max, struct error *error)
{
	struct error why;
	int at, err = 0;

	*spool = (struct push_spool){.segment_max = max / PUSH_SPOOL_SEGMENTS, .next_sequence = 1};
	for (unsigned i = 0; i < PUSH_SPOOL_SEGMENTS; i++)
		spool->files[i] = -1;
	if (!folder)
		return 0;
	at = output_place_open_folder(folder, &why);
	if (at < 0)
		return error_set(error, at, "cannot open the spool folder %s: %s", folder, why.text);
	for (unsigned i = 0; i < PUSH_SPOOL_SEGMENTS && !err; i++) {
		spool->files[i] = open_segment(at, i, folder, error);
		err = spool->files[i] < 0 ? spool->files[i] : 0;
	}
	close(at);
	return err;
}

void push_spool_close(struct push_spool *spool)
{
	for (unsigned i = 0; i < PUSH_SPOOL_SEGMENTS; i++) {
		if (spool->files[i] >= 0)
			close(spool->files[i]);
		spool->files[i] = -1;
	}
	while (spool->first) {
		struct push_spool_record *next = spool->first->next;

		free(spool->first);
		spool->first = next;
	}
	spool->count = spool->bytes = 0;
}

static int read_fully(int fd, void *to, size_t size, uint64_t offset)
{
	ssize_t n = io_read_at(fd, to, size, offset);

	return n < 0 ? (int)n : (size_t)n == size ? 0 : -ENODATA;
}

/* Reads a record and checks it. Returns a body, which the caller frees, or NULL with a negative errno in *err. */
static struct push_body *read_record(int fd, uint64_t offset, struct head *head, int *err)
{
	struct push_body *body = NULL;

	*err = read_fully(fd, head, sizeof(*head), offset);
	if (*err)
		return NULL;
	*err = -EBADMSG;
	if (memcmp(head->magic, MAGIC, sizeof(head->magic)) || head->message.size > PUSH_BODY_MAX ||
	    !memchr(head->message.suffix, 0, sizeof(head->message.suffix)) ||
	    !memchr(head->message.content_type, 0, sizeof(head->message.content_type)))
		return NULL;
	body = calloc(1, sizeof(*body));
	if (body)
		body->bytes = malloc(head->message.size + 1);
	*err = body && body->bytes ? read_fully(fd, body->bytes, head->message.size, offset + sizeof(*head)) : -ENOMEM;
	if (!*err && checksum(head, body->bytes) != head->checksum)
		*err = -EBADMSG;
	if (*err) {
		push_body_free(body);
		return NULL;
	}
	body->message = head->message;
	return body;
}

/* Adds a record to the list, which is in the order of sequences. Returns 0 or -ENOMEM. */
static int add_record(struct push_spool *spool, uint32_t segment, uint64_t offset, uint64_t size, uint64_t sequence)
{
	struct push_spool_record *record = calloc(1, sizeof(*record)), **at = &spool->first;

	if (!record)
		return -ENOMEM;
	*record = (struct push_spool_record){.segment = segment, .offset = offset, .size = size, .sequence = sequence};
	/* Most records are added in the order of their sequences. */
	if (spool->added && spool->added->sequence < sequence)
		at = &spool->added->next;
	while (*at && (*at)->sequence < sequence)
		at = &(*at)->next;
	record->next = *at;
	*at = spool->added = record;
	spool->waiting[segment]++;
	spool->count++;
	spool->bytes += size;
	return 0;
}

/* The place of the next record's head in a file of `size` bytes, at `offset` or behind it; `size` if there is none. */
static uint64_t find_head(int fd, uint64_t offset, uint64_t size)
{
	const size_t length = sizeof(MAGIC) - 1;
	char bytes[4096];

	while (offset + length <= size) {
		ssize_t n = io_read_at(fd, bytes, sizeof(bytes), offset);
		const char *found = n > 0 ? memmem(bytes, (size_t)n, MAGIC, length) : NULL;

		if (found)
			return offset + (uint64_t)(found - bytes);
		if (n < (ssize_t)length)
			break;
		offset += (uint64_t)n - length + 1;
	}
	return size;
}

/*
 * Behind a damaged record the search goes on with the next whole one. How many are between them, their sequences tell;
 * some may have been sent before: they are counted as lost all the same.
 */
static int scan_segment(struct push_spool *spool, uint32_t i)
{
	uint64_t offset = 0, end = 0, last = 0; /* last: the sequence of the last whole record */
	bool damaged = false;
	struct stat status;

	if (fstat(spool->files[i], &status))
		return -errno;
	while (offset < (uint64_t)status.st_size) {
		struct head head;
		int err;
		struct push_body *body = read_record(spool->files[i], offset, &head, &err);
		uint64_t size = sizeof(head) + (body ? body->message.size : 0);
		bool in_order = body && head.sequence > last;

		push_body_free(body);
		if (err == -ENOMEM)
			return err;
		if (!in_order) {
			damaged = true;
			spool->last_error = err == -ENODATA || !err ? -EBADMSG : err;
			offset = find_head(spool->files[i], offset + 1, (uint64_t)status.st_size);
			continue;
		}
		if (damaged)
			spool->dropped_error += last && head.sequence > last + 1 ? head.sequence - last - 1 : 1;
		damaged = false;
		if (head.state == STATE_WAITS && add_record(spool, i, offset, size, head.sequence))
			return -ENOMEM;
		if (head.sequence >= spool->next_sequence) {
			spool->next_sequence = head.sequence + 1;
			spool->active = i;
		}
		last = head.sequence;
		end = offset += size;
	}
	/* A record that is not whole was being written when the machine or the process ended. */
	spool->dropped_error += damaged;
	spool->used[i] = end;
	return ftruncate(spool->files[i], (off_t)end) ? -errno : 0;
}

/* Empties a file in which no body waits. */
static void empty_segment(struct push_spool *spool, uint32_t i)
{
	spool->used[i] = 0;
	if (ftruncate(spool->files[i], 0))
		spool->last_error = -errno;
}

int push_spool_scan(struct push_spool *spool)
{
	int err = 0;

	for (uint32_t i = 0; i < PUSH_SPOOL_SEGMENTS && spool->files[i] >= 0 && !err; i++) {
		err = scan_segment(spool, i);
		if (!err && !spool->waiting[i])
			empty_segment(spool, i);
	}
	return err;
}

/* Takes the record that *at points to out of the list, and frees it. */
static void unlink_record(struct push_spool *spool, struct push_spool_record **at)
{
	struct push_spool_record *record = *at;

	*at = record->next;
	spool->added = NULL;
	spool->count--;
	spool->bytes -= record->size;
	spool->waiting[record->segment]--;
	free(record);
}

static void drop_segment(struct push_spool *spool, uint32_t segment)
{
	for (struct push_spool_record **at = &spool->first; *at;) {
		struct push_spool_record *record = *at;

		if (record->segment != segment) {
			at = &record->next;
			continue;
		}
		/* What becomes of the one that is being sent is not known yet. */
		if (record->sequence == spool->lent)
			spool->lent_gone = true;
		else
			spool->dropped_full++;
		unlink_record(spool, at);
	}
	empty_segment(spool, segment);
}

static int write_record(struct push_spool *spool, const struct push_body *body, uint64_t size)
{
	const uint32_t i = spool->active;
	const uint64_t offset = spool->used[i];
	struct head head = {.state = STATE_WAITS, .sequence = spool->next_sequence, .message = body->message};
	int err;

	memcpy(head.magic, MAGIC, sizeof(head.magic));
	head.checksum = checksum(&head, body->bytes);
	err = io_write_at(spool->files[i], body->bytes, body->message.size, offset + sizeof(head));
	err = err ?: io_write_at(spool->files[i], &head, sizeof(head), offset);
	if (!err && fdatasync(spool->files[i]))
		err = -errno;
	err = err ?: add_record(spool, i, offset, size, head.sequence);
	if (err) {
		if (ftruncate(spool->files[i], (off_t)offset))
			spool->last_error = -errno;
		return err;
	}
	spool->used[i] += size;
	spool->next_sequence++;
	return 0;
}

int push_spool_put(struct push_spool *spool, const struct push_body *body)
{
	const uint64_t sequence = spool->next_sequence;
	const uint64_t size = sizeof(struct head) + body->message.size;
	int err;

	if (spool->files[0] < 0)
		return -ENOENT;
	if (size > spool->segment_max) {
		spool->dropped_full++;
		return -EFBIG;
	}
	if (spool->used[spool->active] + size > spool->segment_max) {
		spool->active = (spool->active + 1) % PUSH_SPOOL_SEGMENTS;
		drop_segment(spool, spool->active);
	}
	err = write_record(spool, body, size);
	if (err) {
		spool->dropped_error++;
		spool->last_error = err;
	} else if (body->attempts) {
		spool->left = sequence;
	}
	return err;
}

/* Forgets a record; its file is emptied with its last one. */
static void forget_record(struct push_spool *spool, struct push_spool_record **at)
{
	const uint32_t segment = (*at)->segment;

	unlink_record(spool, at);
	if (!spool->waiting[segment])
		empty_segment(spool, segment);
}

/* Returns where the list has the first record with a sequence above this one; the place of NULL if there is none. */
static struct push_spool_record **find_behind(struct push_spool *spool, uint64_t sequence)
{
	struct push_spool_record **at = &spool->first;

	while (*at && (*at)->sequence <= sequence)
		at = &(*at)->next;
	return at;
}

/* Returns the place of this record, or of NULL. */
static struct push_spool_record **find_record(struct push_spool *spool, uint64_t sequence)
{
	struct push_spool_record **at = &spool->first;

	while (*at && (*at)->sequence != sequence)
		at = &(*at)->next;
	return at;
}

struct push_body *push_spool_get(struct push_spool *spool)
{
	while (spool->first) {
		struct push_spool_record **at = find_behind(spool, spool->cursor);
		struct push_body *body;
		struct head head;
		int err;

		if (!*at)
			at = &spool->first;
		body = read_record(spool->files[(*at)->segment], (*at)->offset, &head, &err);
		if (body) {
			body->spool_sequence = spool->lent = (*at)->sequence;
			return body;
		}
		if (err == -ENOMEM)
			return NULL;
		spool->dropped_error++;
		spool->last_error = err;
		forget_record(spool, at);
	}
	return NULL;
}

static void take_back(struct push_spool *spool)
{
	spool->lent = 0;
	spool->lent_gone = false;
}

/* Marks a record on the disk as one that does not wait any more, and forgets it. */
static void end_record(struct push_spool *spool, struct push_spool_record **at)
{
	const uint32_t state = STATE_DONE;
	int err = io_write_at(spool->files[(*at)->segment], &state, sizeof(state),
			      (*at)->offset + offsetof(struct head, state));

	if (err)
		spool->last_error = err;
	forget_record(spool, at);
}

void push_spool_done(struct push_spool *spool)
{
	struct push_spool_record **at = find_record(spool, spool->lent);

	take_back(spool);
	if (*at)
		end_record(spool, at);
}

void push_spool_keep(struct push_spool *spool)
{
	spool->dropped_full += spool->lent_gone;
	spool->cursor = spool->left = spool->lent;
	take_back(spool);
}

bool push_spool_judge_left(struct push_spool *spool, bool taken_at_once)
{
	struct push_spool_record **at = find_record(spool, spool->left);

	spool->left = 0;
	if (!*at || !taken_at_once)
		return false;
	if (!(*at)->is_suspect) {
		(*at)->is_suspect = true;
		return false;
	}
	end_record(spool, at);
	return true;
}
