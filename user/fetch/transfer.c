// SPDX-License-Identifier: Apache-2.0
/* Gets a file from one server, by libcurl. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "fetch/internal.h"

#define CONNECT_S 10
#define NOT_FOUND 404
#define FOUND     200

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

int fetch_transfer_init(struct fetch_transfer *transfer, const struct fetch_process *process)
{
	*transfer = (struct fetch_transfer){.process = process};
	transfer->multi = process->curl.multi_init();
	return transfer->multi ? 0 : -ENOMEM;
}

/* Returns the bytes that were taken: fewer end the transfer. */
static size_t take_bytes(char *bytes, size_t one, size_t count, void *to)
{
	struct fetch_transfer *transfer = to;
	size_t size = one * count;

	transfer->heard_s = now_s();
	if (size > FETCH_FILE_MAX - transfer->size) {
		transfer->write_error = -EFBIG;
		return 0;
	}
	transfer->write_error = io_write_at(transfer->process->file, bytes, size, transfer->size);
	if (transfer->write_error)
		return 0;
	transfer->size += size;
	return size;
}

static CURLcode set_options(struct fetch_transfer *transfer, const char *url)
{
	const __typeof__(transfer->process->curl.easy_setopt) set = transfer->process->curl.easy_setopt;
	CURL *easy = transfer->easy;
	CURLcode code = set(easy, CURLOPT_URL, url);

	code = code ?: set(easy, CURLOPT_USERAGENT, "pybpf/" PYBPF_VERSION);
	code = code ?: set(easy, CURLOPT_HTTPGET, 1L);
	/* The body of an error is not read. Redirections are not followed: only servers that were named are asked. */
	code = code ?: set(easy, CURLOPT_FAILONERROR, 1L);
	code = code ?: set(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)FETCH_FILE_MAX);
	code = code ?: set(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	code = code ?: set(easy, CURLOPT_WRITEDATA, transfer);
	code = code ?: set(easy, CURLOPT_ERRORBUFFER, transfer->error);
	code = code ?: set(easy, CURLOPT_NOSIGNAL, 1L);
	code = code ?: set(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	code = code ?: network_limit_headers(&transfer->process->curl, easy, &transfer->header_bytes);
	return code ?: network_trust(&transfer->process->curl, easy, NULL);
}

/* Ends the process when the one that asks has ended: questions come one at a time, after an answer. */
static void end_without_asker(const struct fetch_process *process)
{
	struct pollfd asker = {.fd = process->socket};

	if (poll(&asker, 1, 0) == 1 && asker.revents & (POLLHUP | POLLERR))
		_exit(0);
}

/* Waits for the end of the transfer. Returns 0 with its *code, or -ETIMEDOUT. */
static int wait_for_end(struct fetch_transfer *transfer, double deadline_s, CURLcode *code)
{
	const struct network_curl *curl = &transfer->process->curl;
	struct curl_waitfd asker = {.fd = transfer->process->socket, .events = CURL_WAIT_POLLIN};

	for (;;) {
		double silent_until = transfer->heard_s + transfer->process->silence_s;
		double until = silent_until < deadline_s ? silent_until : deadline_s;
		const CURLMsg *message;
		int running, left;

		curl->multi_perform(transfer->multi, &running);
		message = curl->multi_info_read(transfer->multi, &left);
		if (message && message->msg == CURLMSG_DONE) {
			*code = message->data.result;
			return 0;
		}
		end_without_asker(transfer->process);
		until -= now_s();
		if (until <= 0)
			return -ETIMEDOUT;
		curl->multi_poll(transfer->multi, &asker, 1, (int)(until * 1000) + 1, NULL);
	}
}

static int judge(const struct fetch_transfer *transfer, CURLcode code, char *text, size_t size)
{
	const struct network_curl *curl = &transfer->process->curl;
	long status = 0;

	curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (transfer->write_error == -EFBIG || code == CURLE_FILESIZE_EXCEEDED)
		return -EFBIG;
	if (transfer->write_error) {
		snprintf(text, size, "cannot keep what it sends: %s", strerror(-transfer->write_error));
		return -EIO;
	}
	if (network_is_over_headers(transfer->header_bytes)) {
		snprintf(text, size, "%s", NETWORK_OVER_HEADERS);
		return -EIO;
	}
	if (status == NOT_FOUND)
		return -ENOENT;
	if (code == CURLE_OK && status == FOUND)
		return 0;
	if (status && status != FOUND)
		snprintf(text, size, "it answers %ld", status);
	else if (code == CURLE_PEER_FAILED_VERIFICATION && curl->knows_no_authority)
		snprintf(text, size, "%s", NETWORK_NO_AUTHORITY "; name a file of them by SSL_CERT_FILE");
	else
		snprintf(text, size, "%s", *transfer->error ? transfer->error : curl->easy_strerror(code));
	return -EIO;
}

int fetch_transfer_run(struct fetch_transfer *transfer, const char *url, double deadline_s, char *text, size_t size)
{
	const struct network_curl *curl = &transfer->process->curl;
	CURLcode code = CURLE_OK;
	int err;

	*text = '\0';
	transfer->size = 0;
	transfer->write_error = 0;
	transfer->heard_s = now_s();
	/* As in push/transfer.c. */
	curl->easy_cleanup(transfer->easy);
	transfer->easy = curl->easy_init();
	if (ftruncate(transfer->process->file, 0)) {
		snprintf(text, size, "cannot empty the file in memory: %s", strerror(errno));
		return -EIO;
	}
	code = transfer->easy ? set_options(transfer, url) : CURLE_OUT_OF_MEMORY;
	if (code || curl->multi_add_handle(transfer->multi, transfer->easy)) {
		snprintf(text, size, "cannot prepare the request: %s",
			 code ? curl->easy_strerror(code) : strerror(ENOMEM));
		return -EIO;
	}
	*transfer->error = '\0';
	err = wait_for_end(transfer, deadline_s, &code);
	if (!err)
		err = judge(transfer, code, text, size);
	else if (now_s() < deadline_s)
		snprintf(text, size, "it has sent nothing for %g s", transfer->process->silence_s);
	curl->multi_remove_handle(transfer->multi, transfer->easy);
	return err;
}
