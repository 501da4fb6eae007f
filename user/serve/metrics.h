// SPDX-License-Identifier: Apache-2.0
/* Writes metrics as Prometheus reads them: its text format, version 0.0.4. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stddef.h>
#include <stdio.h>

#define SERVE_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum serve_metric_type {
	SERVE_COUNTER, /* its name ends with _total */
	SERVE_GAUGE,
};

struct serve_label {
	const char *name, *value;
};
#define SERVE_LABELS_MAX 4

/* One value. Rows of one name follow each other, and differ in their labels. */
struct serve_metric {
	const char *name; /* with its unit: pybpf_cpu_seconds_total */
	const char *help; /* a sentence; that of the first row of a name counts */
	enum serve_metric_type type;
	struct serve_label labels[SERVE_LABELS_MAX]; /* up to the first one without a name */
	double value;
};

/*
 * Writes the rows. Values of labels may be any bytes: what is not UTF-8 becomes U+FFFD. Returns 0, -EINVAL if a name
 * has other characters than Prometheus allows, or rows of one name are apart or have the same labels, or another
 * negative errno.
 */
int serve_metrics_write(const struct serve_metric *rows, size_t count, FILE *out);

#endif
