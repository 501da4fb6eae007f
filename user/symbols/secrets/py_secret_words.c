// SPDX-License-Identifier: Apache-2.0
/*
 * All words by which secrets are recognized: those that names of secrets are made of, those that say that a name is of
 * something else, and those that stand beside a secret or in place of one.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "symbols/secrets/py_secret_internal.h"

#define W(name) PY_WORD_##name

/* Words with a blank between. One may be in several lists. */
static const struct {
	uint32_t says;
	const char *words;
} lists[] = {
	/* clang-format off */
	{W(SECRET) | W(PART),
	 "apikey apikeys auth authentication authn authorization bearer contrasena cookie cookies cred "
	 "credential credentials creds csrf cvc cvv dsn hotp htpasswd jwt jwts kennwort keytab kubeconfig "
	 "mdp mfa mnemonic motdepasse oauth otp otps passcode passcodes passkey passkeys passphrase "
	 "passphrases passwd passwds password passwords passwort pem pfx privkey psk pw pwd pwds salt secret "
	 "secrets senha sesskey sid ssn totp xsrf"},
	{W(SECRET),
	 "cardpin clave contrase creditcard dek dockerconfigjson haslo heslo iban kek mypin netrc parol "
	 "parola pincode pinhash psw pswd pswrd puk simpin userpin wachtwoord"},
	{W(KEY) | W(PART),
	 "key keys"},
	{W(PASS) | W(PART),
	 "pass"},
	{W(TOKEN) | W(PART),
	 "token"},
	{W(TOKENS) | W(PART),
	 "tokens"},
	{W(PIN),
	 "pin"},
	{W(SIGNATURE),
	 "sig signature signatures"},
	{W(BEFORE_KEY),
	 "any arrow attr attribute cache caching candidate column composite config ctrl dedup dict "
	 "dictionary enter escape event feature field foreign group grouping home hot idempotency index join "
	 "json label locale lookup major map mapping memo message metric minor modifier musical natural "
	 "object option order ordering param parameter partition piano primary property pub public range "
	 "route routing row shard shift sort sorted sorting space surrogate tab tag translation unique"},
	{W(AFTER_KEY),
	 "binding bindings board down event events extractor fn frame frames func function getter note notes "
	 "pad press pressed selector stroke strokes up view views word words"},
	{W(AFTER_FIRST_KEY),
	 "code codes column columns field fields map order point points signature val vals value values"},
	{W(BEFORE_PASS),
	 "backward band boarding bus compiler day depth dry each first forward fourth high lighting low "
	 "mountain multi next nth one optimization per render rendering season second shadow single ski "
	 "third this two"},
	{W(AFTER_PASS),
	 "along band fail failed fails filter interception mark number over rate ratio through thru"},
	{W(BEFORE_TOKEN),
	 "begin bos cls comment end eos identifier keyword lexer mask next operator pad padding parser "
	 "punctuation sep separator special start stop string sub subword syntax unk unknown vocab "
	 "whitespace word"},
	{W(AFTER_TOKEN),
	 "embedding embeddings ids indices kind kinds logits mask probs span spans stream"},
	{W(BEFORE_TOKENS),
	 "bos cached completion eos generated input lexer new output pad parser prompt reasoning remaining "
	 "special stop sub syntax total used word"},
	{W(BESIDE_PIN),
	 "analog ball board bowling busy chip clock cs data dc digital drop gpio input layout led map memory "
	 "mode out output point push reset rolling rx safety scl sda tx"},
	{W(BEFORE_SIGNATURE),
	 "argument call callable class file func function inspect key method model param time type virus"},
	{W(FIRST),
	 "allow allows avg count disable disabled enable enabled had has have is max mean median min n need "
	 "needs no nr num per require requires skip total without"},
	{W(LAST),
	 "age alg algorithm attempts audience backend backends banner bucket budget class classes cls count "
	 "counts created day decoder dir directory disabled domain enabled encoder encoding endpoint "
	 "endpoints error errors exception exceptions expiration expire expired expires expiring expiry "
	 "factory file filename filenames files flow folder form format generator handler handlers hasher "
	 "hashers hour httponly idx index invalid issuer kind len length level lifetime limit limits manager "
	 "max method methods middleware min minute mode name names page parser path paths pattern policies "
	 "policy pos position prefix provider providers rate realm regex required retries rotation router "
	 "samesite scheme second secure seen size sizes status strength suffix timeout total tries ttl type "
	 "types updated usage used valid validator validators version view warning warnings widget"},
	{W(SERVER) | W(PART),
	 "amqp broker celery clickhouse conn connect connection database db elasticsearch hook jdbc kafka "
	 "ldap mariadb memcached mongo mongodb mssql mysql odbc oracle pg postgres postgresql rabbit "
	 "rabbitmq redis sentry smtp snowflake sql sqlalchemy webhook"},
	{W(CONNECTION),
	 "community conn connect connection database db jdbc odbc"},
	{W(ADDRESS) | W(PART),
	 "uri uris url urls"},
	{W(STRING) | W(PART),
	 "str string strings"},
	{W(SESSION) | W(PART),
	 "jsession sess session"},
	{W(ID) | W(PART),
	 "id ids"},
	{W(PROVES) | W(PART),
	 "access activation backup bitbucket confirmation gh github gitlab invite recovery reset security "
	 "seed sms unlock verification verify wallet"},
	{W(CODE) | W(PART),
	 "code codes pat phrase seed"},
	{W(CARD) | W(PART),
	 "card credit creditcard"},
	{W(CARD),
	 "cc"},
	{W(NUMBER),
	 "card no num number"},
	{W(PART),
	 "acc account acct admin administrator aes anthropic api app application asp aspnet aws azure bank "
	 "base bitbucket bot bytes cert cipher clear client company count crypt crypto csr cur current "
	 "customer data dec decrypt decryption default dev device digest discord django docker drupal dsa "
	 "ecdsa email enc encoded encrypt encrypted encryption expiry express facebook file flask ftp func "
	 "gcp git github gitlab google gpg guest has hash hashed hashes header headers hex hmac host http "
	 "https iam imap index info is java jsp kube laravel len length local login machine mail main master "
	 "material max member min my name new node number old openai org our owner pair pgp phone php plain "
	 "plaintext prev previous priv private prod proxy push py python rails raw refresh remote repl "
	 "replication root rsa salted sec server service sftp shared sharedaccess sign signature signatures "
	 "signed signin signing signon sim site size slack ssh ssl stage staging stripe sts sudo super svc "
	 "svr sys system team telegram temp test text the tls tmp total ttl twilio twitter txt type use user "
	 "username usr val value vpn web wifi wlan wordpress world wp wpa your zone"},
	/* clang-format on */
};

#undef W

/* All of them, sorted, when the first one was looked for. */
#define KNOWN_MAX 1024
static struct known {
	const char *word;
	uint32_t size, says;
} known[KNOWN_MAX];
static size_t nr_known;

/* Parts that are in no harmless word but before these letters: "secretary". */
static const struct {
	const char *part;
	const char *const harmless[5];
} inner[] = {
	{"password", {"less"}},  {"passwd", {NULL}},        {"passwrd", {NULL}},
	{"passphrase", {NULL}},  {"passcode", {NULL}},      {"secret", {"ar", "i", "e", "o", "ly"}},
	{"credential", {NULL}},  {"authorization", {NULL}}, {"signature", {NULL}},
	{"apikey", {NULL}},      {"privatekey", {NULL}},    {"accesskey", {NULL}},
	{"accesstoken", {NULL}}, {"sessionid", {NULL}},     {"sessid", {NULL}},
	{"csrf", {NULL}},        {"xsrf", {NULL}},          {"pwd", {NULL}},
};

/*
 * Ends that make a word that of a secret, whatever is before ("bindpw", "storepass"), unless that says what else it is
 * ("sortkey"). English has a few words that end so.
 */
static const struct {
	const char *end;
	uint32_t harmless; /* of what is before */
} ends[] = {
	{"key", PY_WORD_BEFORE_KEY},
	{"keys", PY_WORD_BEFORE_KEY},
	{"pass", PY_WORD_BEFORE_PASS},
	{"token", PY_WORD_BEFORE_TOKEN},
	{"tokens", PY_WORD_BEFORE_TOKEN | PY_WORD_BEFORE_TOKENS | PY_WORD_FIRST},
	{"cookie", PY_WORD_FIRST},
	{"cookies", PY_WORD_FIRST},
	{"auth", PY_WORD_FIRST},
	{"pw", 0},
};
static const char *const english[] = {
	"betoken",   "betokens",  "bypass",   "compass",   "dickey",   "dickeys",  "donkey",   "donkeys",
	"doohickey", "encompass", "flukey",   "flunkey",   "flunkeys", "hickey",   "hickeys",  "hockey",
	"hokey",     "hookey",    "hotkey",   "hotkeys",   "jockey",   "jockeys",  "lackey",   "lackeys",
	"latchkey",  "leakey",    "lowkey",   "malarkey",  "mickey",   "monkey",   "monkeys",  "outpass",
	"overpass",  "pokey",     "rickey",   "smokey",    "starkey",  "surpass",  "trespass", "turkey",
	"turkeys",   "turnkey",   "turnkeys", "underpass", "whiskey",  "whiskeys",
};

static bool begins_with(const char *text, size_t size, const char *with)
{
	size_t len = strlen(with);

	return len <= size && !memcmp(text, with, len);
}

static int compare(const char *a, size_t a_size, const struct known *b)
{
	size_t size = a_size < b->size ? a_size : b->size;
	int order = memcmp(a, b->word, size);

	return order ?: (a_size > b->size) - (a_size < b->size);
}

static int by_word(const void *a, const void *b)
{
	const struct known *word = a;

	return compare(word->word, word->size, b);
}

static void sort_lists(void)
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const char *word = lists[i].words; *word && count < KNOWN_MAX; word += strspn(word, " ")) {
			size_t size = strcspn(word, " ");

			known[count++] = (struct known){word, (uint32_t)size, lists[i].says};
			word += size;
		}
	}
	qsort(known, count, sizeof(known[0]), by_word);
	for (size_t i = 0; i < count; i++) {
		if (nr_known && !by_word(&known[nr_known - 1], &known[i]))
			known[nr_known - 1].says |= known[i].says;
		else
			known[nr_known++] = known[i];
	}
}

uint32_t py_word_find(const char *word, size_t size)
{
	size_t low = 0, high;

	if (!nr_known)
		sort_lists();
	for (high = nr_known; low < high;) {
		size_t middle = (low + high) / 2;
		int order = compare(word, size, &known[middle]);

		if (!order)
			return known[middle].says;
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* Returns whether it is one of these words, in small or in capital letters. */
static bool is_one_of(const char *text, size_t size, const char *const words[])
{
	for (size_t i = 0; words[i]; i++) {
		if (strlen(words[i]) == size && !strncasecmp(words[i], text, size))
			return true;
	}
	return false;
}

bool py_secret_is_user_option(const char *text, size_t size)
{
	static const char *const options[] = {"-u", "--user", "--proxy-user", NULL};

	return is_one_of(text, size, options);
}

const struct py_secret_scheme *py_secret_find_scheme(const char *word, size_t size)
{
	static const struct py_secret_scheme schemes[] = {
		{"bearer", .least = 1, .alone = true},
		{"basic", .least = 4},
		{"token", .least = 16},
		{"apikey", .least = 8},
		{"negotiate", .least = 12},
		{"digest", .least = 40},
		{"auth", .least = 6},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strlen(schemes[i].word) == size && !strncasecmp(schemes[i].word, word, size))
			return &schemes[i];
	}
	return NULL;
}

bool py_secret_takes_line(const char *name, size_t size)
{
	static const char *const last[] = {"authorization", "cookie", "passphrase"};

	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		size_t len = strlen(last[i]);

		if (len <= size && !strncasecmp(name + size - len, last[i], len))
			return true;
	}
	return false;
}

bool py_secret_stands_before_address(const char *text, size_t size)
{
	static const char *const words[] = {"mailto", "to",   "from", "cc",    "bcc", "sip",
					    "sips",   "xmpp", "acct", "email", NULL};

	return is_one_of(text, size, words);
}

bool py_secret_is_no_value(const char *text, size_t size)
{
	static const char *const none[] = {"None",  "null", "nil", "true", "false", "True",
					   "False", "?",    "%s",  "''",   "\"\""};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		if (strlen(none[i]) == size && !memcmp(text, none[i], size))
			return true;
	}
	return !size;
}

bool py_secret_is_name_field(const char *name, size_t size)
{
	static const char *const fields[] = {"name", "key", "header", "field", "option", "param", "parameter", NULL};

	return is_one_of(name, size, fields);
}

bool py_secret_is_value_field(const char *name, size_t size)
{
	static const char *const fields[] = {"value", "val", "values", "content", "data", "default", "secret", NULL};

	return is_one_of(name, size, fields);
}

/* From the end on: what follows a part can be split, too. Longer parts come first. */
size_t py_word_split(const char *word, size_t size, uint32_t parts[PY_WORD_MAX])
{
	uint8_t part_size[PY_WORD_MAX + 1] = {0};
	size_t count = 0;

	if (!size || size > PY_WORD_MAX)
		return 0;
	for (size_t from = size; from-- > 0;) {
		for (size_t to = size; to > from && !part_size[from]; to--) {
			if ((to == size || part_size[to]) && (py_word_find(word + from, to - from) & PY_WORD_PART))
				part_size[from] = (uint8_t)(to - from);
		}
	}
	for (size_t at = 0; at < size && part_size[at]; at += part_size[at])
		parts[count++] = py_word_find(word + at, part_size[at]);
	return count;
}

static bool is_harmless(const char *after, size_t size, const char *const harmless[5])
{
	for (size_t i = 0; i < 5 && harmless[i]; i++) {
		if (begins_with(after, size, harmless[i]))
			return true;
	}
	return false;
}

static bool is_english(const char *word, size_t size)
{
	for (size_t i = 0; i < sizeof(english) / sizeof(english[0]); i++) {
		if (strlen(english[i]) == size && !memcmp(word, english[i], size))
			return true;
	}
	return false;
}

static bool ends_as_secret(const char *word, size_t size)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t len = strlen(ends[i].end);

		if (size > len && !memcmp(word + size - len, ends[i].end, len))
			return !(py_word_find(word, size - len) & ends[i].harmless) && !is_english(word, size);
	}
	return false;
}

bool py_word_has_secret(const char *word, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
			size_t len = strlen(inner[i].part);

			if (begins_with(word + at, size - at, inner[i].part) &&
			    !is_harmless(word + at + len, size - at - len, inner[i].harmless))
				return true;
		}
	}
	return ends_as_secret(word, size);
}
