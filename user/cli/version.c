// SPDX-License-Identifier: Apache-2.0
/*
 * --version and `pybpf version`, which say how pybpf was linked, and with -v the versions of the libraries. The list
 * marks those that are linked in: an update of the system does not change them. Libraries for the network are told only
 * if they are linked in, since they are loaded by those processes alone that use them.
 */
#include <bpf/libbpf.h>
#include <curses.h>
#include <dlfcn.h>
#include <elfutils/version.h>
#include <jansson.h>
#include <libelf.h>
#include <limits.h>
#include <link.h>
#include <lzma.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "network/network.h"
#include "serve/serve.h"

/* Returns whether this program needs no library of the host. */
static bool is_static(void)
{
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_NEEDED)
			return false;
	}
	return true;
}

/*
 * Prints the version of the library that contains `function`. version NULL: the library has no call for it; elfutils
 * has its version in the file's name, and linked in it is that of the headers, as 188 for 0.188.
 */
static void print_library(const char *name, const char *version, void (*function)(void))
{
	Dl_info own, library;
	char path[PATH_MAX];
	bool shared = dladdr((void *)cli_version, &own) && dladdr((void *)function, &library) &&
		      own.dli_fbase != library.dli_fbase;

	if (!version)
		version = !shared                             ? "0." CLI_NUMBER(_ELFUTILS_VERSION)
			  : realpath(library.dli_fname, path) ? strrchr(path, '/') + 1
							      : "unknown";
	printf("  %-10s %s, %s\n", name, version, shared ? "shared" : "linked in");
}

void cli_version(bool libraries)
{
	struct network_library network[NETWORK_LIBRARIES_MAX];
	size_t count;

	printf("pybpf %s%s\n", PYBPF_VERSION, is_static() ? " (static)" : "");
	if (!libraries)
		return;
	print_library("libbpf", libbpf_version_string() + 1, (void (*)(void))libbpf_version_string);
	print_library("libelf", NULL, (void (*)(void))elf_version);
	print_library("zlib", zlibVersion(), (void (*)(void))zlibVersion);
	print_library("liblzma", lzma_version_string(), (void (*)(void))lzma_version_string);
	print_library("jansson", jansson_version_str(), (void (*)(void))json_loads);
	print_library("libyaml-0", yaml_get_version_string(), (void (*)(void))yaml_get_version_string);
	print_library("protobuf-c", protobuf_c_version(), (void (*)(void))protobuf_c_version);
	/* With terminfo's library, which is of the same source. The text is "ncurses 6.4.20221231". */
	print_library("ncurses", strrchr(curses_version(), ' ') + 1, (void (*)(void))curses_version);
	count = network_linked(network);
	for (size_t i = 0; i < count; i++)
		printf("  %-10s %s, linked in\n", network[i].name, network[i].version);
	if (serve_linked())
		printf("  libmicrohttpd %s, linked in\n", serve_linked());
	/* It has no version, and is a static library only. */
	puts("  libiberty  linked in");
}

int cli_print_version(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-v"))
		return cli_usage("version takes no argument except -v, but was given %s", argv[1]);
	cli_version(argc > 1);
	return CLI_OK;
}
