// SPDX-License-Identifier: Apache-2.0
/* Tells tokens by their shape, which their issuers chose so that leaked ones are recognized. */
#include <string.h>

#include "symbols/secrets/py_secret_internal.h"

/* Most bytes that are looked at for one prefix: a text may have thousands of prefixes, one behind the other. */
#define TOKEN_BEGIN 256

/* What a token consists of, behind its prefix. */
enum signs {
	ALNUM,
	UPPER, /* capitals and digits */
	HEX,
	WORD, /* letters, digits, _ and - */
	PART, /* and points */
	BASE64,
	HASH, /* of a password: base64 and the signs between its parts */
};

/* A word with such a prefix, such as "sk-learn", has no digit and no capital in it. */
struct shape {
	const char *prefix;
	uint8_t signs, least;
	bool mixed;
};

static const struct shape shapes[] = {
	/* GitHub, GitLab */
	{"ghp_", ALNUM, 10, false},
	{"gho_", ALNUM, 10, false},
	{"ghu_", ALNUM, 10, false},
	{"ghs_", PART, 10, false},
	{"ghr_", ALNUM, 10, false},
	{"github_pat_", WORD, 10, false},
	{"glpat-", PART, 10, false},
	{"gldt-", WORD, 10, false},
	{"glrt-", PART, 10, false},
	/* Slack */
	{"xoxa-", WORD, 6, false},
	{"xoxb-", WORD, 6, false},
	{"xoxc-", WORD, 6, false},
	{"xoxd-", BASE64, 6, false},
	{"xoxe-", WORD, 6, false},
	{"xoxe.", PART, 6, false},
	{"xoxo-", WORD, 16, true},
	{"xoxp-", WORD, 6, false},
	{"xoxr-", WORD, 6, false},
	{"xoxs-", WORD, 6, false},
	{"xapp-", WORD, 10, false},
	/* OpenAI, Anthropic and other models */
	{"sk-", WORD, 16, true},
	{"gsk_", ALNUM, 16, false},
	{"xai-", WORD, 20, true},
	{"nvapi-", WORD, 16, false},
	{"hf_", ALNUM, 16, true},
	{"r8_", ALNUM, 16, true},
	/* Stripe, Square, Shopify */
	{"sk_live_", ALNUM, 8, false},
	{"sk_test_", ALNUM, 8, false},
	{"rk_live_", ALNUM, 8, false},
	{"rk_test_", ALNUM, 8, false},
	{"whsec_", BASE64, 8, false},
	{"sq0atp-", WORD, 8, false},
	{"sq0csp-", WORD, 8, false},
	{"shpat_", HEX, 8, false},
	{"shpca_", HEX, 8, false},
	{"shppa_", HEX, 8, false},
	{"shpss_", HEX, 8, false},
	/* Google */
	{"AIza", WORD, 20, true},
	{"ya29.", WORD, 10, false},
	{"GOCSPX-", WORD, 10, false},
	{"1//0", WORD, 20, false},
	/* Registries of packages and images */
	{"npm_", ALNUM, 20, true},
	{"pypi-", WORD, 20, true},
	{"rubygems_", HEX, 16, false},
	{"dckr_pat_", WORD, 10, false},
	{"oy2", ALNUM, 43, true},
	/* Clouds and services */
	{"dop_v1_", HEX, 16, false},
	{"doo_v1_", HEX, 16, false},
	{"dor_v1_", HEX, 16, false},
	{"dapi", HEX, 32, false},
	{"hvs.", WORD, 10, false},
	{"hvb.", WORD, 10, false},
	{"hvr.", WORD, 10, false},
	{"glsa_", WORD, 10, false},
	{"glc_", BASE64, 16, false},
	{"NRAK-", UPPER, 10, false},
	{"PMAK-", WORD, 10, false},
	{"SG.", PART, 20, true},
	{"key-", HEX, 32, false},
	{"lin_api_", ALNUM, 10, false},
	{"figd_", WORD, 10, false},
	{"sntrys_", BASE64, 10, false},
	{"sntryu_", HEX, 10, false},
	{"tskey-", WORD, 8, false},
	{"ATATT3", BASE64, 10, false},
	{"EAACEdEose0cBA", ALNUM, 1, false},
	{"AGE-SECRET-KEY-1", UPPER, 10, false},
	{"secret_", ALNUM, 32, true},
	/* JSON in base64url, as JWT and JWE begin; the second with a blank after its brace */
	{"eyJ", PART, 17, false},
	{"eyA", PART, 17, true},
	/* Passwords that were hashed: bcrypt, SHA, Argon2, scrypt, yescrypt, and as Django and Werkzeug write them */
	{"$2a$", HASH, 10, false},
	{"$2b$", HASH, 10, false},
	{"$2y$", HASH, 10, false},
	{"$1$", HASH, 10, false},
	{"$5$", HASH, 10, false},
	{"$6$", HASH, 10, false},
	{"$7$", HASH, 10, false},
	{"$y$", HASH, 10, false},
	{"$argon2", HASH, 10, false},
	{"$pbkdf2", HASH, 10, false},
	{"$scrypt$", HASH, 10, false},
	{"pbkdf2_sha", HASH, 10, false},
	{"pbkdf2:sha", HASH, 10, false},
	{"scrypt:", HASH, 20, true},
	{"bcrypt_sha256$", HASH, 10, false},
	{"argon2$", HASH, 10, false},
	/* Paths that are passwords */
	{"hooks.slack.com/services/", HASH, 5, false},
	{"discord.com/api/webhooks/", HASH, 5, false},
	{"discordapp.com/api/webhooks/", HASH, 5, false},
};

static bool is_sign(char c, enum signs signs)
{
	switch (signs) {
	case ALNUM:
		return py_secret_is_alnum(c);
	case UPPER:
		return (c >= 'A' && c <= 'Z') || py_secret_is_digit(c);
	case HEX:
		return py_secret_is_digit(c) || (py_secret_lower(c) >= 'a' && py_secret_lower(c) <= 'f');
	case WORD:
		return py_secret_is_alnum(c) || c == '_' || c == '-';
	case PART:
		return py_secret_is_alnum(c) || (c && strchr("_-.", c));
	case BASE64:
		return py_secret_is_alnum(c) || (c && strchr("_-+/=%", c));
	case HASH:
		return py_secret_is_alnum(c) || (c && strchr("_-+/=.$,:", c));
	}
	return false;
}

static size_t count_signs(const char *text, size_t size, enum signs signs)
{
	size_t count = 0;

	while (count < size && is_sign(text[count], signs))
		count++;
	return count;
}

static bool is_mixed(const char *text, size_t size)
{
	bool small = false, capital = false;

	for (size_t i = 0; i < size; i++) {
		if (py_secret_is_digit(text[i]))
			return true;
		small = small || (text[i] >= 'a' && text[i] <= 'z');
		capital = capital || (text[i] >= 'A' && text[i] <= 'Z');
	}
	return small && capital;
}

/* Identifiers of AWS: four letters, and 16 of base32, of which hardly any has no digit. */
static size_t aws_size(const char *text, size_t size)
{
	static const char prefixes[][5] = {"AKIA", "ASIA", "ABIA", "ACCA", "AROA", "AIDA"};
	size_t count;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (size < 4 || memcmp(text, prefixes[i], 4) != 0)
			continue;
		count = count_signs(text + 4, size - 4, UPPER);
		return count == 16 || (count >= 12 && is_mixed(text + 4, count)) ? 4 + count : 0;
	}
	return 0;
}

/* Telegram's bots: a number, a colon, 35 signs. */
static size_t bot_size(const char *text, size_t size)
{
	size_t digits = 0, rest;

	while (digits < size && py_secret_is_digit(text[digits]))
		digits++;
	if (digits < 6 || digits > 12 || digits == size || text[digits] != ':')
		return 0;
	rest = count_signs(text + digits + 1, size - digits - 1, WORD);
	return rest >= 30 ? digits + 1 + rest : 0;
}

/* Keys and certificates in lines of base64, to their end if it is there; PuTTY's have no mark at theirs. */
static size_t block_size(const char *text, size_t size)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----END ", putty[] = "PuTTY-User-Key-File-";
	const char *at;

	if (size >= sizeof(putty) - 1 && !memcmp(text, putty, sizeof(putty) - 1))
		return size;
	if (size < sizeof(begin) - 1 || memcmp(text, begin, sizeof(begin) - 1) != 0)
		return 0;
	at = memmem(text, size, end, sizeof(end) - 1);
	if (!at)
		return size;
	at += sizeof(end) - 1;
	while (at < text + size && (py_secret_is_alnum(*at) || *at == ' ' || *at == '-'))
		at++;
	return (size_t)(at - text);
}

size_t py_secret_shape(const char *text, size_t size)
{
	size_t found = 0;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) && !found; i++) {
		const struct shape *shape = &shapes[i];
		size_t len, count;

		if (text[0] != shape->prefix[0])
			continue;
		len = strlen(shape->prefix);
		if (size < len || memcmp(text, shape->prefix, len) != 0)
			continue;
		count = size - len < TOKEN_BEGIN ? size - len : TOKEN_BEGIN;
		count = count_signs(text + len, count, (enum signs)shape->signs);
		if (count >= shape->least && (!shape->mixed || is_mixed(text + len, count)))
			found = len + count_signs(text + len, size - len, (enum signs)shape->signs);
	}
	return found ?: aws_size(text, size) ?: bot_size(text, size) ?: block_size(text, size);
}
