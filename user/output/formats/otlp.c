// SPDX-License-Identifier: Apache-2.0
/*
 * OpenTelemetry's profiles. Processes with equal attributes are one resource. Each resource has a profile of its CPU
 * samples, and where the profile tells how threads wait, one of its waits in nanoseconds. Samples are written resource
 * by resource; a body that would grow beyond the limit is ended, and the next one begins with a dictionary of its own.
 */
#include "output/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/text.h"
#include "output/formats/otlp.pb-c.h"
#include "output/formats/otlp_dictionary.h"
#include "output/output.h"
#include "output/type_name.h"
#include "profile/attributes.h"

#define NS_PER_US 1000

/* Bytes of a sample, of its attributes in the dictionary without their texts, and of what surrounds a profile. */
#define SAMPLE_BYTES_MAX  256
#define PROFILE_BYTES_MAX 512

/*
 * Most samples of a profile, and bytes that the profiles of a request have as pprof, where each sample has its stack:
 * Pyroscope, which makes that of them, refuses more than 16,000 samples (2.2,
 * validation.max-profile-stacktrace-samples), and more than 2 MiB with 429, however often that is repeated
 * (distributor.ingestion-burst-size-mb). It takes the profiles that fit and answers 429 for the others (2.2,
 * pkg/distributor/distributor.go, PushBatch()), so that these count twice once the request is repeated.
 */
#define PROFILE_SAMPLES_MAX  4000
#define REQUEST_PPROF_MAX    (3u << 19)
#define PPROF_PROFILE_BYTES  300 /* with the labels of a resource */
#define PPROF_FRAME_BYTES    3   /* a location's number, up to 2 millions */
#define PPROF_FUNCTION_BYTES 40  /* with its location, without names */
#define PPROF_LABELS_BYTES   100

/* Labels of a sample. Numbers are numbers, and once more texts: Parca and Pyroscope make labels of texts only. */
#define PROCESS_PID       "process.pid"
#define PROCESS_VPID      "process.vpid"
#define THREAD_ID         "thread.id"
#define THREAD_NAME       "thread.name"
#define THREAD_STATE      "thread.state"
#define LABEL_PID         "pid"
#define LABEL_TID         "thread_id"
#define SAMPLE_ATTRIBUTES 7

enum kind {
	KIND_SAMPLES,
	KIND_WAITS,
};

/* A sample of the profile in the order in which samples are written. */
struct item {
	uint32_t resource;
	enum kind kind;
	uint32_t sample;
};

struct encoder {
	const struct profile *profile;
	const struct otlp_options *options;
	struct profile_measure measure;
	bool is_time, states;
	struct intern resources; /* struct intern_bytes, owned: packed Otlp__Resource */
	uint32_t *resource_of;   /* by process */
	struct item *items;
	size_t count;
	size_t begun; /* the first of the items that are in no finished body */
	/* The request, in parts: each is a field of the next. */
	struct otlp_dictionary dictionary;
	struct proto_bytes open_profile, scope, resource, request;
	bool profile_is_open;
	uint32_t in_profile;  /* samples of the one that is open */
	size_t pprof_bytes;   /* of these */
	size_t request_pprof; /* of the request's profiles before it */
	uint32_t *frame_in;   /* by frame: the number of the last profile that has it, from 1 on */
	uint32_t profile_number;
};

void otlp_resource_set(struct otlp_resource *resource, const char *key, const char *value)
{
	char *copy = value && *value ? text_printable(value) : NULL, *name = text_printable(key);
	size_t i = 0;

	while (name && i < resource->count && strcmp(resource->attributes[i].key, name) != 0)
		i++;
	if (name && i < resource->count) {
		free(name);
		free(resource->attributes[i].value);
		resource->attributes[i].value = copy;
	} else if (copy && name && i < OTLP_ATTRIBUTES_MAX) {
		resource->attributes[i].key = name;
		resource->attributes[i].value = copy;
		resource->count++;
	} else {
		resource->no_memory |= !name;
		free(name);
		free(copy);
	}
	resource->no_memory |= value && *value && !copy;
}

static void free_resource(struct otlp_resource *resource)
{
	for (size_t i = 0; i < resource->count; i++) {
		free(resource->attributes[i].key);
		free(resource->attributes[i].value);
	}
}

/* Sets container.name; of "pod/container", which is what Kubernetes' containers are called, those two. */
static void describe_container(struct otlp_resource *resource, const char *container)
{
	const char *slash = strchr(container, '/'), *name = slash ? slash + 1 : container;
	char *pod;

	/* In brackets: its name was not found. */
	if (!*container || *container == '[')
		return;
	otlp_resource_set(resource, OTLP_SERVICE_NAME, name);
	otlp_resource_set(resource, slash ? OTLP_K8S_CONTAINER : OTLP_CONTAINER_NAME, name);
	if (!slash)
		return;
	pod = strndup(container, (size_t)(slash - container));
	otlp_resource_set(resource, OTLP_K8S_POD, pod);
	resource->no_memory |= !pod;
	free(pod);
}

static void describe(const struct encoder *e, uint32_t i, struct otlp_resource *resource)
{
	const struct profile_process *process = profile_process_at(e->profile, i);
	const char *name = profile_string(e->profile, process->name);
	char value[PROFILE_ATTRIBUTE_MAX];

	otlp_resource_set(resource, OTLP_SERVICE_NAME, *name ? name : "unknown_service");
	otlp_resource_set(resource, OTLP_EXECUTABLE_NAME, name);
	otlp_resource_set(resource, OTLP_HOST_NAME, profile_find_fact(e->profile, PROFILE_FACT_HOST));
	describe_container(resource, profile_string(e->profile, process->container));
	for (int a = 0; a < PROFILE_ATTRIBUTES; a++)
		otlp_resource_set(resource, profile_attribute_key(a),
				  profile_attribute_find(profile_string(e->profile, process->attributes), a, value));
	if (process->service)
		otlp_resource_set(resource, OTLP_SERVICE_NAME, profile_string(e->profile, process->service));
	if (e->options->describe)
		e->options->describe(e->options->describe_arg, e->profile, i, resource);
}

/* Packs a resource into *to. Returns 0 or -ENOMEM. */
static int pack_resource(const struct otlp_resource *resource, struct proto_bytes *to)
{
	for (size_t i = 0; i < resource->count; i++) {
		Otlp__Resource part = OTLP__RESOURCE__INIT;
		Otlp__KeyValue attribute = OTLP__KEY_VALUE__INIT, *one = &attribute;
		Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

		if (!resource->attributes[i].value)
			continue;
		value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value.string_value = resource->attributes[i].value;
		attribute.key = resource->attributes[i].key;
		attribute.value = &value;
		part.attributes = &one;
		part.n_attributes = 1;
		otlp__resource__pack_to_buffer(&part, &to->base);
	}
	return resource->no_memory || to->no_memory ? -ENOMEM : 0;
}

static int find_resource(struct encoder *e, uint32_t process)
{
	struct otlp_resource resource = {.count = 0};
	struct proto_bytes packed = proto_bytes();
	struct intern_bytes key;
	bool fresh = false;
	int err;

	describe(e, process, &resource);
	err = pack_resource(&resource, &packed);
	free_resource(&resource);
	key = (struct intern_bytes){packed.bytes, packed.size};
	if (!err)
		e->resource_of[process] = intern_add(&e->resources, &key, &fresh);
	if (!err && e->resource_of[process] == INTERN_NONE)
		err = -ENOMEM;
	if (!fresh)
		proto_bytes_free(&packed);
	return err;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->resource != y->resource)
		return x->resource < y->resource ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static int sort_samples(struct encoder *e)
{
	const uint32_t processes = profile_process_count(e->profile), from = e->options->from ? *e->options->from : 0;
	size_t count;
	const struct profile_sample *samples = profile_samples(e->profile, &count);
	int err = 0;

	e->resource_of = calloc(processes + (size_t)1, sizeof(*e->resource_of));
	e->items = calloc(count + 1, sizeof(*e->items));
	e->frame_in = calloc(profile_frame_count(e->profile) + (size_t)1, sizeof(*e->frame_in));
	e->profile_number = 1;
	if (!e->resource_of || !e->items || !e->frame_in)
		return -ENOMEM;
	for (uint32_t i = 0; i < processes && !err; i++)
		err = find_resource(e, (uint32_t)(((uint64_t)from + i) % processes));
	for (size_t i = 0; i < count && !err; i++) {
		if (samples[i].stack == PROFILE_ROOT)
			continue;
		e->items[e->count++] = (struct item){
			.resource = e->resource_of[samples[i].process],
			.kind = profile_state_of(e->profile, samples[i].stack) ? KIND_WAITS : KIND_SAMPLES,
			.sample = (uint32_t)i,
		};
	}
	if (!err)
		qsort(e->items, e->count, sizeof(*e->items), compare_items);
	return err;
}

static Otlp__ValueType value_type(struct encoder *e, const char *type, const char *unit)
{
	Otlp__ValueType made = OTLP__VALUE_TYPE__INIT;

	char *name = output_type_name(type);

	e->dictionary.no_memory |= !name;
	made.type_strindex = otlp_dictionary_text(&e->dictionary, name ?: "");
	made.unit_strindex = otlp_dictionary_text(&e->dictionary, unit);
	free(name);
	return made;
}

/*
 * Writes what values are. Stores know two profiles by these names: samples of a known period, whose product is CPU
 * time, and off_cpu, without a period. Other values each count: the period is 1, and its type is theirs, which
 * Pyroscope takes as the profile's name (2.2, pkg/ingester/otlp/convert.go, newProfileBuilder()). The type of a period
 * is never left out: Parca refuses a request without it (0.28, pkg/normalizer/otel.go, ValidateOtelProfile()).
 */
static void write_types(struct encoder *e, enum kind kind)
{
	Otlp__Profile part = OTLP__PROFILE__INIT;
	Otlp__ValueType type, period = OTLP__VALUE_TYPE__INIT;

	if (kind == KIND_WAITS)
		type = value_type(e, "off_cpu", "nanoseconds");
	else if (e->is_time)
		type = value_type(e, e->states ? "cpu" : e->measure.name, "nanoseconds");
	else
		type = value_type(e, e->measure.name, e->measure.unit);
	part.sample_type = &type;
	part.period_type = &period;
	if (kind == KIND_SAMPLES) {
		period = e->measure.period_ns ? value_type(e, "cpu", "nanoseconds") : type;
		part.period = e->measure.period_ns ? (int64_t)e->measure.period_ns : 1;
	}
	otlp__profile__pack_to_buffer(&part, &e->open_profile.base);
}

static void open_profile(struct encoder *e, enum kind kind)
{
	const char *start = profile_find_fact(e->profile, PROFILE_FACT_START);
	const char *duration = profile_find_fact(e->profile, PROFILE_FACT_DURATION);
	const double ns = duration ? strtod(duration, NULL) * 1e9 : 0;
	Otlp__Profile part = OTLP__PROFILE__INIT;
	uint8_t id[16] = {0};

	if (getrandom(id, sizeof(id), 0) == sizeof(id))
		part.profile_id = (ProtobufCBinaryData){sizeof(id), id};
	part.time_unix_nano = start ? strtoull(start, NULL, 10) : 0;
	part.duration_nano = ns >= 0 && ns < (double)INT64_MAX ? (uint64_t)(ns + 0.5) : 0;
	otlp__profile__pack_to_buffer(&part, &e->open_profile.base);
	write_types(e, kind);
	e->profile_is_open = true;
	e->in_profile = 0;
}

static void close_profile(struct encoder *e)
{
	Otlp__ScopeProfiles part = OTLP__SCOPE_PROFILES__INIT;
	ProtobufCBinaryData profile = proto_bytes_value(&e->open_profile);

	if (!e->profile_is_open)
		return;
	part.profiles = &profile;
	part.n_profiles = 1;
	otlp__scope_profiles__pack_to_buffer(&part, &e->scope.base);
	proto_bytes_clear(&e->open_profile);
	e->profile_is_open = false;
	e->request_pprof += PPROF_PROFILE_BYTES + e->pprof_bytes;
	e->pprof_bytes = 0;
	e->profile_number++;
}

static void close_resource(struct encoder *e, uint32_t resource)
{
	const struct intern_bytes *bytes = intern_item(&e->resources, resource);
	Otlp__ScopeProfiles scope_part = OTLP__SCOPE_PROFILES__INIT;
	Otlp__ResourceProfiles part = OTLP__RESOURCE_PROFILES__INIT;
	Otlp__Request request = OTLP__REQUEST__INIT;
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	ProtobufCBinaryData value;
	char name[] = "pybpf";
	const char *version = profile_find_fact(e->profile, PROFILE_FACT_VERSION);

	close_profile(e);
	scope.name = name;
	if (version)
		scope.version = (char *)version;
	scope_part.scope = &scope;
	otlp__scope_profiles__pack_to_buffer(&scope_part, &e->scope.base);
	value = proto_bytes_value(&e->scope);
	part.resource = (ProtobufCBinaryData){bytes->size, (uint8_t *)bytes->bytes};
	part.scope_profiles = &value;
	part.n_scope_profiles = 1;
	otlp__resource_profiles__pack_to_buffer(&part, &e->resource.base);
	value = proto_bytes_value(&e->resource);
	request.resource_profiles = &value;
	request.n_resource_profiles = 1;
	otlp__request__pack_to_buffer(&request, &e->request.base);
	proto_bytes_clear(&e->scope);
	proto_bytes_clear(&e->resource);
}

static bool no_memory(const struct encoder *e)
{
	return e->dictionary.no_memory || e->dictionary.bytes.no_memory || e->open_profile.no_memory ||
	       e->scope.no_memory || e->resource.no_memory || e->request.no_memory;
}

/* Hands the request on, which has the items before the end, and begins another one. Returns 0 or negative errno. */
static int finish_request(struct encoder *e, size_t end)
{
	Otlp__Request part = OTLP__REQUEST__INIT;
	int err;

	part.dictionary = proto_bytes_value(&e->dictionary.bytes);
	otlp__request__pack_to_buffer(&part, &e->request.base);
	if (no_memory(e))
		return -ENOMEM;
	err = e->options->take(e->options->take_arg, e->request.bytes, e->request.size);
	if (!err)
		e->begun = end;
	e->request_pprof = 0;
	proto_bytes_clear(&e->request);
	otlp_dictionary_begin(&e->dictionary);
	return err;
}

static int64_t value_of(const struct encoder *e, const struct profile_sample *sample)
{
	int64_t value;

	return __builtin_mul_overflow(sample->value, e->is_time ? NS_PER_US : 1, &value) ? INT64_MAX : value;
}

static size_t add_number(struct encoder *e, const char *key, const char *label, int32_t number, int32_t *to)
{
	char text[16];

	if (!number)
		return 0;
	to[0] = otlp_dictionary_number_attribute(&e->dictionary, key, number);
	if (!label)
		return 1;
	snprintf(text, sizeof(text), "%d", number);
	to[1] = otlp_dictionary_text_attribute(&e->dictionary, label, text);
	return 2;
}

static size_t attributes_of(struct encoder *e, const struct profile_sample *sample, int32_t to[SAMPLE_ATTRIBUTES])
{
	const struct profile_process *process = profile_process_at(e->profile, sample->process);
	const struct profile_thread *thread = NULL;
	uint32_t state = profile_state_of(e->profile, sample->stack);
	size_t n = add_number(e, PROCESS_PID, LABEL_PID, process->pid, to);

	n += add_number(e, PROCESS_VPID, NULL, process->inner_pid, to + n);
	if (sample->thread != PROFILE_NONE)
		thread = profile_thread_at(e->profile, sample->thread);
	if (thread)
		n += add_number(e, THREAD_ID, LABEL_TID, thread->tid, to + n);
	if (thread && thread->name)
		to[n++] = otlp_dictionary_string_attribute(&e->dictionary, THREAD_NAME, thread->name);
	if (state)
		to[n++] = otlp_dictionary_string_attribute(&e->dictionary, THREAD_STATE, state);
	return n;
}

/* Returns the bytes that a sample adds to the open profile as pprof, with functions that are new there. */
static size_t pprof_size(const struct encoder *e, const struct profile_sample *sample)
{
	size_t size = PPROF_LABELS_BYTES;

	for (uint32_t i = sample->stack; i != PROFILE_ROOT; i = profile_stack_at(e->profile, i)->parent) {
		const uint32_t number = profile_stack_at(e->profile, i)->frame;
		const struct profile_frame *frame = profile_frame_at(e->profile, number);

		size += PPROF_FRAME_BYTES;
		if (e->frame_in[number] != e->profile_number)
			size += PPROF_FUNCTION_BYTES + strlen(profile_string(e->profile, frame->name)) +
				strlen(profile_string(e->profile, frame->file));
	}
	return size;
}

static bool is_full(const struct encoder *e, const struct profile_sample *next)
{
	return e->in_profile == PROFILE_SAMPLES_MAX || e->pprof_bytes + pprof_size(e, next) > REQUEST_PPROF_MAX;
}

static void note_frames(struct encoder *e, const struct profile_sample *sample)
{
	for (uint32_t i = sample->stack; i != PROFILE_ROOT; i = profile_stack_at(e->profile, i)->parent)
		e->frame_in[profile_stack_at(e->profile, i)->frame] = e->profile_number;
}

static void add_sample(struct encoder *e, const struct profile_sample *from)
{
	Otlp__Profile part = OTLP__PROFILE__INIT;
	Otlp__Sample sample = OTLP__SAMPLE__INIT, *one = &sample;
	int32_t attributes[SAMPLE_ATTRIBUTES];
	int64_t value = value_of(e, from);

	sample.stack_index = otlp_dictionary_stack(&e->dictionary, from->stack);
	sample.n_attribute_indices = attributes_of(e, from, attributes);
	sample.attribute_indices = attributes;
	sample.values = &value;
	sample.n_values = 1;
	part.samples = &one;
	part.n_samples = 1;
	otlp__profile__pack_to_buffer(&part, &e->open_profile.base);
	e->in_profile++;
	e->pprof_bytes += pprof_size(e, from);
	note_frames(e, from);
}

/* Returns the most bytes that the request has once the sample is in it, and all that is open is closed. */
static size_t size_with(struct encoder *e, const struct item *item, const struct profile_sample *sample)
{
	const struct intern_bytes *resource = intern_item(&e->resources, item->resource);
	size_t name = sample->thread == PROFILE_NONE
			      ? 0
			      : strlen(profile_string(e->profile, profile_thread_at(e->profile, sample->thread)->name));

	return e->request.size + e->dictionary.bytes.size + e->scope.size + e->open_profile.size + resource->size +
	       PROFILE_BYTES_MAX + SAMPLE_BYTES_MAX + 4 * name + otlp_dictionary_growth(&e->dictionary, sample->stack);
}

static bool is_request_full(struct encoder *e, const struct item *next, const struct profile_sample *sample)
{
	const size_t pprof = e->request_pprof + PPROF_PROFILE_BYTES + e->pprof_bytes + pprof_size(e, sample);

	return pprof > REQUEST_PPROF_MAX || size_with(e, next, sample) > e->options->body_max;
}

/* Ends the profile, the resource or the body before a sample that is of another one, or that does not fit. */
static int make_place(struct encoder *e, const struct item *item, const struct profile_sample *sample)
{
	const struct item *last = item == e->items ? NULL : item - 1;
	int err = 0;

	if (last && last->resource != item->resource)
		close_resource(e, last->resource);
	else if (last && (last->kind != item->kind || is_full(e, sample)))
		close_profile(e);
	if (last && e->options->body_max && is_request_full(e, item, sample)) {
		if (last->resource == item->resource)
			close_resource(e, item->resource);
		err = finish_request(e, (size_t)(item - e->items));
	}
	if (!e->profile_is_open)
		open_profile(e, item->kind);
	return err;
}

static int encode(struct encoder *e)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(e->profile, &count);
	int err = 0;

	otlp_dictionary_begin(&e->dictionary);
	for (size_t i = 0; i < e->count && !err; i++) {
		const struct profile_sample *sample = &samples[e->items[i].sample];

		err = make_place(e, &e->items[i], sample);
		if (!err)
			add_sample(e, sample);
	}
	if (!err && e->count)
		close_resource(e, e->items[e->count - 1].resource);
	if (!err && (e->count || !e->options->body_max))
		err = finish_request(e, e->count);
	return err;
}

/* Returns the sum of the values that are in no body which was taken. */
static uint64_t values_left(const struct encoder *e)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(e->profile, &count);
	uint64_t sum = 0;

	for (size_t i = e->begun; i < e->count; i++)
		sum += samples[e->items[i].sample].value;
	return sum;
}

/* Notes with which process the next profile begins. */
static void note_next(const struct encoder *e)
{
	size_t count, next = e->begun;
	const struct profile_sample *samples = profile_samples(e->profile, &count);

	while (next < e->count && e->items[next].resource == e->items[0].resource)
		next++;
	if (next < e->count)
		*e->options->from = samples[e->items[next].sample].process;
}

int otlp_encode(const struct profile *p, const struct otlp_options *options)
{
	struct encoder e = {
		.profile = p,
		.options = options,
		.measure = profile_get_measure(p),
		.states = profile_has_states(p),
		.open_profile = proto_bytes(),
		.scope = proto_bytes(),
		.resource = proto_bytes(),
		.request = proto_bytes(),
	};
	int err = otlp_dictionary_init(&e.dictionary, p);
	bool sorted;

	intern_init(&e.resources, sizeof(struct intern_bytes), INTERN_BYTES);
	e.is_time = strcmp(e.measure.unit, PROFILE_UNIT_TIME) == 0;
	err = err ?: sort_samples(&e);
	sorted = !err;
	err = err ?: encode(&e);
	if (options->left)
		*options->left = sorted ? values_left(&e) : profile_total(p);
	if (options->from && sorted)
		note_next(&e);
	for (uint32_t i = 0; i < e.resources.count; i++)
		free((void *)((const struct intern_bytes *)intern_item(&e.resources, i))->bytes);
	intern_free(&e.resources);
	proto_bytes_free(&e.open_profile);
	proto_bytes_free(&e.scope);
	proto_bytes_free(&e.resource);
	proto_bytes_free(&e.request);
	otlp_dictionary_free(&e.dictionary);
	free(e.resource_of);
	free(e.items);
	free(e.frame_in);
	return err;
}

static int write_body(void *arg, const void *body, size_t size)
{
	return fwrite(body, 1, size, arg) == size ? 0 : -errno;
}

int output_otlp(const struct profile *p, const struct output_options *options, FILE *out)
{
	(void)options;
	return otlp_encode(p, &(struct otlp_options){.take = write_body, .take_arg = out});
}
