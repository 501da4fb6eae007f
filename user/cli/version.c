// SPDX-License-Identifier: Apache-2.0
/* --version, and with -v the libraries: those that are linked in, which an update of the system does not reach, too. */
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <jansson.h>
#include <libelf.h>
#include <limits.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli/cli.h"

/* A library's, of which one function is given; NULL: it cannot tell, but elfutils has it in the name of the file. */
static void print_library(const char *name, const char *version, void (*function)(void))
{
	Dl_info own, library;
	char path[PATH_MAX];
	bool shared = dladdr((void *)cli_version, &own) && dladdr((void *)function, &library) &&
		      own.dli_fbase != library.dli_fbase;

	if (!version)
		version = shared && realpath(library.dli_fname, path) ? strrchr(path, '/') + 1 : "unknown";
	printf("  %-10s %s, %s\n", name, version, shared ? "shared" : "linked in");
}

void cli_version(bool libraries)
{
	puts("pybpf " PYBPF_VERSION);
	if (!libraries)
		return;
	print_library("libbpf", libbpf_version_string() + 1, (void (*)(void))libbpf_version_string);
	print_library("libelf", NULL, (void (*)(void))elf_version);
	print_library("zlib", zlibVersion(), (void (*)(void))zlibVersion);
	print_library("jansson", JANSSON_VERSION, (void (*)(void))json_loads);
	print_library("protobuf-c", protobuf_c_version(), (void (*)(void))protobuf_c_version);
}
