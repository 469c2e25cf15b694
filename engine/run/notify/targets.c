/* The receivers of notifications from the settings, read as strictly as a definition: a misspelt member would be an
 * event that nobody gets. */
#include "run/notify/targets.h"

#include <string.h>

#include "base/file.h"
#include "base/instant.h"
#include "base/json.h"
#include "core/show/event.h"
#include "io/http/client.h"
#include "run/notify/signature.h"

#define NAME_BYTES_MAX 64
#define URL_BYTES_MAX 2048
#define EVENTS_BYTES_MAX 1024
#define NAMESPACE_DEFAULT "default"
#define MS_SECOND 1000
#define MS_DAY (INT64_C(24) * 3600 * 1000)

struct line_reading { /* the reading of one line */
    struct slice row, at;
    struct arena *arena;
    struct faults *faults;
};

static struct slice place(const struct line_reading *reading, const char *member)
{
    return json_pointer_join(reading->arena, reading->at, slice_of(member));
}

static void read_members(const struct line_reading *reading)
{
    static const char *const known[] = {"name", "namespace", "url", "events", "secrets", "timeout", "give_up_after"};
    struct json_walk walk = json_walk(reading->row);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        bool found = false;

        for (size_t i = 0; i < COUNT_OF(known); i++) {
            found = found || slice_is(name, known[i]);
        }
        if (!found) {
            faults_add(reading->faults, json_pointer_join(reading->arena, reading->at, name),
                       "is not known; a receiver has name, namespace, url, events, secrets, timeout, give_up_after");
        }
    }
}

static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", text.ptr[i])) {
            return false;
        }
    }
    return text.len > 0 && text.len <= NAME_BYTES_MAX;
}

static struct slice read_name(const struct line_reading *reading)
{
    struct slice name = json_string(json_member(reading->row, "name"), reading->arena);

    if (!is_name(name)) {
        faults_add(reading->faults, place(reading, "name"),
                   "must be a name of small letters, digits, \"-\", \"_\", \".\"");
    }
    return name;
}

static struct slice read_namespace(const struct line_reading *reading)
{
    struct slice value = json_member(reading->row, "namespace"), text = json_string(value, reading->arena);

    if (value.ptr && (!text.ptr || text.len == 0 || text.len > 128)) {
        faults_add(reading->faults, place(reading, "namespace"), "must be the name of a namespace");
    }
    return value.ptr ? text : SLICE(NAMESPACE_DEFAULT);
}

static struct slice read_url(const struct line_reading *reading)
{
    struct slice url = json_string(json_member(reading->row, "url"), reading->arena);
    size_t head = slice_starts_with(url, "https://") ? 8 : slice_starts_with(url, "http://") ? 7 : 0;
    bool plain = head > 0 && url.len > head && url.len <= URL_BYTES_MAX;

    for (size_t i = 0; i < url.len; i++) {
        plain = plain && (unsigned char)url.ptr[i] > ' ' && (unsigned char)url.ptr[i] < 0x7f;
    }
    if (!plain) {
        faults_add(reading->faults, place(reading, "url"), "must be a URL that begins with https:// or http://");
    } else if (!http_url_is_good(url)) {
        faults_add(reading->faults, place(reading, "url"), "cannot be read as a URL: look at its host and its port");
    }
    return url;
}

static struct slice read_events(const struct line_reading *reading)
{
    struct slice value = json_member(reading->row, "events"), types = SLICE_NONE, element;
    struct json_walk walk = json_walk(value);
    struct buffer out;

    if (!value.ptr) {
        return SLICE_NONE;
    }
    buffer_init(&out, EVENTS_BYTES_MAX);
    while (json_type(value) == JSON_ARRAY && json_next_element(&walk, &element)) {
        struct slice type = json_string(element, reading->arena);

        if (buffer_slice(&out).len > 0) {
            buffer_put_char(&out, ',');
        }
        if (!type.ptr || memchr(type.ptr, ',', type.len) || !event_types_are_known(type)) {
            faults_add(reading->faults, place(reading, "events"), "there is no type of events %.*s",
                       SLICE_ARG(element));
        }
        buffer_put_slice(&out, type);
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) == 0 || out.overflow) {
        faults_add(reading->faults, place(reading, "events"),
                   "must be an array of types of events such as \"case.*\"; leave it out for all");
    } else {
        types = arena_slice(reading->arena, buffer_slice(&out));
    }
    buffer_fini(&out);
    return types;
}

static void read_secrets(const struct line_reading *reading, struct notify_target *target)
{
    struct slice value = json_member(reading->row, "secrets"), element;
    struct json_walk walk = json_walk(value);
    size_t count = json_type(value) == JSON_ARRAY ? json_count(value) : 0;

    if (count == 0 || count > NOTIFY_SECRETS_MAX) {
        faults_add(reading->faults, place(reading, "secrets"), "must be an array of one to %d names of secrets",
                   NOTIFY_SECRETS_MAX);
        return;
    }
    while (json_next_element(&walk, &element)) {
        struct slice name = json_string(element, reading->arena);

        if (!name.ptr || name.len == 0 || memchr(name.ptr, '/', name.len)) {
            faults_add(reading->faults, place(reading, "secrets"),
                       "%.*s is no name of a secret of the namespace (it is given without the namespace)",
                       SLICE_ARG(element));
        }
        target->secrets[target->secret_count++] = name;
    }
}

static int64_t read_duration(const struct line_reading *reading, const char *member, int64_t standard, int64_t least,
                             int64_t most)
{
    struct slice value = json_member(reading->row, member);
    int64_t ms = standard;

    if (value.ptr && (!duration_parse(json_string(value, reading->arena), &ms) || ms < least || ms > most)) {
        char from[INSTANT_TEXT_BYTES], to[INSTANT_TEXT_BYTES];

        duration_text(least, from);
        duration_text(most, to);
        faults_add(reading->faults, place(reading, member), "must be a duration from %s to %s", from, to);
    }
    return ms;
}

static void read_target(const struct line_reading *reading, struct notify_targets *targets)
{
    struct notify_target target = {0};

    if (json_type(reading->row) != JSON_OBJECT) {
        faults_add(reading->faults, reading->at, "must be an object");
        return;
    }
    read_members(reading);
    target.name = read_name(reading);
    target.namespace = read_namespace(reading);
    target.url = read_url(reading);
    target.events = read_events(reading);
    read_secrets(reading, &target);
    target.timeout_ms = read_duration(reading, "timeout", 10 * MS_SECOND, 100, 60 * MS_SECOND);
    target.give_up_ms = read_duration(reading, "give_up_after", 3 * MS_DAY, MS_SECOND, 30 * MS_DAY);
    for (size_t i = 0; i < targets->count; i++) {
        if (slice_equal(targets->items[i].name, target.name) &&
            slice_equal(targets->items[i].namespace, target.namespace)) {
            faults_add(reading->faults, reading->at, "there is a receiver of this name in the namespace already");
        }
    }
    targets->items[targets->count++] = target;
}

static enum err_code refuse(struct notify_targets *targets, const struct faults *faults, struct err *err)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the file of notifications is wrong");

    err_detail(err, "%.*s: %.*s", SLICE_ARG(faults->items[0].pointer), SLICE_ARG(faults->items[0].detail));
    err_hint(err, "it is {\"notify\": [{\"name\", \"namespace\"?, \"url\", \"secrets\": [NAME], \"events\"?: [TYPE], "
                  "\"timeout\"?, \"give_up_after\"?}]}");
    notify_targets_fini(targets);
    return code;
}

enum err_code notify_targets_parse(struct notify_targets *targets, struct slice text, struct err *err)
{
    struct faults faults;
    struct slice row;
    size_t i = 0;

    *targets = (struct notify_targets){0};
    arena_init(&targets->arena, 4096);
    faults_init(&faults, &targets->arena);
    if (json_check(text, &json_limits_default, err) != ERR_OK) {
        err->code = ERR_CONFIG;
        notify_targets_fini(targets);
        return err_context(err, "the file of notifications");
    }
    text = arena_slice(&targets->arena, text);
    struct slice rows = json_member(text, "notify");

    if (json_type(text) != JSON_OBJECT || json_type(rows) != JSON_ARRAY || json_count(text) != 1) {
        faults_add(&faults, SLICE(""), "must be an object with the one member \"notify\", an array");
    } else if (json_count(rows) > NOTIFY_TARGETS_MAX) {
        faults_add(&faults, SLICE("/notify"), "more than %d receivers", NOTIFY_TARGETS_MAX);
    } else {
        struct json_walk walk = json_walk(rows);

        targets->items = arena_array(&targets->arena, json_count(rows) + 1, sizeof(*targets->items));
        while (json_next_element(&walk, &row)) {
            struct line_reading reading = {.row = row,
                                           .at = arena_printf(&targets->arena, "/notify/%zu", i++),
                                           .arena = &targets->arena,
                                           .faults = &faults};

            read_target(&reading, targets);
        }
    }
    return faults.count > 0 ? refuse(targets, &faults, err) : ERR_OK;
}

enum err_code notify_targets_load(struct notify_targets *targets, const char *path, struct err *err)
{
    struct arena scratch;
    struct slice text;

    *targets = (struct notify_targets){0};
    if (!path || !*path) {
        return ERR_OK;
    }
    arena_init(&scratch, 4096);
    enum err_code code = file_read(path, "notifications", 1024, FILE_OF_ANYBODY, &scratch, &text, err);

    if (code == ERR_OK) {
        code = notify_targets_parse(targets, text, err);
    }
    arena_fini(&scratch);
    return code;
}

enum err_code notify_targets_check(const struct notify_targets *targets, const struct secrets *secrets, struct err *err)
{
    enum err_code code = ERR_OK;

    for (size_t i = 0; i < targets->count && code == ERR_OK; i++) {
        const struct notify_target *target = &targets->items[i];

        for (size_t k = 0; k < target->secret_count && code == ERR_OK; k++) {
            struct signature_key key;
            struct arena scratch;

            arena_init(&scratch, 1024);
            struct slice json = secrets_json(secrets, target->namespace, target->secrets[k], &scratch);

            if (!signature_key_read(json.ptr ? json_string(json, &scratch) : SLICE_NONE, &key)) {
                code = err_set(err, ERR_CONFIG, "the receiver \"%.*s\" of notifications cannot be signed for",
                               SLICE_ARG(target->name));
                err_detail(err, "the namespace \"%.*s\" has no secret \"%.*s\"%s", SLICE_ARG(target->namespace),
                           SLICE_ARG(target->secrets[k]), json.ptr ? " of the right form" : "");
                err_hint(err, "put \"whsec_\" and 24 to 64 random bytes as base64 into the file of --secrets");
            }
            signature_key_wipe(&key);
            arena_fini(&scratch);
        }
    }
    return code;
}

void notify_targets_fini(struct notify_targets *targets)
{
    arena_fini(&targets->arena);
    *targets = (struct notify_targets){0};
}
