// SPDX-License-Identifier: Apache-2.0
/*
 * A day of the process that sends, on a played clock and with a played libcurl: epochs come, receivers are away, slow
 * or refuse, the process ends and begins anew. Each sample is received once, or counted as lost.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "push/internal.h"

#define HOUR_S     3600.0
#define DAY_S      (24 * HOUR_S)
#define BEGIN_S    1000.0
#define BODIES_MAX 8192
#define BODY_BYTES 4096

/* What a receiver does in a part of the day, from the hour `from` to `to`. */
struct weather {
	double from, to;
	enum answer {
		AWAY,     /* nobody listens */
		SILENT,   /* it does not answer in time */
		BUSY,     /* 503 */
		PATIENCE, /* 429, and when to come again */
		REFUSES,  /* 400 */
		SLOW,     /* it takes bodies, after a while */
	} answer;
};

/* Shared by the test and the process of each part of the day. */
static struct day {
	double now;
	uint64_t submitted, samples; /* bodies so far, and the samples in them */
	uint64_t received, received_samples, attempts;
	uint8_t times[BODIES_MAX]; /* that each body was received */
	struct push_shared shared;
} * day;

/* The process has its own. */
static struct played {
	const struct weather *weather;
	const uint64_t *never_taken; /* numbers of bodies, and 0; NULL: there are none */
	struct push_process process;
	int socket; /* of who pushes */
	double next_s, end_s;
	unsigned seed;
	/* The attempt that goes on. */
	const char *bytes;
	bool runs;
	double answer_s; /* when it ends */
	CURLcode result;
	long status;
	curl_off_t retry_after;
	CURLMsg message;
} played;

/* A body: its number, and how many samples it has. */
struct made {
	uint64_t number, samples;
};

double clock_s(clockid_t clock)
{
	(void)clock;
	return day->now;
}

uint64_t clock_ns(clockid_t clock)
{
	(void)clock;
	return (uint64_t)(day->now * 1e9);
}

static const struct weather *weather_now(void)
{
	const double hour = (day->now - BEGIN_S) / HOUR_S;
	const struct weather *at = played.weather;

	while (at->to && (hour < at->from || hour >= at->to))
		at++;
	return at->to ? at : NULL;
}

static CURLcode play_setopt(CURL *easy, CURLoption option, ...)
{
	va_list more;

	(void)easy;
	va_start(more, option);
	if (option == CURLOPT_POSTFIELDS)
		played.bytes = va_arg(more, const char *);
	va_end(more);
	return CURLE_OK;
}

static CURLcode play_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list more;

	(void)easy;
	va_start(more, info);
	if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(more, long *) = played.status;
	else if (info == CURLINFO_RETRY_AFTER)
		*va_arg(more, curl_off_t *) = played.retry_after;
	else
		*va_arg(more, const char **) = "application/x-protobuf";
	va_end(more);
	return CURLE_OK;
}

static bool is_never_taken(void)
{
	struct made made;

	memcpy(&made, played.bytes, sizeof(made));
	for (const uint64_t *number = played.never_taken; number && *number; number++) {
		if (*number == made.number)
			return true;
	}
	return false;
}

static CURLMcode play_add(CURLM *multi, CURL *easy)
{
	const struct weather *weather = weather_now();
	const enum answer answer = weather ? weather->answer : is_never_taken() ? BUSY : SLOW;

	(void)multi;
	(void)easy;
	day->attempts++;
	played.runs = true;
	played.result = answer == AWAY ? CURLE_COULDNT_CONNECT : answer == SILENT ? CURLE_OPERATION_TIMEDOUT : CURLE_OK;
	played.status = answer == BUSY ? 503 : answer == PATIENCE ? 429 : answer == REFUSES ? 400 : 200;
	played.retry_after = answer == PATIENCE ? 90 : 0;
	played.answer_s = day->now + (answer == SILENT ? played.process.timeout_s : weather ? 5 : 0.05);
	return CURLM_OK;
}

static void receive_body(void)
{
	struct made made;

	memcpy(&made, played.bytes, sizeof(made));
	if (made.number >= BODIES_MAX || day->times[made.number]++)
		return;
	day->received++;
	day->received_samples += made.samples;
}

static CURLMcode play_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = played.runs && day->now < played.answer_s;
	return CURLM_OK;
}

static CURLMsg *play_info_read(CURLM *multi, int *left)
{
	(void)multi;
	*left = 0;
	if (!played.runs || day->now < played.answer_s)
		return NULL;
	played.runs = false;
	if (played.result == CURLE_OK && played.status == 200)
		receive_body();
	played.message = (CURLMsg){.msg = CURLMSG_DONE, .data.result = played.result};
	return &played.message;
}

static void send_message(const struct push_message *message, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec bytes = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
	struct msghdr head = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *with;

		head.msg_control = control.bytes;
		head.msg_controllen = sizeof(control.bytes);
		with = CMSG_FIRSTHDR(&head);
		with->cmsg_level = SOL_SOCKET;
		with->cmsg_type = SCM_RIGHTS;
		with->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(with), &fd, sizeof(fd));
	}
	if (sendmsg(played.socket, &head, MSG_NOSIGNAL) != sizeof(*message))
		abort();
}

/* An epoch has ended: a body, of which each has another size and number of samples. */
static void send_epoch(void)
{
	static char bytes[BODY_BYTES];
	struct made made = {day->submitted++, 1 + (uint64_t)rand_r(&played.seed) % 1000};
	struct push_message message = {.kind = PUSH_BODY, .size = BODY_BYTES / 2 + made.samples, .content_type = "x"};
	int fd = memfd_create("body", MFD_CLOEXEC);

	day->samples += made.samples;
	memcpy(bytes, &made, sizeof(made));
	if (fd < 0 || write(fd, bytes, message.size) != (ssize_t)message.size)
		abort();
	send_message(&message, fd);
	close(fd);
	/* A minute, and a fifth more or less. */
	played.next_s = day->now + 48 + 24.0 * rand_r(&played.seed) / RAND_MAX;
}

/* Time passes: until the wait is over, the receiver answers, or an epoch or the part of the day ends. */
static CURLMcode play_poll(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ready)
{
	double until = day->now + ms / 1000.0;

	(void)multi;
	(void)ready;
	if (played.runs && played.answer_s < until)
		until = played.answer_s;
	if (count && played.next_s < until)
		until = played.next_s;
	day->now = until > day->now ? until : day->now;
	if (!count || day->now < played.next_s)
		return CURLM_OK;
	fds[0].revents = CURL_WAIT_POLLIN;
	if (day->now < played.end_s)
		send_epoch();
	else
		send_message(&(struct push_message){.kind = PUSH_END, .deadline_ns = (uint64_t)((day->now + 2) * 1e9)},
			     -1);
	return CURLM_OK;
}

static CURL *play_init(void)
{
	return &played;
}

static void play_cleanup(CURL *easy)
{
	(void)easy;
	played.bytes = NULL;
}

static const char *play_strerror(CURLcode code)
{
	(void)code;
	return "played";
}

static struct curl_slist *play_append(struct curl_slist *list, const char *line)
{
	(void)line;
	return list ?: (struct curl_slist *)&played;
}

static void play_free_all(struct curl_slist *list)
{
	(void)list;
}

static CURLMcode play_remove(CURLM *multi, CURL *easy)
{
	(void)multi;
	(void)easy;
	return CURLM_OK;
}

static const struct network_curl play_curl = {
	.easy_init = play_init,
	.easy_cleanup = play_cleanup,
	.easy_setopt = play_setopt,
	.easy_getinfo = play_getinfo,
	.easy_strerror = play_strerror,
	.slist_append = play_append,
	.slist_free_all = play_free_all,
	.multi_init = play_init,
	.multi_add_handle = play_add,
	.multi_remove_handle = play_remove,
	.multi_perform = play_perform,
	.multi_info_read = play_info_read,
	.multi_poll = play_poll,
};

static char folder[64];

static int begin_day(void **state)
{
	(void)state;
	day = mmap(NULL, sizeof(*day), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(day, MAP_FAILED);
	day->now = BEGIN_S;
	strcpy(folder, "/tmp/pybpf-day-XXXXXX");
	assert_non_null(mkdtemp(folder));
	return 0;
}

static int end_day(void **state)
{
	char command[128];

	(void)state;
	munmap(day, sizeof(*day));
	snprintf(command, sizeof(command), "rm -r %s", folder);
	/* NOLINTNEXTLINE(bugprone-command-processor): a path of our own */
	return system(command);
}

/* Runs the process until an hour of the day, in which it ends. spool_max: 0: without a spool. */
static void run_until(const struct weather *weather, double hour, uint64_t queue_max, uint64_t spool_max,
		      const uint64_t *never_taken)
{
	int ends[2], status;
	struct error error;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
		abort();
	played = (struct played){
		.weather = weather,
		.never_taken = never_taken,
		.socket = ends[0],
		.next_s = day->now + 1,
		.end_s = BEGIN_S + hour * HOUR_S,
		.seed = (unsigned)day->submitted + 1,
		.process = {.socket = ends[1],
			    .shared = &day->shared,
			    .curl = play_curl,
			    .url = "http://receiver",
			    .queue_max = queue_max,
			    .retry_s = PUSH_RETRY_S_DEFAULT,
			    .timeout_s = PUSH_TIMEOUT_S_DEFAULT},
	};
	if (push_spool_open(&played.process.spool, spool_max ? folder : NULL, spool_max, &error))
		abort();
	push_work(&played.process);
}

static uint64_t dropped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < PUSH_CAUSES; i++)
		sum += day->shared.dropped[i];
	return sum;
}

/* No body was received twice, and each that was not received is counted. */
static void check_sums(uint64_t waits)
{
	for (size_t i = 0; i < BODIES_MAX; i++)
		assert_true(day->times[i] <= 1);
	assert_int_equal(day->shared.sent, day->received);
	assert_int_equal(day->received + dropped() + waits, day->submitted);
	assert_true(day->submitted > 24 * 60 * 0.9);
}

static const struct weather bad_day[] = {
	{1.0, 1.05, AWAY},    {2.0, 2.02, BUSY},      {3.0, 6.0, AWAY},     {6.0, 6.5, SILENT},
	{8.0, 8.2, PATIENCE}, {9.0, 10.0, SLOW},      {11.0, 13.5, BUSY},   {14.0, 14.3, AWAY},
	{14.3, 15.0, SILENT}, {17.0, 18.0, PATIENCE}, {20.0, 23.0, SILENT}, {.to = 0},
};

/* With a spool an outage of hours loses nothing, also if the process ends in it and begins anew. */
static void test_nothing_is_lost(void **unused)
{
	static const double parts[] = {4.5, 12, 14.2, 21.7, 24};

	(void)unused;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		run_until(bad_day, parts[i], PUSH_QUEUE_MAX_DEFAULT, PUSH_SPOOL_MAX_DEFAULT, NULL);
		day->shared.restarts = 0;
	}
	check_sums(day->shared.spooled);
	assert_int_equal(dropped(), 0);
	assert_int_equal(day->shared.spooled, 0);
	assert_int_equal(day->received_samples, day->samples);
	assert_true(day->shared.retried > 0 && day->attempts > day->received);
}

/* Without one, what is given up, or has no place, is counted by its cause; nothing else is lost. */
static void test_losses_are_counted(void **unused)
{
	(void)unused;
	run_until(bad_day, 24, 20 * BODY_BYTES, 0, NULL);
	check_sums(0);
	assert_true(day->shared.dropped[PUSH_GIVEN_UP] > 0);
	assert_true(day->shared.dropped[PUSH_QUEUE_FULL] > 0);
	assert_int_equal(dropped(), day->shared.dropped[PUSH_GIVEN_UP] + day->shared.dropped[PUSH_QUEUE_FULL]);
	assert_true(day->received_samples < day->samples);
}

/* A spool that is too small for the outage loses its oldest ones, and says how many. */
static void test_a_small_spool(void **unused)
{
	(void)unused;
	run_until(bad_day, 24, 4 * BODY_BYTES, 96 * BODY_BYTES, NULL);
	check_sums(0);
	assert_true(day->shared.dropped[PUSH_SPOOL_FULL] > 0);
	assert_int_equal(dropped(), day->shared.dropped[PUSH_SPOOL_FULL]);
}

/* What a receiver refuses is gone at once, and costs the others nothing. */
static void test_refusals(void **unused)
{
	static const struct weather weather[] = {{5, 6, REFUSES}, {.to = 0}};

	(void)unused;
	run_until(weather, 24, PUSH_QUEUE_MAX_DEFAULT, 0, NULL);
	check_sums(0);
	assert_true(day->shared.dropped[PUSH_REFUSED] > 60 * 0.8);
	assert_int_equal(dropped(), day->shared.dropped[PUSH_REFUSED]);
	assert_int_equal(day->shared.retried, 0);
}

/*
 * Bodies that the receiver never takes are given up, also where outages are around them, and where several wait at a
 * time. All others are received.
 */
static void test_bodies_that_are_never_taken(void **unused)
{
	static const uint64_t never_taken[] = {10, 100, 101, 300, 301, 302, 303, 700, 0};

	(void)unused;
	run_until(bad_day, 24, PUSH_QUEUE_MAX_DEFAULT, PUSH_SPOOL_MAX_DEFAULT, never_taken);
	check_sums(0);
	assert_int_equal(dropped(), 8);
	assert_int_equal(day->shared.dropped[PUSH_GIVEN_UP], 8);
	for (const uint64_t *number = never_taken; *number; number++)
		assert_int_equal(day->times[*number], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_lost, begin_day, end_day),
		cmocka_unit_test_setup_teardown(test_losses_are_counted, begin_day, end_day),
		cmocka_unit_test_setup_teardown(test_a_small_spool, begin_day, end_day),
		cmocka_unit_test_setup_teardown(test_refusals, begin_day, end_day),
		cmocka_unit_test_setup_teardown(test_bodies_that_are_never_taken, begin_day, end_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
