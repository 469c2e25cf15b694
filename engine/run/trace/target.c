/* See target.h. The form of headers and attributes is that of the OpenTelemetry specification: W3C baggage without
 * properties. */
#include "run/trace/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#define TRACES_PATH "/v1/traces"
#define LIST_BYTES_MAX 16384

struct pair {
    struct slice name, value;
};

/* Returns false when a percent sign stands before something else than two hexadecimal digits. */
static bool decode(struct slice text, struct arena *arena, struct slice *out)
{
    char *bytes = arena_alloc(arena, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            bytes[len++] = text.ptr[i];
            continue;
        }
        if (i + 2 >= text.len || hex_digit(text.ptr[i + 1]) < 0 || hex_digit(text.ptr[i + 2]) < 0) {
            return false;
        }
        bytes[len++] = (char)(hex_digit(text.ptr[i + 1]) * 16 + hex_digit(text.ptr[i + 2]));
        i += 2;
    }
    *out = (struct slice){bytes, len};
    return true;
}

/* Says which element is wrong, but not what stands in it: it may be a secret. */
static enum err_code read_pairs(const char *text, const char *what, struct pair *pairs, size_t max, size_t *count,
                                struct arena *arena, struct err *err)
{
    struct slice parts[TRACE_RESOURCE_MAX + 1];
    struct slice whole = slice_of(text ? text : "");
    size_t n = whole.len <= LIST_BYTES_MAX ? slice_split(whole, ',', parts, max + 1) : max + 1;

    *count = 0;
    if (n > max) {
        return err_set(err, ERR_CONFIG, "%s has more than %zu elements, or more than %d bytes", what, max,
                       LIST_BYTES_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        struct slice part = slice_trim(parts[i]);
        const char *equals = part.len ? memchr(part.ptr, '=', part.len) : NULL;
        struct pair *pair = &pairs[*count];

        if (part.len == 0) {
            continue;
        }
        size_t name_len = equals ? (size_t)(equals - part.ptr) : 0;

        if (name_len == 0 || !decode(slice_trim((struct slice){part.ptr, name_len}), arena, &pair->name) ||
            !decode(slice_trim((struct slice){equals + 1, part.len - name_len - 1}), arena, &pair->value) ||
            !text_is_utf8(pair->name) || !text_is_utf8(pair->value)) {
            (void)err_set(err, ERR_CONFIG, "element %zu of %s is not NAME=VALUE", i + 1, what);
            err_hint(err, "write NAME=VALUE with commas between, and other characters as %%XX");
            return ERR_CONFIG;
        }
        ++*count;
    }
    return ERR_OK;
}

static bool is_header_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-_.", c)))) {
            return false;
        }
    }
    return name.len > 0;
}

static bool is_header_value(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < 0x20 || (unsigned char)value.ptr[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static enum err_code read_headers(struct trace_target *target, const char *text, struct err *err)
{
    struct pair pairs[TRACE_HEADERS_MAX + 1];
    size_t count;
    enum err_code code = read_pairs(text, "--otlp-headers", pairs, TRACE_HEADERS_MAX - 1, &count, &target->arena, err);

    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        if (!is_header_name(pairs[i].name) || !is_header_value(pairs[i].value)) {
            return err_set(err, ERR_CONFIG, "element %zu of --otlp-headers is no header of HTTP", i + 1);
        }
        target->headers[target->header_count++] = (struct http_header){pairs[i].name, pairs[i].value};
    }
    target->headers[target->header_count++] = (struct http_header){SLICE("content-type"), SLICE("application/json")};
    return code;
}

static void write_attribute(struct json_writer *w, struct slice name, struct slice value)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "key", name);
    json_object_begin(w, "value");
    json_write_slice(w, "stringValue", value);
    json_object_end(w);
    json_object_end(w);
}

/* What the settings say beats what sagad knows by itself. */
static enum err_code read_resource(struct trace_target *target, const struct trace_settings *settings,
                                   const char *instance, const char *version, struct err *err)
{
    const struct pair own[] = {{SLICE("service.name"), slice_of(settings->service ? settings->service : "sagad")},
                               {SLICE("service.version"), slice_of(version ? version : "")},
                               {SLICE("service.instance.id"), slice_of(instance ? instance : "")}};
    struct pair given[TRACE_RESOURCE_MAX + 1];
    struct json_writer w;
    struct buffer out;
    size_t count;
    enum err_code code =
        read_pairs(settings->resource, "--otlp-resource", given, TRACE_RESOURCE_MAX, &count, &target->arena, err);

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < count; i++) {
        if (!(settings->service && slice_equal(given[i].name, own[0].name))) {
            write_attribute(&w, given[i].name, given[i].value);
        }
    }
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        bool is_given = false;

        for (size_t j = 0; j < count; j++) {
            is_given = is_given || slice_equal(given[j].name, own[i].name);
        }
        if (own[i].value.len > 0 && (!is_given || (i == 0 && settings->service))) {
            write_attribute(&w, own[i].name, own[i].value);
        }
    }
    json_array_end(&w);
    target->resource = arena_slice(&target->arena, buffer_slice(&out));
    buffer_fini(&out);
    return code;
}

/* --- the sampler --- */

static const struct {
    const char *name;
    bool asks_parent, is_on, has_ratio;
} samplers[] = {{"parentbased_always_on", true, true, false},   {"always_on", false, true, false},
                {"parentbased_always_off", true, false, false}, {"always_off", false, false, false},
                {"parentbased_traceidratio", true, true, true}, {"traceidratio", false, true, true}};

/* Digits and a point only: not the hexadecimal numbers, infinities and signs that strtod() takes as well. */
static bool read_ratio(const char *text, double *out)
{
    char *end;

    if (!text[0] || strspn(text, "0123456789.") != strlen(text)) {
        return false;
    }
    *out = strtod(text, &end);
    return *end == '\0' && *out >= 0 && *out <= 1;
}

enum err_code trace_sampler_read(struct trace_sampler *sampler, const char *name, const char *arg, struct err *err)
{
    double ratio = 1;

    for (size_t i = 0; i < COUNT_OF(samplers); i++) {
        if (name && strcmp(name, samplers[i].name) != 0) {
            continue;
        }
        if (arg && !samplers[i].has_ratio) {
            (void)err_set(err, ERR_CONFIG, "--otlp-sampler-arg needs a sampler that has a ratio");
            err_hint(err, "set --otlp-sampler to parentbased_traceidratio");
            return ERR_CONFIG;
        }
        if (arg && !read_ratio(arg, &ratio)) {
            (void)err_set(err, ERR_CONFIG, "--otlp-sampler-arg is no ratio");
            err_hint(err, "write a number from 0 to 1, such as 0.01");
            return ERR_CONFIG;
        }
        *sampler =
            (struct trace_sampler){.asks_parent = samplers[i].asks_parent,
                                   .below = samplers[i].is_on ? (uint64_t)(ratio * (double)TRACE_SAMPLE_ALL) : 0};
        return ERR_OK;
    }
    (void)err_set(err, ERR_CONFIG, "--otlp-sampler is none that sagad knows");
    err_hint(err, "write always_on, always_off, traceidratio, or one of them behind parentbased_");
    return ERR_CONFIG;
}

enum err_code trace_target_read(struct trace_target *target, const struct trace_settings *settings,
                                const char *instance, const char *version, struct err *err)
{
    const char *whole = settings->traces_endpoint && settings->traces_endpoint[0] ? settings->traces_endpoint : NULL;
    const char *base = settings->endpoint && settings->endpoint[0] ? settings->endpoint : NULL;
    size_t base_len = base ? strlen(base) : 0;

    *target = (struct trace_target){.url = SLICE_NONE};
    arena_init(&target->arena, 1024);
    while (base_len > 0 && base[base_len - 1] == '/') {
        base_len--;
    }
    struct slice url = whole  ? arena_slice(&target->arena, slice_of(whole))
                       : base ? arena_printf(&target->arena, "%.*s" TRACES_PATH, (int)base_len, base)
                              : SLICE_NONE;

    if (url.ptr &&
        ((!slice_starts_with(url, "http://") && !slice_starts_with(url, "https://")) || !http_url_is_good(url))) {
        (void)err_set(err, ERR_CONFIG, "%s is not the URL of a collector",
                      whole ? "--otlp-traces-endpoint" : "--otlp-endpoint");
        err_hint(err, "write http:// or https://, a host and a port, such as http://127.0.0.1:4318");
        return ERR_CONFIG;
    }
    enum err_code code = read_headers(target, settings->headers, err);

    code = code == ERR_OK ? read_resource(target, settings, instance, version, err) : code;
    code = code == ERR_OK ? trace_sampler_read(&target->sampler, settings->sampler, settings->sampler_arg, err) : code;
    target->url = code == ERR_OK ? url : SLICE_NONE;
    return code;
}

enum err_code trace_target_check(const struct trace_settings *settings, struct err *err)
{
    struct trace_target target;
    enum err_code code = trace_target_read(&target, settings, NULL, NULL, err);

    trace_target_fini(&target);
    return code;
}

void trace_target_fini(struct trace_target *target)
{
    arena_fini(&target->arena);
}
