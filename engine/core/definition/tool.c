/* Reads tools. Each member is checked on its own first; rules over several members come last. */
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "core/definition/exposure.h"
#include "core/definition/parts.h"

#define RECORD_ERRORS_DEFAULT 4096
#define RECORD_ERRORS_MAX 65536

#define KNOWN                                                                                                          \
    "name description http exec sql mcp builtin input effect key outcome result error record_errors probe precheck "   \
    "record_headers "                                                                                                  \
    "compensate terminal retry "                                                                                       \
    "url_raw timeout scope on_duplicate material volatile sensitive ttl on_expired rate concurrency breaker test "     \
    "cost currency expose shared_by"

static void read_name(struct reader *reader, const struct members *m, struct tool *tool)
{
    if (!members_at(m, "name").ptr) {
        faults_add(reader->faults, m->pointer, "the tool has no `name`; it needs one: " NAME_RULE);
    } else if (members_text(m, "name", &tool->name) && !name_is_sound(tool->name, "_.-", NAME_BYTES_MAX)) {
        faults_add(reader->faults, members_pointer(m, "name"),
                   "\"%.*s\" cannot be the name of a tool: that is " NAME_RULE,
                   SLICE_ARG(value_excerpt(tool->name, reader->arena)));
    }
}

#define CLASSES "read idempotent keyed checked once"

static bool read_class(struct reader *reader, struct slice value, struct slice place, const char *what,
                       enum effect *out)
{
    struct slice name = json_type(value) == JSON_STRING ? json_string(value, reader->arena) : SLICE_NONE;

    if (name.ptr && effect_parse(name, out)) {
        return true;
    }
    struct slice near = name.ptr ? word_near(name, CLASSES) : SLICE_NONE;

    faults_add(reader->faults, place, "`%s` is %.*s; it must be read, idempotent, keyed, checked or once%.*s", what,
               SLICE_ARG(value_excerpt(value, reader->arena)), SLICE_ARG(did_you_mean(near, reader->arena)));
    return false;
}

/* Reads {"if": EXPR, "then": CLASS, "else": CLASS}. The arguments of each call decide the class. */
static bool read_conditional(struct reader *reader, struct slice value, struct slice place, struct tool *tool)
{
    static const char *const names[] = {"if", "then", "else"};
    size_t before = reader_faults(reader);
    bool has_all = true, has_then = false, has_else = false;
    struct members m;

    if (!members_open(&m, value, place, "`effect`", "if then else", "", reader->arena, reader->faults)) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        has_all = has_all && members_at(&m, names[i]).ptr;
    }
    if (!has_all) {
        faults_add(reader->faults, place,
                   "an `effect` that depends on the arguments needs `if`, `then` and `else`, such as {\"if\": "
                   "\"${ .args.dry_run }\", \"then\": \"read\", \"else\": \"once\"}");
    }
    reader_expression(reader, &m, "if", ROOT_ARGS, &tool->effect_if);
    if (members_at(&m, "then").ptr) {
        has_then = read_class(reader, members_at(&m, "then"), members_pointer(&m, "then"), "then", &tool->effect_then);
    }
    if (members_at(&m, "else").ptr) {
        has_else = read_class(reader, members_at(&m, "else"), members_pointer(&m, "else"), "else", &tool->effect_else);
    }
    if (has_then && has_else) {
        tool->conditional = true;
        tool->effect = effect_stricter(tool->effect_then, tool->effect_else);
    }
    return reader_faults(reader) == before;
}

/* Reads the class. Returns false when the class is unknown, so that no further rule is applied to it. */
static bool read_effect(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice value = members_at(m, "effect");
    struct slice place = members_pointer(m, "effect");

    if (!value.ptr) {
        faults_add(reader->faults, m->pointer,
                   "`effect` is missing and has no default; say which of read, idempotent, keyed, "
                   "checked and once it is");
        return false;
    }
    return json_type(value) == JSON_OBJECT ? read_conditional(reader, value, place, tool)
                                           : read_class(reader, value, place, "effect", &tool->effect);
}

static bool may_be(const struct tool *tool, enum effect effect)
{
    return tool->effect == effect || tool_effect_mildest(tool) == effect;
}

/* --- key --- */

static const struct {
    const char *member;
    enum key_place place;
    const char *adapter;
} places[] = {
    {"header", KEY_PLACE_HEADER, "http"}, {"body", KEY_PLACE_BODY, "http"}, {"query", KEY_PLACE_QUERY, "http"},
    {"env", KEY_PLACE_ENV, "exec"},       {"meta", KEY_PLACE_META, "mcp"},
};

static bool header_is_sound(struct slice name) /* accepts a token of RFC 9110 */
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c != '\0' && strchr("!#$%&'*+-.^_`|~", c)))) {
            return false;
        }
    }
    return name.len > 0;
}

static bool variable_is_sound(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (i > 0 && c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return name.len > 0;
}

/* Accepts letters and digits, and between them also the characters of `inner`. */
static bool word_is_sound(struct slice word, const char *inner)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!plain && (i == 0 || i == word.len - 1 || c == '\0' || !strchr(inner, c))) {
            return false;
        }
    }
    return word.len > 0;
}

/* Accepts a key of _meta as the Model Context Protocol defines it: an optional prefix of labels with dots and a slash,
 * then a name. */
static bool meta_is_sound(struct slice name)
{
    const char *slash = name.len ? memchr(name.ptr, '/', name.len) : NULL;
    struct slice prefix = {name.ptr, slash ? (size_t)(slash - name.ptr) : 0};
    struct slice rest = slash ? (struct slice){slash + 1, name.len - prefix.len - 1} : name;

    if (name.len > NAME_BYTES_MAX || !word_is_sound(rest, "-_.") || slice_is(name, "progressToken")) {
        return false;
    }
    while (slash && prefix.ptr) {
        const char *dot = prefix.len ? memchr(prefix.ptr, '.', prefix.len) : NULL;
        struct slice label = {prefix.ptr, dot ? (size_t)(dot - prefix.ptr) : prefix.len};

        if (!word_is_sound(label, "-") || slice_is(label, "modelcontextprotocol") || slice_is(label, "mcp")) {
            return false; /* the protocol reserves this prefix */
        }
        prefix = dot ? (struct slice){dot + 1, prefix.len - label.len - 1} : SLICE_NONE;
    }
    return true;
}

static const char *key_name_wanted(enum key_place place, struct slice name) /* returns NULL for a sound name */
{
    switch (place) {
    case KEY_PLACE_HEADER:
        return header_is_sound(name) ? NULL : "the name of a header, such as \"Idempotency-Key\"";
    case KEY_PLACE_BODY:
        return pointer_is_sound(name) && name.len <= POINTER_BYTES_MAX
                   ? NULL
                   : "a JSON Pointer to a member of the body of at most 512 bytes, such as \"/request_id\"";
    case KEY_PLACE_QUERY:
        return name.len > 0 ? NULL : "the name of a query parameter";
    case KEY_PLACE_ENV:
        return variable_is_sound(name) ? NULL : "the name of an environment variable, such as \"IDEMPOTENCY_KEY\"";
    case KEY_PLACE_META:
        return meta_is_sound(name)
                   ? NULL
                   : "a name for _meta that is not the protocol's own, such as \"shop.example/idempotency-key\"";
    case KEY_PLACE_DEFAULT:
        break;
    }
    return NULL;
}

static void read_settles(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice value = members_at(m, "settles"), item;
    struct json_walk walk = json_walk(value);

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) == 0 || json_count(value) > KEY_SETTLES_MAX) {
        faults_add(reader->faults, members_pointer(m, "settles"),
                   "`settles` is %.*s; it must be an array of 1 to %d statuses, such as [402, 422]",
                   SLICE_ARG(value_excerpt(value, reader->arena)), KEY_SETTLES_MAX);
        return;
    }
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        int64_t status = 0;

        if (json_type(item) != JSON_NUMBER || !json_i64(item, &status) || status < 400 || status > 499 ||
            status == 408 || status == 425 || status == 429) {
            faults_add(reader->faults, reader_element_pointer(reader, members_pointer(m, "settles"), i),
                       "%.*s is not the status of a refusal: one from 400 to 499, without 408, 425 and 429, which do "
                       "not refuse for good",
                       SLICE_ARG(value_excerpt(item, reader->arena)));
        } else {
            tool->settles[tool->settles_count++] = (int)status;
        }
    }
}

static void check_settles(struct reader *reader, const struct members *m, const struct tool *tool)
{
    struct slice place = place_join(reader->arena, members_pointer(m, "key"), SLICE("settles"));

    if (tool->settles_count == 0) {
        return;
    }
    if (!may_be(tool, EFFECT_KEYED)) {
        faults_add(reader->faults, place,
                   "`settles` is about a receiver that remembers keys: the effect must be `keyed`");
    }
    if (tool->adapter.ptr && !slice_is(tool->adapter, "http")) {
        faults_add(reader->faults, place, "`settles` names statuses of HTTP, and this tool uses `%.*s`",
                   SLICE_ARG(tool->adapter));
    }
}

/* Reads `key`. This comes before the adapter, which wants to know the place of the key. */
static void read_key(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "key");
    struct members m;

    if (!value.ptr || !members_open(&m, value, members_pointer(tool_members, "key"), "`key`",
                                    "header body query env meta window settles", "", reader->arena, reader->faults)) {
        return;
    }
    (void)members_duration(&m, "window", 1, DURATION_MS_MAX,
                           &tool->key_window_ms); /* the check below wants it of keyed tools */
    read_settles(reader, &m, tool);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct slice name, place = members_pointer(&m, places[i].member);

        if (!members_text(&m, places[i].member, &name)) {
            continue;
        }
        const char *wanted = key_name_wanted(places[i].place, name);

        if (wanted) {
            faults_add(reader->faults, place, "\"%.*s\" must be %s", SLICE_ARG(value_excerpt(name, reader->arena)),
                       wanted);
        }
        if (tool->key_place != KEY_PLACE_DEFAULT) {
            faults_add(reader->faults, place,
                       "the key goes to one place only; keep one of header, body, query, env and meta");
            continue;
        }
        tool->key_place = places[i].place;
        tool->key_name = name;
    }
}

static void check_key_place(struct reader *reader, const struct members *m, const struct tool *tool)
{
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (tool->key_place == places[i].place && tool->adapter.ptr && !slice_is(tool->adapter, places[i].adapter)) {
            faults_add(reader->faults, place_join(reader->arena, members_pointer(m, "key"), slice_of(places[i].member)),
                       "a key in `%s` needs the adapter `%s`, but this tool uses `%.*s`%s", places[i].member,
                       places[i].adapter, SLICE_ARG(tool->adapter),
                       slice_is(tool->adapter, "http")   ? ": use header, body or query"
                       : slice_is(tool->adapter, "exec") ? ": use env"
                       : slice_is(tool->adapter, "mcp")  ? ": use meta"
                                                         : ", which takes the key by itself");
        }
    }
}

/* Reads `url_raw`. This comes before the adapters, because it holds for the URLs of the tool, its probe and its
 * precheck. */
static void read_url_raw(struct reader *reader, const struct members *m)
{
    static const char *const callers[] = {"probe", "precheck"};
    bool has_url = members_at(m, "http").ptr || members_at(m, "mcp").ptr;

    reader->url_raw = false;
    if (!members_bool(m, "url_raw", &reader->url_raw)) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        struct slice value = members_at(m, callers[i]);

        has_url = has_url || (json_type(value) == JSON_OBJECT &&
                              (json_member(value, "http").ptr || json_member(value, "mcp").ptr));
    }
    if (!has_url) {
        faults_add(reader->faults, members_pointer(m, "url_raw"),
                   "`url_raw` is about the URL of `http` or `mcp`, and this tool has none");
    }
}

/* --- outcome and probe --- */

static void read_outcome(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "outcome");
    struct members m;

    if (!value.ptr || !members_open(&m, value, members_pointer(tool_members, "outcome"), "`outcome`",
                                    "completed running retry no_effect", "", reader->arena, reader->faults)) {
        return;
    }
    reader_expression(reader, &m, "completed", ROOTS_RESPONSE, &tool->outcome.completed);
    reader_expression(reader, &m, "running", ROOTS_RESPONSE, &tool->outcome.running);
    reader_expression(reader, &m, "retry", ROOTS_RESPONSE, &tool->outcome.retry);
    reader_expression(reader, &m, "no_effect", ROOTS_RESPONSE, &tool->outcome.no_effect);
    if (members_at(&m, "running").ptr && !tool->has_probe) {
        faults_add(reader->faults, members_pointer(&m, "running"),
                   "nothing would ever complete what is `running`: the tool needs "
                   "a `probe`, or no `running`");
    }
}

/* Reads how many bytes of an unsuccessful answer are kept. */
static void read_record_errors(const struct members *m, struct tool *tool)
{
    bool keeps = true;

    tool->record_errors = RECORD_ERRORS_DEFAULT;
    if (json_type(members_at(m, "record_errors")) == JSON_BOOL) {
        (void)members_bool(m, "record_errors", &keeps); /* it is one */
        tool->record_errors = keeps ? RECORD_ERRORS_DEFAULT : 0;
        return;
    }
    (void)members_count(m, "record_errors", 0, RECORD_ERRORS_MAX, &tool->record_errors); /* the member has a default */
}

static bool is_header_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= RECORD_HEADER_BYTES_MAX;
}

static void read_record_headers(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice value = members_at(m, "record_headers"), item;
    struct json_walk walk = json_walk(value);
    bool good = json_type(value) == JSON_ARRAY && json_count(value) <= RECORD_HEADERS_MAX;

    if (!value.ptr) {
        return;
    }
    while (good && json_next_element(&walk, &item)) {
        good = json_type(item) == JSON_STRING && is_header_name(json_string(item, reader->arena));
    }
    if (!good) {
        faults_add(reader->faults, members_pointer(m, "record_headers"),
                   "`record_headers` is %.*s; it must be an array of at most %d names of headers, in small letters",
                   SLICE_ARG(value_excerpt(value, reader->arena)), RECORD_HEADERS_MAX);
        return;
    }
    tool->record_headers = value;
}

/* Reads the scope. Programs are refused: the scope must be known before anything about the call is looked up, and a
 * program needs a process. */
static void read_scope(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct template *scope = &tool->scope;

    reader_template(reader, m, "scope", ROOT_ARGS, scope);
    if (template_is_set(scope) && json_type(scope->json) != JSON_STRING) {
        faults_add(reader->faults, members_pointer(m, "scope"),
                   "`scope` is %.*s; it must be a string, such as \"${ .args.customer }\"",
                   SLICE_ARG(value_excerpt(scope->json, reader->arena)));
    }
    if (scope->program_count > 0) {
        faults_add(
            reader->faults, members_pointer(m, "scope"),
            "the `scope` of a tool takes plain paths, such as \"${ .args.customer }\"; what has to be computed is "
            "said by the step or the caller");
    }
}

static void read_probe(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "probe"), outcome;
    struct probe *probe = &tool->probe;
    struct members m, conditions;

    if (!value.ptr) {
        return;
    }
    *probe = (struct probe){.visibility_ms = PROBE_VISIBILITY_DEFAULT_MS,
                            .timeout_ms = TIMEOUT_DEFAULT_MS,
                            .give_up_after_ms = GIVE_UP_AFTER_DEFAULT_MS};
    tool->has_probe = true;
    if (!members_open(&m, value, members_pointer(tool_members, "probe"), "`probe`",
                      ADAPTERS " outcome result visibility timeout give_up_after", "", reader->arena, reader->faults)) {
        return;
    }
    reader_adapter(reader, &m, "a probe", KEY_PLACE_DEFAULT, &probe->adapter, &probe->settings);
    reader_refuse_barrier(reader, &m, "a probe");
    reader_template(reader, &m, "result", ROOTS_RESPONSE, &probe->result);
    (void)members_duration(&m, "visibility", 0, DURATION_MS_MAX, &probe->visibility_ms); /* the member has a default */
    (void)members_duration(&m, "timeout", 1, TIMEOUT_MAX_MS, &probe->timeout_ms);        /* here */
    (void)members_duration(&m, "give_up_after", 1, DURATION_MS_MAX, &probe->give_up_after_ms); /* and here */
    outcome = members_at(&m, "outcome");
    if (!outcome.ptr || !members_open(&conditions, outcome, members_pointer(&m, "outcome"), "`outcome` of a probe",
                                      "completed absent running", "", reader->arena, reader->faults)) {
        return;
    }
    reader_expression(reader, &conditions, "completed", ROOTS_RESPONSE, &probe->outcome.completed);
    reader_expression(reader, &conditions, "absent", ROOTS_RESPONSE, &probe->outcome.absent);
    reader_expression(reader, &conditions, "running", ROOTS_RESPONSE, &probe->outcome.running);
}

/* --- rules over several members --- */

/* Refuses members that make no sense beside the effect `read`. */
static void check_read(struct reader *reader, const struct members *m, const struct tool *tool)
{
    static const char *const recorded[] = {"on_duplicate", "material", "ttl", "on_expired"};

    reader_refuse_barrier(reader, m, "a `read`");
    if (tool->compensate.is_set) {
        faults_add(reader->faults, members_pointer(m, "compensate"),
                   "a `read` changes nothing, so there is nothing to "
                   "compensate; leave `compensate` out or choose another effect");
    }
    if (tool->terminal) {
        faults_add(reader->faults, members_pointer(m, "terminal"),
                   "a `read` changes nothing, so it cannot be terminal; leave "
                   "`terminal` out or choose another effect");
    }
    if (members_at(m, "key").ptr) {
        faults_add(reader->faults, members_pointer(m, "key"),
                   "a `read` is repeated freely and sends no key; leave `key` out or "
                   "choose another effect");
    }
    if (tool->has_precheck) {
        faults_add(reader->faults, members_pointer(m, "precheck"),
                   "a `read` changes nothing, so there is no wanted state to look for before it; leave `precheck` out "
                   "or choose another effect");
    }
    for (size_t i = 0; i < COUNT_OF(recorded); i++) {
        if (members_at(m, recorded[i]).ptr) {
            faults_add(reader->faults, members_pointer(m, recorded[i]),
                       "a `read` is called again each time, so there are no duplicates to answer; leave `%s` out or "
                       "choose another effect",
                       recorded[i]);
        }
    }
}

static void check_rules(struct reader *reader, const struct members *m, const struct tool *tool)
{
    bool has_key = members_at(m, "key").ptr != NULL;
    const char *may =
        tool->conditional && tool->effect_then != tool->effect_else ? ", which it may turn out to be," : "";

    if (may_be(tool, EFFECT_KEYED) && tool->key_window_ms == 0 && !json_member(members_at(m, "key"), "window").ptr) {
        faults_add(reader->faults, has_key ? members_pointer(m, "key") : m->pointer,
                   "the effect `keyed`%s needs `key.window`: how long "
                   "the receiver remembers a key, such as {\"window\": \"24h\"}",
                   may);
    }
    if (may_be(tool, EFFECT_CHECKED) && !tool->has_probe) {
        faults_add(reader->faults, m->pointer,
                   "the effect `checked`%s needs a `probe` that asks whether the operation of a key "
                   "happened; without one it can only be `once`",
                   may);
    }
    check_settles(reader, m, tool);
    if (tool->effect == EFFECT_READ) {
        check_read(reader, m, tool);
    } else if (tool->terminal && tool->compensate.is_set) {
        faults_add(reader->faults, members_pointer(m, "terminal"),
                   "`terminal` says that nothing undoes this effect, `compensate` "
                   "says what does; keep one of them");
    }
}

struct tool *tool_read(struct reader *reader, struct slice body, struct slice name, uint32_t version,
                       struct slice pointer)
{
    struct tool *tool = arena_alloc(reader->arena, sizeof(*tool));
    bool is_inline = name.ptr != NULL;
    struct members m;

    tool->version = version;
    tool->reading = reader->reading;
    tool->body = arena_slice(reader->arena, json_trim(body));
    tool->name = arena_slice(reader->arena, name);
    tool->timeout_ms = TIMEOUT_DEFAULT_MS;
    pointer = arena_slice(reader->arena, pointer);
    reader->tool_is_graded = false;
    if (reader->reading > READING_NEWEST) {
        faults_add(reader->faults, pointer,
                   "it was registered under reading %d by a later release, and this one knows %d; run it on engines of "
                   "that release",
                   (int)reader->reading, (int)READING_NEWEST);
        return tool;
    }
    if (!members_open(&m, tool->body, pointer, is_inline ? "an inline tool" : "a tool", KNOWN, "", reader->arena,
                      reader->faults)) {
        return tool;
    }
    if (is_inline && members_at(&m, "name").ptr) {
        faults_add(reader->faults, members_pointer(&m, "name"),
                   "a tool written in place has no `name` of its own, it is called `%.*s`; leave `name` out",
                   SLICE_ARG(name));
    } else if (!is_inline) {
        read_name(reader, &m, tool);
    }
    size_t before = reader_faults(reader);
    bool has_effect = read_effect(reader, &m, tool), is_graded = reader_faults(reader) == before;

    (void)members_text(&m, "description", &tool->description); /* without a description by default */
    if (is_inline && members_at(&m, "shared_by").ptr) {
        faults_add(reader->faults, members_pointer(&m, "shared_by"),
                   "a tool written in place belongs to its saga; leave `shared_by` out");
    }
    read_key(reader, &m, tool);
    read_url_raw(reader, &m);
    reader_adapter(reader, &m, "a tool", tool->key_place, &tool->adapter, &tool->settings);
    check_key_place(reader, &m, tool);
    if (members_at(&m, "input").ptr) {
        tool->input =
            schema_compile(members_at(&m, "input"), members_pointer(&m, "input"), reader->arena, reader->faults);
    }
    read_probe(reader, &m, tool);
    tool_read_registry(reader, &m, tool);
    read_outcome(reader, &m, tool);
    reader_template(reader, &m, "result", ROOTS_RESPONSE, &tool->result);
    reader_template(reader, &m, "error", ROOTS_RESPONSE, &tool->error);
    read_record_errors(&m, tool);
    read_record_headers(reader, &m, tool);
    read_scope(reader, &m, tool);
    before = reader_faults(reader);
    if (members_at(&m, "compensate").ptr) {
        reader_compensator(reader, members_at(&m, "compensate"), members_pointer(&m, "compensate"), ROOTS_COMPENSATE,
                           &tool->compensate);
    }
    (void)members_bool(&m, "terminal", &tool->terminal); /* false by default */
    reader->tool_is_graded =
        is_graded && reader_faults(reader) == before && !(tool->terminal && tool->compensate.is_set);
    (void)members_duration(&m, "timeout", 1, TIMEOUT_MAX_MS, &tool->timeout_ms); /* the member has a default */
    tool->retry = retry_policy_default(tool->effect);
    if (members_at(&m, "retry").ptr) {
        tool->has_retry = true;
        reader_retry(reader, members_at(&m, "retry"), members_pointer(&m, "retry"), tool_effect_mildest(tool),
                     &tool->retry, &tool->own_retry);
        tool->retry = retry_policy_of(tool, tool->effect);
    }
    if (has_effect) {
        check_rules(reader, &m, tool);
    }
    check_tool_paths(reader, tool);
    check_tool_shows(reader, tool);
    if (is_inline && members_at(&m, "expose").ptr) {
        faults_add(reader->faults, members_pointer(&m, "expose"),
                   "a tool written in place is called by its saga only; leave `expose` out, or register the tool");
    } else {
        exposure_check(&m);
    }
    return tool;
}

struct tool *tool_compile(struct slice body, uint32_t version, struct slice pointer, struct arena *arena,
                          struct faults *faults)
{
    return tool_compile_as(READING_NEWEST, body, version, pointer, arena, faults);
}

struct tool *tool_compile_as(enum reading reading, struct slice body, uint32_t version, struct slice pointer,
                             struct arena *arena, struct faults *faults)
{
    struct reader reader = {.arena = arena, .faults = faults, .reading = reading};
    size_t before = reader_faults(&reader);
    struct tool *tool = tool_read(&reader, body, SLICE_NONE, version, pointer);

    return reader_faults(&reader) == before ? tool : NULL;
}
