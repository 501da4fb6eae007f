// SPDX-License-Identifier: Apache-2.0
/* Doctor's checks that need BPF programs: the sample source, kernel features, and a short trial run. */
#include "doctor/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "base/clock.h"
#include "base/host.h"
#include "session/session.h"
#include "kernel/features.h"
#include "kernel/sampler.h"

/*
 * The trial samples pybpf itself until it has used TRIAL_CPU_S seconds of CPU time, or until TRIAL_WALL_S seconds have
 * passed, if other programs hold the CPUs. TRIAL_RATE is in Hz.
 */
#define TRIAL_CPU_S  0.1
#define TRIAL_WALL_S 3.0
#define TRIAL_RATE   999

static void look_source(const struct doctor *d, struct doctor_item *item)
{
	bool cycles = !kernel_probe_source(KERNEL_SOURCE_CYCLES);
	struct kernel_features features;
	int clock_err;

	(void)d;
	kernel_probe_features(&features);
	if (cycles && kernel_takes_cycles(&features)) {
		doctor_found(item, DOCTOR_OK, "the CPU's cycles");
		return;
	}
	clock_err = kernel_probe_source(KERNEL_SOURCE_CPU_CLOCK);
	if (!clock_err) {
		doctor_found(item, DOCTOR_OK, "the CPU clock: %s",
			     cycles ? "on this kernel, an interrupt by cycles cannot tell whose memory it reads"
				    : "this CPU's cycles can't be counted, as in many virtual machines");
		return;
	}
	if (!host_has_capability(CAP_PERFMON) && !host_has_capability(CAP_SYS_ADMIN)) {
		doctor_found(item, DOCTOR_SKIP, "not tried without CAP_PERFMON");
		return;
	}
	doctor_found(item, DOCTOR_FAIL, "none: %s%s", strerror(-clock_err), host_explain_event_denial(clock_err));
	if (*host_explain_event_denial(clock_err))
		return;
	if (clock_err == -ENOSYS)
		doctor_advise(item,
			      "use a kernel built with CONFIG_PERF_EVENTS=y; in a container, a seccomp filter may "
			      "hide perf_event_open(2)");
	else
		doctor_advise(item,
			      "perf_event_open(2) is refused though the capability is there: a container's seccomp "
			      "filter, a user namespace or an LSM may forbid it");
}

static void say_feature(struct doctor_item *item, bool there, const char *since, const char *otherwise)
{
	if (there)
		doctor_found(item, DOCTOR_OK, "there and used");
	else
		doctor_found(item, DOCTOR_OK, "not there (comes with Linux %s): %s", since, otherwise);
}

static bool probe(struct doctor_item *item, struct kernel_features *features)
{
	struct error error;

	if (host_check_privilege(&error) || host_check_bpf(&error)) {
		doctor_found(item, DOCTOR_SKIP, "not tried: bpf(2) does not work, see above");
		return false;
	}
	kernel_probe_features(features);
	return true;
}

static void look_loop(const struct doctor *d, struct doctor_item *item)
{
	struct kernel_features features;

	(void)d;
	if (probe(item, &features))
		say_feature(item, features.bpf_loop, "5.17", "the walk goes on by tail calls");
}

static void look_task_storage(const struct doctor *d, struct doctor_item *item)
{
	struct kernel_features features;

	(void)d;
	if (probe(item, &features))
		say_feature(item, features.task_storage, "6.4", "threads are remembered in a hash");
}

static void look_task_regs(const struct doctor *d, struct doctor_item *item)
{
	struct kernel_features features;

	(void)d;
	if (probe(item, &features))
		say_feature(item, features.task_regs, "5.15", "the kernel's own moments lack the program's registers");
}

/* A hardened usercopy can hang some kernels, see bpf/compat_read.bpf.h. */
static void look_user_memory(const struct doctor *d, struct doctor_item *item)
{
	struct kernel_features features;

	(void)d;
	if (!probe(item, &features))
		return;
	if (features.direct_reads) {
		doctor_found(item, DOCTOR_OK, "read directly: this kernel takes no lock for it");
		return;
	}
	doctor_found(item, DOCTOR_WARN,
		     "read in two steps, for up to half more time per sample: this kernel could hang otherwise");
	doctor_advise(item,
		      "it lacks d319f344561d, or does not say whether it has it: Linux 6.4, 6.3.10 and 6.1.36 do");
}

/* Uses the CPU until TRIAL_CPU_S of CPU time or TRIAL_WALL_S have passed. */
static void spin(void)
{
	double cpu_end = clock_s(CLOCK_PROCESS_CPUTIME_ID) + TRIAL_CPU_S;
	double end = clock_s(CLOCK_MONOTONIC) + TRIAL_WALL_S;

	while (clock_s(CLOCK_PROCESS_CPUTIME_ID) < cpu_end && clock_s(CLOCK_MONOTONIC) < end)
		;
}

/* Samples pybpf itself, which is not a Python process, and counts the samples. Returns 0 or negative errno. */
static int trial(struct session *session, uint64_t *samples)
{
	const struct profile *profile;
	struct session_account account;
	uint32_t self = (uint32_t)getpid();
	int err = session_follow(session, &self, 1);

	err = err ?: session_attach(session);
	if (!err)
		spin();
	session_detach(session);
	err = err ?: session_collect(session, &profile, &account);
	if (!err)
		*samples = account.counters[PYBPF_COUNT_ASKED];
	return err;
}

static void look_trial(const struct doctor *d, struct doctor_item *item)
{
	int64_t limit = host_max_sample_rate();
	struct session_options options = SESSION_OPTIONS_DEFAULT;
	double begin = clock_s(CLOCK_MONOTONIC);
	struct session *session;
	uint64_t samples = 0;
	double loaded;
	bool in_parts;
	int err;

	options.freq = limit < TRIAL_RATE ? (unsigned)limit : TRIAL_RATE;
	if (d->fails) {
		doctor_found(item, DOCTOR_SKIP, "not tried: what failed above stands in its way");
		return;
	}
	session = session_new(&options);
	loaded = clock_s(CLOCK_MONOTONIC);
	if (!session) {
		doctor_found(item, DOCTOR_FAIL, "the BPF programs were not loaded");
		doctor_advise(item, "the message on stderr says why; `pybpf doctor -vv` shows the verifier's log");
		return;
	}
	err = trial(session, &samples);
	in_parts = !session_uses_bpf_loop(session);
	session_free(session);
	if (err) {
		doctor_found(item, DOCTOR_FAIL, "loaded, but not attached: %s", strerror(-err));
		doctor_advise(item, "the message on stderr says what was tried");
	} else if (!samples) {
		doctor_found(item, DOCTOR_FAIL, "loaded and attached, but no sample arrived at %u Hz", options.freq);
		doctor_advise(item, "`pybpf -e cpu-clock` uses another timer; if that is no help, please report it");
	} else {
		doctor_found(item, DOCTOR_OK,
			     "works: loaded in %.0f ms%s, attached, %" PRIu64
			     " samples of %.1f s of pybpf itself at %u Hz",
			     (loaded - begin) * 1e3, in_parts ? " as a chain of programs" : "", samples, TRIAL_CPU_S,
			     options.freq);
	}
}

static const struct doctor_check session_checks[] = {
	{"perf source", look_source},
	{"bpf_loop", look_loop},
	{"task registers", look_task_regs},
	{"task storage", look_task_storage},
	{"user memory", look_user_memory},
	{"trial", look_trial},
	{0},
};

int session_doctor(FILE *out)
{
	struct doctor d = {.out = out};

	doctor_run(&d, doctor_host_checks);
	doctor_run(&d, session_checks);
	doctor_run(&d, doctor_rights_checks);
	return doctor_verdict(&d);
}
