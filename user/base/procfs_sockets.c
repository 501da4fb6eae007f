// SPDX-License-Identifier: Apache-2.0
/* Reads /proc/PID/net/tcp and its like. */
#include "base/procfs_sockets.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"

struct table {
	const char *name;
	uint8_t file;    /* enum pybpf_file_type */
	uint8_t flags;   /* enum pybpf_wait_flags */
	uint32_t family; /* of PYBPF_FILE_SOCKET */
};

static const struct table tables[] = {
	{"tcp", PYBPF_FILE_INET, 0, 0},
	{"tcp6", PYBPF_FILE_INET6, 0, 0},
	{"udp", PYBPF_FILE_INET, PYBPF_WAIT_DATAGRAM, 0},
	{"udp6", PYBPF_FILE_INET6, PYBPF_WAIT_DATAGRAM, 0},
	{"netlink", PYBPF_FILE_SOCKET, 0, AF_NETLINK},
	{"packet", PYBPF_FILE_SOCKET, 0, AF_PACKET},
};

/* TCP_LISTEN of include/net/tcp_states.h. */
#define LISTENS 10

/* Reads an address as /proc/net/tcp has it: words of 32 bits in hexadecimal, each in the machine's byte order. */
static bool parse_address(const char *text, bool six, struct pybpf_wait *out)
{
	size_t words = six ? 4 : 1;

	if (strlen(text) != words * 8)
		return false;
	for (size_t i = 0; i < words; i++) {
		char word[9] = "";
		uint32_t value;

		memcpy(word, text + 8 * i, 8);
		value = (uint32_t)strtoul(word, NULL, 16);
		memcpy(out->address + 4 * i, &value, sizeof(value));
	}
	return true;
}

/* net/tcp6_sock.c and its like: "sl local:port remote:port st queues timer retransmits uid timeout inode ...". */
static bool parse_inet(const char *line, const struct table *table, struct procfs_socket *out)
{
	char local[33], remote[33];
	unsigned local_port, remote_port, state;
	bool listens;

	memset(out, 0, sizeof(*out));
	if (sscanf(line, "%*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %*u %*u %" SCNu64, local, &local_port,
		   remote, &remote_port, &state, &out->inode) != 6)
		return false;
	listens = state == LISTENS || (table->flags & PYBPF_WAIT_DATAGRAM && !remote_port);
	out->local_port = local_port;
	out->wait.file = table->file;
	out->wait.flags = (uint8_t)(table->flags | (listens ? PYBPF_WAIT_LISTENING : 0));
	out->wait.number = listens ? local_port : remote_port;
	return parse_address(listens ? local : remote, table->file == PYBPF_FILE_INET6, &out->wait);
}

/* net/netlink/af_netlink.c, net/packet/af_packet.c: the inode comes last. */
static bool parse_other(const char *line, const struct table *table, struct procfs_socket *out)
{
	size_t end = strlen(line);

	while (end && !isdigit((unsigned char)line[end - 1]))
		end--;
	while (end && isdigit((unsigned char)line[end - 1]))
		end--;
	*out = (struct procfs_socket){.inode = strtoull(line + end, NULL, 10),
				      .wait = {.file = table->file, .number = table->family}};
	return out->inode;
}

static int by_inode(const void *a, const void *b)
{
	uint64_t x = ((const struct procfs_socket *)a)->inode, y = ((const struct procfs_socket *)b)->inode;

	return (x > y) - (x < y);
}

int procfs_read_sockets(pid_t pid, struct procfs_socket **out, size_t *count)
{
	size_t room = 0, line_room = 0;
	char path[64], *line = NULL;
	int err = 0;

	*out = NULL;
	*count = 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !err; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, tables[i].name);
		file = fopen(path, "re");
		while (file && !err && getline(&line, &line_room, file) > 0) {
			struct procfs_socket socket = {0};

			if (!(tables[i].family ? parse_other : parse_inet)(line, &tables[i], &socket))
				continue;
			err = array_reserve(out, &room, *count + 1, sizeof(**out));
			if (!err)
				(*out)[(*count)++] = socket;
		}
		if (file)
			fclose(file);
	}
	free(line);
	if (*count)
		qsort(*out, *count, sizeof(**out), by_inode);
	return err;
}

const struct procfs_socket *procfs_find_socket(const struct procfs_socket *sockets, size_t count, uint64_t inode)
{
	const struct procfs_socket key = {.inode = inode};

	return count ? bsearch(&key, sockets, count, sizeof(key), by_inode) : NULL;
}
