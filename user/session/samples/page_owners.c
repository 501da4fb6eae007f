// SPDX-License-Identifier: Apache-2.0
/* Follows which stack touched each page of a process's memory first, until the page is given back. */
#include "session/samples/page_owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

/* Pages are kept in groups of neighbours, with 4 bytes each: 0.1 % of memory that is used without gaps. */
#define GROUP 64

/* The kernel maps pages of a file around the one that is touched: 64 KiB (fault_around_bytes, mm/memory.c). */
#define AROUND_PAGES 16
/* The least anonymous pages that the kernel makes resident at once, if not one (order 2, mm/huge_memory.c). */
#define LEAST_FOLIO 4

/* A stack, with its process and thread. */
struct owner {
	struct pybpf_count_key key;
	uint64_t pages;
	uint64_t at_most; /* when the process held most */
	bool changed;     /* since then */
};

struct group {
	uint64_t number;
	uint32_t used;
	uint32_t owners[GROUP]; /* index of the owner + 1; 0: none is known */
};

/* Pages that a thread's system call makes resident one after the other, without a fault that tells which. */
struct populated {
	uint32_t tid, owner;
	uint64_t next, end; /* the rest of the range; both 0 if it is not known yet */
	uint64_t pages;     /* that wait for the range */
};

struct process {
	uint64_t proc_id;
	struct intern owners; /* none is removed: groups have their indexes */
	struct intern groups;
	struct intern populated;
	uint64_t pages, most;
	uint32_t *changed; /* owners */
	size_t nr_changed, changed_room;
};

void session_page_owners_init(struct session_page_owners *o)
{
	memset(o, 0, sizeof(*o));
	intern_init(&o->processes, sizeof(struct process), sizeof(uint64_t));
	o->page = (uint64_t)sysconf(_SC_PAGESIZE);
}

static void free_process(struct process *p)
{
	intern_free(&p->owners);
	intern_free(&p->groups);
	intern_free(&p->populated);
	free(p->changed);
}

void session_page_owners_free(struct session_page_owners *o)
{
	for (uint32_t i = 0; i < o->processes.count; i++)
		free_process(intern_item(&o->processes, i));
	intern_free(&o->processes);
}

static struct process *find_process(const struct session_page_owners *o, uint64_t proc_id)
{
	uint32_t i = intern_find(&o->processes, &proc_id);

	return i == INTERN_NONE ? NULL : intern_item(&o->processes, i);
}

static struct process *add_process(struct session_page_owners *o, uint64_t proc_id)
{
	struct process process = {.proc_id = proc_id};
	bool fresh;
	uint32_t i;

	intern_init(&process.owners, sizeof(struct owner), sizeof(struct pybpf_count_key));
	intern_init(&process.groups, sizeof(struct group), sizeof(uint64_t));
	intern_init(&process.populated, sizeof(struct populated), sizeof(uint32_t));
	i = intern_add(&o->processes, &process, &fresh);
	return i == INTERN_NONE ? NULL : intern_item(&o->processes, i);
}

static struct group *find_group(const struct process *p, uint64_t number)
{
	uint32_t i = intern_find(&p->groups, &number);

	return i == INTERN_NONE ? NULL : intern_item(&p->groups, i);
}

static uint32_t owner_of(const struct process *p, uint64_t page)
{
	const struct group *group = find_group(p, page / GROUP);

	return group ? group->owners[page % GROUP] : 0;
}

static int change_owner(struct process *p, uint32_t index, int64_t pages)
{
	struct owner *owner = intern_item(&p->owners, index);

	owner->pages += (uint64_t)pages;
	p->pages += (uint64_t)pages;
	if (owner->changed)
		return 0;
	if (array_reserve(&p->changed, &p->changed_room, p->nr_changed + 1, sizeof(*p->changed)))
		return -ENOMEM;
	p->changed[p->nr_changed++] = index;
	owner->changed = true;
	return 0;
}

/* Gives a page of a group another owner (index + 1), or none (0). */
static int set_owner(struct session_page_owners *o, struct process *p, struct group *group, uint32_t at, uint32_t owner)
{
	uint32_t before = group->owners[at];
	int err = 0;

	if (before == owner)
		return 0;
	group->owners[at] = owner;
	group->used += !!owner - !!before;
	o->given += !!owner;
	o->taken += !!before;
	if (before)
		err = change_owner(p, before - 1, -1);
	return owner && !err ? change_owner(p, owner - 1, 1) : err;
}

/* Gives a page an owner. Without memory for it, the page is counted as refused. */
static int put_page(struct session_page_owners *o, struct process *p, uint64_t page, uint32_t owner, bool may_grow)
{
	struct group fresh = {.number = page / GROUP};
	struct group *group = find_group(p, fresh.number);
	uint32_t i;

	if (!group) {
		i = may_grow ? intern_add(&p->groups, &fresh, &(bool){false}) : INTERN_NONE;
		if (i == INTERN_NONE) {
			o->refused += o->page;
			return may_grow ? -ENOMEM : 0;
		}
		group = intern_item(&p->groups, i);
	}
	return set_owner(o, p, group, (uint32_t)(page % GROUP), owner);
}

/* A process that holds more than ever before: what its stacks hold is what they hold at most. */
static void keep_most(struct process *p)
{
	if (p->pages <= p->most)
		return;
	p->most = p->pages;
	while (p->nr_changed) {
		struct owner *owner = intern_item(&p->owners, p->changed[--p->nr_changed]);

		owner->at_most = owner->pages;
		owner->changed = false;
	}
}

struct range {
	uint64_t first, end; /* pages */
};

static uint64_t round_up(const struct session_page_owners *o, uint64_t bytes)
{
	return bytes / o->page + !!(bytes % o->page);
}

static struct range range_of(const struct session_page_owners *o, uint64_t start, uint64_t length)
{
	struct range range = {.first = round_up(o, start), .end = round_up(o, start + length)};

	if (start + length < start)
		range.end = UINT64_MAX / o->page;
	return range;
}

static bool meets(const struct group *group, const struct range *range)
{
	return group->number >= range->first / GROUP && group->number * GROUP < range->end;
}

/* Finds the numbers of all groups in a range, however large it is. The caller frees *numbers. */
static int list_groups(const struct process *p, const struct range *range, uint64_t **numbers, size_t *count)
{
	uint64_t first = range->first / GROUP, end = (range->end + GROUP - 1) / GROUP;
	bool few = range->first < range->end && end - first < p->groups.count;
	size_t room = few ? end - first : p->groups.count;

	*count = 0;
	*numbers = calloc(room + 1, sizeof(**numbers));
	if (!*numbers)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++) {
		const struct group *group = few ? find_group(p, first + i) : intern_item(&p->groups, (uint32_t)i);

		if (group && meets(group, range))
			(*numbers)[(*count)++] = group->number;
	}
	return 0;
}

/* Takes the pages of a group that are in the range from their owners, and copies these to taken. */
static int take_pages(struct session_page_owners *o, struct process *p, uint64_t number, const struct range *range,
		      uint32_t taken[GROUP])
{
	struct group *group = find_group(p, number);
	int err = 0;

	memset(taken, 0, GROUP * sizeof(*taken));
	if (!group)
		return 0;
	for (uint32_t i = 0; i < GROUP && !err; i++) {
		uint64_t page = number * GROUP + i;

		if (page < range->first || page >= range->end)
			continue;
		taken[i] = group->owners[i];
		err = set_owner(o, p, group, i, 0);
	}
	if (!group->used)
		intern_remove(&p->groups, intern_find(&p->groups, group));
	return err;
}

static int give_back(struct session_page_owners *o, struct process *p, const struct range *range)
{
	uint32_t taken[GROUP];
	uint64_t *numbers;
	size_t count;
	int err = list_groups(p, range, &numbers, &count);

	for (size_t i = 0; i < count && !err; i++)
		err = take_pages(o, p, numbers[i], range, taken);
	free(numbers);
	return err;
}

static int move(struct session_page_owners *o, struct process *p, const struct range *from, uint64_t target)
{
	const struct range to = {target, target + (from->end - from->first)};
	uint32_t taken[GROUP];
	uint64_t *numbers;
	size_t count;
	int err = give_back(o, p, &to);

	err = err ?: list_groups(p, from, &numbers, &count);
	if (err)
		return err;
	for (size_t i = 0; i < count && !err; i++) {
		err = take_pages(o, p, numbers[i], from, taken);
		for (uint32_t k = 0; k < GROUP && !err; k++) {
			uint64_t page = numbers[i] * GROUP + k;

			if (taken[k])
				err = put_page(o, p, target + (page - from->first), taken[k], true);
		}
	}
	free(numbers);
	return err;
}

/* Gives up to `pages` pages of the range that have no owner one. Returns 0 or -ENOMEM; *end: where it stopped. */
static int fill(struct session_page_owners *o, struct process *p, const struct range *range, uint64_t pages,
		uint32_t owner, bool may_grow, uint64_t *end)
{
	uint64_t page = range->first;
	int err = 0;

	for (; page < range->end && pages && !err; page++) {
		if (owner_of(p, page))
			continue;
		err = put_page(o, p, page, owner, may_grow);
		pages--;
	}
	*end = page;
	return err;
}

static bool is_free(const struct process *p, const struct range *range)
{
	for (uint64_t page = range->first; page < range->end; page++) {
		if (owner_of(p, page))
			return false;
	}
	return true;
}

static uint64_t power_of_two(uint64_t least)
{
	uint64_t power = 1;

	while (power < least && power < UINT64_MAX / 2)
		power *= 2;
	return power;
}

/* Most pages that the kernel makes resident at once: a huge page with 64 KiB pages, 512 MiB. */
#define MOST_FOLIO (1u << 17)

/*
 * Gives the page of a fault an owner, and the others that became resident with it. Anonymous ones are an aligned block,
 * none of which was resident. Where that cannot be, the size is that of several threads at once (memory_locate() in
 * bpf/memory.bpf.h), and only the page of the fault is certain.
 */
static int touch(struct session_page_owners *o, struct process *p, const struct pybpf_memory_event *event,
		 uint32_t owner, bool may_grow)
{
	uint64_t page = event->start / o->page, pages = event->bytes / o->page, block = power_of_two(pages), end;
	struct range around;
	int err;

	if (!event->anonymous && pages > 1 && block < AROUND_PAGES)
		block = AROUND_PAGES;
	around.first = page & ~(block - 1);
	around.end = around.first + block;
	if (pages < 2 || block > MOST_FOLIO)
		return put_page(o, p, page, owner, may_grow);
	if (event->anonymous && (block != pages || pages < LEAST_FOLIO || !is_free(p, &around)))
		return put_page(o, p, page, owner, may_grow);
	err = put_page(o, p, page, owner, may_grow);
	return err ?: fill(o, p, &around, pages - 1, owner, may_grow, &end);
}

static struct populated *find_populated(struct process *p, uint32_t tid, uint32_t owner)
{
	const struct populated fresh = {.tid = tid, .owner = owner};
	uint32_t i = intern_add(&p->populated, &fresh, &(bool){false});
	struct populated *found = i == INTERN_NONE ? NULL : intern_item(&p->populated, i);

	if (found && found->owner != owner)
		*found = fresh;
	return found;
}

static int populate(struct session_page_owners *o, struct process *p, const struct pybpf_memory_event *event,
		    uint32_t owner, bool may_grow)
{
	struct populated *populated = find_populated(p, event->tid, owner);
	struct range range = range_of(o, event->start, event->length);

	if (!populated)
		return -ENOMEM;
	if (!event->length) {
		populated->pages += event->bytes / o->page;
		return 0;
	}
	/* The kernel goes from the beginning of a range to its end. */
	if (populated->end != range.end || populated->next < range.first)
		populated->next = range.first;
	populated->end = range.end;
	range.first = populated->next;
	return fill(o, p, &range, event->bytes / o->page, owner, may_grow, &populated->next);
}

static int map_populated(struct session_page_owners *o, struct process *p, const struct pybpf_memory_event *event,
			 bool may_grow)
{
	const struct range range = range_of(o, event->start, event->length);
	uint32_t i = intern_find(&p->populated, &event->tid);
	struct populated populated;
	uint64_t end;

	if (i == INTERN_NONE)
		return 0;
	populated = *(struct populated *)intern_item(&p->populated, i);
	intern_remove(&p->populated, i);
	return fill(o, p, &range, populated.pages, populated.owner, may_grow, &end);
}

static int take_touched(struct session_page_owners *o, const struct pybpf_memory_event *event, bool may_grow)
{
	struct process *p = add_process(o, event->key.thread.proc_id);
	struct owner fresh = {.key = event->key};
	uint32_t owner = p ? intern_add(&p->owners, &fresh, &(bool){false}) : INTERN_NONE;
	int err;

	if (owner == INTERN_NONE)
		return -ENOMEM;
	err = event->what == PYBPF_MEMORY_TOUCHED ? touch(o, p, event, owner + 1, may_grow)
						  : populate(o, p, event, owner + 1, may_grow);
	keep_most(p);
	return err;
}

int session_page_owners_take(struct session_page_owners *o, const struct pybpf_memory_event *event, size_t size,
			     bool may_grow)
{
	struct range range;
	struct process *p;
	int err = 0;

	if (size < sizeof(*event))
		return -EBADMSG;
	if (event->what == PYBPF_MEMORY_TOUCHED || event->what == PYBPF_MEMORY_POPULATED)
		return take_touched(o, event, may_grow);
	p = find_process(o, event->key.thread.proc_id);
	if (!p)
		return 0;
	range = range_of(o, event->start, event->length);
	if (event->what == PYBPF_MEMORY_GIVEN_BACK)
		err = give_back(o, p, &range);
	else if (event->what == PYBPF_MEMORY_MOVED)
		err = move(o, p, &range, event->target / o->page);
	else if (event->what == PYBPF_MEMORY_MAPPED)
		err = map_populated(o, p, event, may_grow);
	keep_most(p);
	return err;
}

uint64_t session_page_owners_get(const struct session_page_owners *o, const struct pybpf_count_key *key, bool most)
{
	const struct process *p = find_process(o, key->thread.proc_id);
	uint32_t i = p ? intern_find(&p->owners, key) : INTERN_NONE;
	const struct owner *owner = i == INTERN_NONE ? NULL : intern_item(&p->owners, i);

	if (!owner)
		return 0;
	return (most && owner->changed ? owner->at_most : owner->pages) * o->page;
}

void session_page_owners_tell(const struct session_page_owners *o, uint64_t *given, uint64_t *given_back)
{
	*given = o->given * o->page;
	*given_back = o->taken * o->page;
}

void session_page_owners_forget(struct session_page_owners *o, uint64_t proc_id)
{
	uint32_t i = intern_find(&o->processes, &proc_id);

	if (i == INTERN_NONE)
		return;
	free_process(intern_item(&o->processes, i));
	intern_remove(&o->processes, i);
}
