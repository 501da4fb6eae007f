// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out which CPython is in an ELF file. Each source can mislead (a renamed library, a string of another program's
 * version), so two must agree, unless one is a source that CPython's own build wrote for tools such as pybpf.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "discovery/internal.h"

enum source {
	SOURCE_OFFSETS,    /* _Py_DebugOffsets.version (3.13+) */
	SOURCE_PY_VERSION, /* Py_Version, the exported PY_VERSION_HEX (3.11+) */
	SOURCE_SONAME,     /* libpythonX.Y */
	SOURCE_SYMBOLS,    /* symbols of the API */
	SOURCE_CACHE_TAG,  /* "cpython-XY", Python/sysmodule.c, since 3.3 */
	SOURCE_STRING,     /* PY_VERSION */
	SOURCE_COUNT
};

static const char *const source_names[SOURCE_COUNT] = {
	"debug offsets", "Py_Version", "soname", "exported API", "cache tag", "version string",
};

struct found {
	int major, minor; /* major 0: this source says nothing */
};

/* Reads "X.Y" at text; returns what follows, or NULL. */
static const char *parse_major_minor(const char *text, struct found *out)
{
	char *end;
	long minor;

	if ((text[0] != '2' && text[0] != '3') || text[1] != '.' || !isdigit((unsigned char)text[2]))
		return NULL;
	minor = strtol(text + 2, &end, 10);
	if (minor > 99)
		return NULL;
	*out = (struct found){.major = text[0] - '0', .minor = minor};
	return end;
}

/* Reads PY_VERSION: X.Y.Z, then aN, bN, rcN or nothing, then + or nothing, then the end. */
static bool parse_version(const char *text, struct found *out, int *micro)
{
	const char *p = parse_major_minor(text, out);
	char *end;
	long number;

	if (!p || p[0] != '.' || !isdigit((unsigned char)p[1]))
		return false;
	number = strtol(p + 1, &end, 10);
	if (number > 255)
		return false;
	*micro = number;
	p = end;
	if (*p == 'a' || *p == 'b' || (*p == 'c' && isdigit((unsigned char)p[1])) || (p[0] == 'r' && p[1] == 'c')) {
		p += *p == 'r' ? 2 : 1;
		if (!isdigit((unsigned char)*p))
			return false;
		while (isdigit((unsigned char)*p))
			p++;
	}
	return !*p || (p[0] == '+' && !p[1]);
}

/* Writes PY_VERSION_HEX as PY_VERSION spells it (Include/patchlevel.h). */
static void text_from_hex(uint32_t hex, char *out, size_t size)
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *level = levels[hex >> 4 & 0xf];
	int len = snprintf(out, size, "%u.%u.%u", hex >> 24, hex >> 16 & 0xff, hex >> 8 & 0xff);

	if (level && (size_t)len < size)
		snprintf(out + len, size - len, "%s%u", level, hex & 0xf);
}

static void soname_version(struct elf_file *elf, struct found *out)
{
	const char *soname = elf_file_soname(elf);

	if (soname && !strncmp(soname, "libpython", 9))
		parse_major_minor(soname + 9, out);
}

static bool has_name(const char *name, const void *symbols)
{
	return discovery_symbol(symbols, name, NULL);
}

/* Finds the newest version whose API is present. A build can hide names, so this is a lower bound. */
static void symbols_version(const struct discovery_symbols *symbols, bool old, struct found *out)
{
	const struct cpython_facts *facts;

	if (!symbols->named)
		return;
	if (old && discovery_symbol(symbols, "PyString_FromString", NULL)) {
		/* PyCapsule came with 2.7, which was the last Python 2. */
		*out = (struct found){.major = 2, .minor = discovery_symbol(symbols, "PyCapsule_New", NULL) ? 7 : 6};
		return;
	}
	if (old) {
		/* os.fspath came with 3.6, _PyRuntime (not old) with 3.7. */
		*out = (struct found){.major = 3, .minor = discovery_symbol(symbols, "PyOS_FSPath", NULL) ? 6 : 5};
		return;
	}
	facts = cpython_by_api(has_name, symbols);
	if (facts)
		*out = (struct found){facts->major, facts->minor};
}

struct string_search {
	struct found known; /* what other sources say; major 0: nothing */
	struct found version, tag;
	int micro;
	char text[32];
	bool want_tag, want_debug, debug, many;
};

/*
 * Takes the PY_VERSION in which this string ends, if any. Linkers let a longer string ("/opt/python/3.8.18") share its
 * end.
 */
static void visit_version(const char *text, struct string_search *search)
{
	size_t len = strlen(text), start = len;
	struct found found;
	int micro;

	/* Nearly every string stops here. */
	if (!isdigit((unsigned char)text[len - 1]) && text[len - 1] != '+')
		return;
	/* No PY_VERSION is longer than "3.15.10rc10+". */
	while (start && len - start < 16 &&
	       (isalnum((unsigned char)text[start - 1]) || text[start - 1] == '.' || text[start - 1] == '+'))
		start--;
	if (!parse_version(text + start, &found, &micro))
		return;
	if (search->known.major) {
		if (found.major != search->known.major || found.minor != search->known.minor)
			return;
	} else if (search->version.major &&
		   (found.major != search->version.major || found.minor != search->version.minor)) {
		/* Unicode's version is among the strings, too ("3.2.0" in unicodedata): Python's is not known yet. */
		search->many = true;
		return;
	}
	if (search->version.major)
		return;
	search->version = found;
	search->micro = micro;
	snprintf(search->text, sizeof(search->text), "%s", text + start);
}

static int visit_string(const char *text, void *arg)
{
	struct string_search *search = arg;

	if (!strncmp(text, "cpython-", 8) && (text[8] == '2' || text[8] == '3') && text[9]) {
		size_t digits = strspn(text + 9, "0123456789");

		/* PEP 3147: major and minor without a dot. */
		if (!text[9 + digits] && digits && digits < 3)
			search->tag = (struct found){.major = text[8] - '0', .minor = atoi(text + 9)};
		if (!search->known.major && search->tag.major) {
			search->known = search->tag;
			if (search->version.major != search->known.major ||
			    search->version.minor != search->known.minor)
				search->version.major = 0;
		}
	} else if (!strcmp(text, "gettotalrefcount")) {
		/* sys.gettotalrefcount: builds with Py_REF_DEBUG alone, which Py_DEBUG implies. */
		search->debug = true;
	} else {
		visit_version(text, search);
	}
	return search->known.major && search->version.major && (search->tag.major || !search->want_tag) &&
	       (search->debug || !search->want_debug);
}

/*
 * Scans read-only data, and scans it once more when the version string came before the cache tag that tells it from
 * others.
 */
static void search_strings(struct elf_file *elf, struct string_search *search)
{
	elf_file_strings(elf, 5, visit_string, search);
	if (search->known.major && !search->version.major)
		elf_file_strings(elf, 5, visit_string, search);
}

/* The first source that says something, the symbols last; SOURCE_COUNT for none. */
static int first_source(const struct found *found)
{
	for (int i = 0; i < SOURCE_COUNT; i++)
		if (found[i].major && i != SOURCE_SYMBOLS)
			return i;
	return found[SOURCE_SYMBOLS].major ? SOURCE_SYMBOLS : SOURCE_COUNT;
}

/* Drops the symbols' version when another source tells a newer one: a build that hides names makes it too low. */
static void drop_least(struct found *found)
{
	struct found *least = &found[SOURCE_SYMBOLS];
	int first = first_source(found);

	if (first != SOURCE_COUNT && least->major == found[first].major && least->minor < found[first].minor)
		least->major = 0;
}

/* Names the sources in text, or says in *error which two contradict each other. Returns their number or
 * -ENOTSUP. */
static int agree(const struct found *found, char *text, size_t size, struct error *error)
{
	int first = first_source(found), count = 0;
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < SOURCE_COUNT; i++) {
		if (!found[i].major)
			continue;
		if (found[i].major != found[first].major || found[i].minor != found[first].minor)
			return error_set(error, -ENOTSUP,
					 "its %s says Python %d.%d but its %s says %d.%d; pybpf reads no Python "
					 "whose version "
					 "is in doubt",
					 source_names[first], found[first].major, found[first].minor, source_names[i],
					 found[i].major, found[i].minor);
		if (len < size)
			len += snprintf(text + len, size - len, "%s%s", count ? ", " : "", source_names[i]);
		count++;
	}
	return count;
}

static int count_sources(const struct found *found)
{
	int count = 0;

	for (int i = 0; i < SOURCE_COUNT; i++)
		count += !!found[i].major;
	return count;
}

/* Py_Version's value, or 0. */
static uint32_t exported_hex(const struct discovery_symbols *symbols)
{
	struct elf_symbol symbol;
	uint64_t value;

	if (!discovery_symbol(symbols, "Py_Version", &symbol) ||
	    elf_file_read(symbols->elf, symbol.value, &value, sizeof(value)) != sizeof(value) || value >> 24 < 2 ||
	    value >> 24 > 9)
		return 0;
	return value;
}

int discovery_find_version(const struct discovery_symbols *symbols, uint32_t offsets_hex, bool old,
			   struct discovery_version *out, struct error *error)
{
	struct found found[SOURCE_COUNT] = {{0}};
	struct string_search search = {.micro = -1};
	uint32_t exported = exported_hex(symbols), hex = offsets_hex ? offsets_hex : exported;
	int first, count;

	*out = (struct discovery_version){.micro = -1};
	if (offsets_hex)
		found[SOURCE_OFFSETS] = (struct found){offsets_hex >> 24, offsets_hex >> 16 & 0xff};
	if (exported)
		found[SOURCE_PY_VERSION] = (struct found){exported >> 24, exported >> 16 & 0xff};
	soname_version(symbols->elf, &found[SOURCE_SONAME]);
	symbols_version(symbols, old, &found[SOURCE_SYMBOLS]);
	drop_least(found);
	/* Py_DEBUG implies Py_REF_DEBUG, whose counter and failure function no other build exports. */
	out->debug_build = discovery_symbol(symbols, "_Py_RefTotal", NULL) ||
			   discovery_symbol(symbols, "_Py_NegativeRefcount", NULL);

	if (!hex || count_sources(found) < 2 || !symbols->named) {
		first = first_source(found);
		/* Without _PyRuntime the symbols are exact; otherwise they give a lower bound. */
		if (first != SOURCE_COUNT && (first != SOURCE_SYMBOLS || old))
			search.known = found[first];
		search.want_tag = count_sources(found) < 2 && !old;
		search.want_debug = !symbols->named;
		search_strings(symbols->elf, &search);
		found[SOURCE_CACHE_TAG] = search.tag;
		if (!search.many || search.known.major)
			found[SOURCE_STRING] = search.version;
		drop_least(found);
		out->debug_build |= search.debug && !symbols->named;
	}
	count = agree(found, out->source, sizeof(out->source), error);
	if (count < 0)
		return count;
	if (!count || (count < 2 && !hex))
		return error_set(error, -ENOTSUP, "the symbols that identify its version were stripped%s%s",
				 count ? ": found only its " : "", out->source);
	first = first_source(found);
	out->major = found[first].major;
	out->minor = found[first].minor;
	if (hex) {
		out->micro = hex >> 8 & 0xff;
		text_from_hex(hex, out->text, sizeof(out->text));
	} else if (found[SOURCE_STRING].major) {
		out->micro = search.micro;
		snprintf(out->text, sizeof(out->text), "%s", search.text);
	} else {
		snprintf(out->text, sizeof(out->text), "%d.%d", out->major, out->minor);
	}
	return 0;
}
