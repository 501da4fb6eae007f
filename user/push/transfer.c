// SPDX-License-Identifier: Apache-2.0
/* One attempt to send a body, by libcurl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/internal.h"

#define CONNECT_S 10

/* Bytes of an answer beyond the limit are read and discarded. */
static size_t keep_answer(char *bytes, size_t one, size_t count, void *to)
{
	struct push_transfer *transfer = to;
	size_t room = PUSH_ANSWER_MAX - transfer->answer_size, size = one * count;

	memcpy(transfer->answer + transfer->answer_size, bytes, size < room ? size : room);
	transfer->answer_size += size < room ? size : room;
	return size;
}

int push_transfer_init(struct push_transfer *transfer, const struct push_process *process)
{
	*transfer = (struct push_transfer){.process = process};
	transfer->multi = process->curl.multi_init();
	return transfer->multi ? 0 : -ENOMEM;
}

static int add_header(struct push_transfer *transfer, const char *line)
{
	struct curl_slist *list = transfer->process->curl.slist_append(transfer->headers, line);

	if (!list)
		return -ENOMEM;
	transfer->headers = list;
	return 0;
}

/* Adds the headers of the options' file, line by line. */
static int add_lines(struct push_transfer *transfer, const char *lines)
{
	int err = 0;

	while (lines && *lines && !err) {
		size_t length = strcspn(lines, "\r\n");
		char *line = length && *lines != '#' ? strndup(lines, length) : NULL;

		if (line)
			err = add_header(transfer, line);
		free(line);
		lines += length;
		lines += strspn(lines, "\r\n");
	}
	return err;
}

static int make_headers(struct push_transfer *transfer, const struct push_body *body)
{
	char type[PUSH_CONTENT_TYPE_MAX + 32];
	int err;

	transfer->process->curl.slist_free_all(transfer->headers);
	transfer->headers = NULL;
	snprintf(type, sizeof(type), "Content-Type: %s", body->message.content_type);
	err = add_header(transfer, type);
	if (!err && body->message.compress)
		err = add_header(transfer, "Content-Encoding: gzip");
	/* Without it libcurl waits up to a second for "100 Continue" before it sends a large body. */
	err = err ?: add_header(transfer, "Expect:");
	return err ?: add_lines(transfer, transfer->process->secrets.headers);
}

static CURLcode set_blob(struct push_transfer *transfer, CURLoption option, const char *text)
{
	struct curl_blob blob = {.data = (void *)text, .len = text ? strlen(text) : 0, .flags = CURL_BLOB_NOCOPY};

	return text ? transfer->process->curl.easy_setopt(transfer->easy, option, &blob) : CURLE_OK;
}

static CURLcode set_options(struct push_transfer *transfer, const struct push_body *body)
{
	const struct push_process *process = transfer->process;
	const __typeof__(process->curl.easy_setopt) set = process->curl.easy_setopt;
	CURL *easy = transfer->easy;
	CURLcode code = set(easy, CURLOPT_URL, transfer->url);

	code = code ?: set(easy, CURLOPT_USERAGENT, "pybpf/" PYBPF_VERSION);
	code = code ?: set(easy, CURLOPT_POSTFIELDS, body->bytes);
	code = code ?: set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->message.size);
	code = code ?: set(easy, CURLOPT_HTTPHEADER, transfer->headers);
	code = code ?: set(easy, CURLOPT_WRITEFUNCTION, keep_answer);
	code = code ?: set(easy, CURLOPT_WRITEDATA, transfer);
	code = code ?: set(easy, CURLOPT_ERRORBUFFER, transfer->error);
	code = code ?: set(easy, CURLOPT_NOSIGNAL, 1L);
	code = code ?: set(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	code = code ?: set(easy, CURLOPT_TIMEOUT_MS, (long)(process->timeout_s * 1000));
	code = code ?: network_limit_headers(&process->curl, easy, &transfer->header_bytes);
	code = code ?: network_trust(&process->curl, easy, process->secrets.ca);
	code = code ?: set_blob(transfer, CURLOPT_SSLCERT_BLOB, process->secrets.certificate);
	return code ?: set_blob(transfer, CURLOPT_SSLKEY_BLOB, process->secrets.key);
}

int push_transfer_begin(struct push_transfer *transfer, const struct push_body *body)
{
	const struct network_curl *curl = &transfer->process->curl;
	int err = make_headers(transfer, body);
	CURLcode code;

	free(transfer->url);
	transfer->url = NULL;
	snprintf(transfer->error, sizeof(transfer->error), "out of memory");
	if (err || asprintf(&transfer->url, "%s%s", transfer->process->url, body->message.suffix) < 0)
		return -ENOMEM;
	transfer->answer_size = 0;
	/* c-ares reads resolv.conf when a handle is made. What is connected, and names that are known, are the multi
	 * handle's. */
	curl->easy_cleanup(transfer->easy);
	transfer->easy = curl->easy_init();
	if (!transfer->easy)
		return -ENOMEM;
	code = set_options(transfer, body);
	if (code) {
		snprintf(transfer->error, sizeof(transfer->error), "libcurl does not take an option: %s",
			 curl->easy_strerror(code));
		return -EINVAL;
	}
	if (curl->multi_add_handle(transfer->multi, transfer->easy))
		return -ENOMEM;
	*transfer->error = '\0';
	transfer->runs = true;
	return 0;
}

static bool is_trust(CURLcode code)
{
	return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
	       code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR ||
	       code == CURLE_SSL_INVALIDCERTSTATUS || code == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
}

static void judge_answer(const struct push_transfer *transfer, struct push_outcome *outcome)
{
	const struct network_curl *curl = &transfer->process->curl;
	struct push_answer answer = {.bytes = transfer->answer, .size = transfer->answer_size};
	struct push_judgement judgement;
	curl_off_t retry_after = 0;

	curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &answer.status);
	curl->easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &answer.content_type);
	curl->easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after);
	push_judge(&answer, &judgement);
	outcome->verdict = judgement.verdict;
	outcome->rejected = judgement.rejected;
	outcome->retry_after_s = retry_after > 0 ? (double)retry_after : 0;
	snprintf(outcome->text, sizeof(outcome->text), "it answers %ld%s%s", answer.status, *judgement.text ? ", " : "",
		 judgement.text);
}

/* Returns why an attempt without an answer has failed: a part of a sentence. */
static const char *cause_of(const struct push_transfer *transfer, CURLcode code)
{
	const struct network_curl *curl = &transfer->process->curl;

	if (network_is_over_headers(transfer->header_bytes))
		return NETWORK_OVER_HEADERS;
	if (is_trust(code) && curl->knows_no_authority && !transfer->process->secrets.ca)
		return NETWORK_NO_AUTHORITY "; name a file of them by --http-ca or SSL_CERT_FILE";
	return *transfer->error ? transfer->error : curl->easy_strerror(code);
}

bool push_transfer_step(struct push_transfer *transfer, struct push_outcome *outcome)
{
	const struct network_curl *curl = &transfer->process->curl;
	int running, left;
	const CURLMsg *message;

	curl->multi_perform(transfer->multi, &running);
	message = curl->multi_info_read(transfer->multi, &left);
	if (!message || message->msg != CURLMSG_DONE)
		return false;
	*outcome = (struct push_outcome){.verdict = PUSH_AGAIN};
	if (message->data.result == CURLE_OK) {
		judge_answer(transfer, outcome);
	} else {
		if (is_trust(message->data.result))
			outcome->verdict = PUSH_UNTRUSTED;
		else if (message->data.result == CURLE_URL_MALFORMAT ||
			 message->data.result == CURLE_UNSUPPORTED_PROTOCOL)
			outcome->verdict = PUSH_WRONG;
		snprintf(outcome->text, sizeof(outcome->text), "%s", cause_of(transfer, message->data.result));
	}
	curl->multi_remove_handle(transfer->multi, transfer->easy);
	transfer->runs = false;
	return true;
}

bool push_transfer_wait(struct push_transfer *transfer, int fd, double seconds)
{
	struct curl_waitfd wait = {.fd = fd, .events = CURL_WAIT_POLLIN};
	int ms = seconds > 0 ? (int)(seconds * 1000) + 1 : 0;

	transfer->process->curl.multi_poll(transfer->multi, &wait, fd >= 0, ms, NULL);
	return fd >= 0 && wait.revents;
}
