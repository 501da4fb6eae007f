// SPDX-License-Identifier: Apache-2.0
/* Asks the kernel for unix sockets by netlink (net/unix/diag.c). */
#include "dump/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scan.h"
#include "session/waits/wait_name.h"

/*
 * Most networks. A process may have 1,024 descriptors by default, and a host has about one network per container. What
 * is beyond is not asked for, and its sockets have no name.
 */
#define NETWORKS_MAX 256
/* TCP_LISTEN of include/net/tcp_states.h, which unix sockets use, too. */
#define LISTENS 10
/* An answer has a header, a name of 108 bytes, and the inode of a peer. */
#define ANSWER_MAX 1024

struct network {
	dev_t dev; /* of its file in /proc, by which it is known */
	ino_t ino;
	int fd;
};

struct dump_peers {
	struct network networks[NETWORKS_MAX];
	size_t count;
	bool moved; /* this process may be in another network than its own */
};

static int open_socket(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	return fd;
}

/* Opens the file of the process's network, and says which one it is. */
static int open_network(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, st))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int add_network(struct dump_peers *peers, const struct stat *st, int fd)
{
	if (fd >= 0)
		peers->networks[peers->count++] = (struct network){.dev = st->st_dev, .ino = st->st_ino, .fd = fd};
	return fd < 0 ? fd : 0;
}

static bool has_network(const struct dump_peers *peers, const struct stat *st)
{
	for (size_t i = 0; i < peers->count; i++) {
		if (peers->networks[i].dev == st->st_dev && peers->networks[i].ino == st->st_ino)
			return true;
	}
	return false;
}

/* Adds the process's network, unless it is there. Returns 0, or negative errno when no other one can be added. */
static int add_network_of(struct dump_peers *peers, pid_t pid)
{
	char path[64];
	struct stat st;
	int err = 0, fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	/* Most processes are in a network that is there. */
	if (stat(path, &st) || has_network(peers, &st))
		return 0;
	if (peers->count == NETWORKS_MAX)
		return -ENOSPC;
	fd = open_network(path, &st);
	if (fd < 0)
		return 0;
	if (has_network(peers, &st))
		;
	else if (setns(fd, CLONE_NEWNET))
		err = -errno;
	else {
		peers->moved = true;
		err = add_network(peers, &st, open_socket());
	}
	close(fd);
	return err;
}

static int add_process(const struct scan_process *process, void *arg)
{
	/* Those of the kernel are in the first network, and those that have ended in none. */
	return process->kernel_thread || process->ended ? 0 : add_network_of(arg, process->pid);
}

int dump_peers_open(const uint32_t *pids, size_t count, struct dump_peers **out)
{
	struct dump_peers *peers = calloc(1, sizeof(*peers));
	struct stat st;
	int own, err = 0;

	*out = peers;
	if (!peers)
		return -ENOMEM;
	own = open_network("/proc/self/ns/net", &st);
	if (own < 0 || add_network(peers, &st, open_socket()))
		goto done;
	/* The rest is more than without it: a network that cannot be entered is left out. */
	for (size_t i = 0; i < count && !err; i++)
		err = add_network_of(peers, (pid_t)pids[i]);
	if (!err)
		scan_each_process(add_process, peers, NULL);
	/* Names of users may be looked up in the network. */
	err = setns(own, CLONE_NEWNET) && peers->moved ? -errno : 0;
done:
	if (own >= 0)
		close(own);
	return err;
}

void dump_peers_close(struct dump_peers *peers)
{
	for (size_t i = 0; peers && i < peers->count; i++)
		close(peers->networks[i].fd);
	free(peers);
}

/* Longest name of a unix socket: sun_path of include/uapi/linux/un.h. */
#define SOCKET_NAME_MAX 108

/* What the kernel says of a socket. */
struct answer {
	struct unix_diag_msg head;
	char name[SOCKET_NAME_MAX];
	size_t name_size; /* 0: it has none */
	uint32_t peer;    /* inode; 0: none */
};

static int send_question(int fd, uint32_t inode)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req request;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = UINT32_MAX,
			    .udiag_ino = inode,
			    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
			    .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
	};

	question.head.nlmsg_seq = inode;
	return send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question) ? 0 : -errno;
}

/* The length of a name is that of the attribute: one in a folder ends with a NUL, an abstract one begins with it. */
static void take_attribute(const struct nlattr *attribute, struct answer *out)
{
	const char *data = (const char *)attribute + NLA_HDRLEN;
	size_t size = attribute->nla_len - NLA_HDRLEN;

	if (attribute->nla_type == UNIX_DIAG_NAME) {
		out->name_size = size < sizeof(out->name) ? size : sizeof(out->name);
		memcpy(out->name, data, out->name_size);
		if (size && out->name[0] && !out->name[out->name_size - 1])
			out->name_size--;
	} else if (attribute->nla_type == UNIX_DIAG_PEER && size >= sizeof(out->peer)) {
		memcpy(&out->peer, data, sizeof(out->peer));
	}
}

static bool parse_answer(const char *bytes, size_t size, uint32_t inode, struct answer *out)
{
	struct nlmsghdr head;
	struct nlattr attribute;
	size_t at = NLMSG_HDRLEN + sizeof(out->head);

	memset(out, 0, sizeof(*out));
	if (size < at)
		return false;
	memcpy(&head, bytes, sizeof(head));
	memcpy(&out->head, bytes + NLMSG_HDRLEN, sizeof(out->head));
	if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_seq != inode || head.nlmsg_len > size ||
	    out->head.udiag_family != AF_UNIX || out->head.udiag_ino != inode)
		return false;
	for (; at + sizeof(attribute) <= head.nlmsg_len; at += NLA_ALIGN(attribute.nla_len)) {
		memcpy(&attribute, bytes + at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > head.nlmsg_len - at)
			return false;
		take_attribute((const struct nlattr *)(const void *)(bytes + at), out);
	}
	return true;
}

/* The kernel answers before send() returns, so that nothing is waited for. */
static bool ask(int fd, uint32_t inode, struct answer *out)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_MAX];
	ssize_t size;

	/* What an earlier question has left, for one. */
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (send_question(fd, inode))
		return false;
	size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return size > 0 && parse_answer(bytes, (size_t)size, inode, out);
}

/* Sockets have numbers that are unique in all networks. */
static bool ask_all(const struct dump_peers *peers, uint32_t inode, uint64_t until_ns, struct answer *out)
{
	for (size_t i = 0; i < peers->count && clock_ns(CLOCK_MONOTONIC) < until_ns; i++) {
		if (ask(peers->networks[i].fd, inode, out))
			return true;
	}
	return false;
}

bool dump_peers_describe(const struct dump_peers *peers, uint64_t inode, uint64_t until_ns, struct pybpf_wait *out)
{
	struct answer own, peer;

	if (!inode || inode > UINT32_MAX || !ask_all(peers, (uint32_t)inode, until_ns, &own))
		return false;
	out->file = PYBPF_FILE_UNIX;
	out->number = 0;
	out->flags = (uint8_t)((own.head.udiag_type == SOCK_DGRAM ? PYBPF_WAIT_DATAGRAM : 0) |
			       (own.head.udiag_state == LISTENS ? PYBPF_WAIT_LISTENING : 0));
	memset(out->text, 0, sizeof(out->text));
	if (own.name_size)
		session_set_wait_text(out, own.name, own.name_size);
	else if (own.peer && ask_all(peers, own.peer, until_ns, &peer))
		session_set_wait_text(out, peer.name, peer.name_size);
	return true;
}
