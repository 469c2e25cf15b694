/* Reads what a tool says about the registry: duplicates, guards, prechecks and money. tool.c reads the call itself. */
#include "base/canon.h"
#include "base/instant.h"
#include "base/json.h"
#include "core/definition/parts.h"

#define POINTERS_MAX 64
#define LIMIT_MAX 1000000000
#define CONCURRENCY_MAX 1000000
#define BREAKER_FAILURES_MAX 1000000

/* --- pointers into the arguments --- */

bool pointer_is_sound(struct slice pointer)
{
    for (size_t i = 0; i < pointer.len; i++) {
        if (pointer.ptr[i] == '~' &&
            (i + 1 == pointer.len || (pointer.ptr[i + 1] != '0' && pointer.ptr[i + 1] != '1'))) {
            return false;
        }
    }
    return pointer.len > 1 && pointer.ptr[0] == '/';
}

static bool names_element(struct slice pointer) /* is the last part an index, or "*"? */
{
    size_t at = pointer.len;

    while (pointer.ptr[at - 1] != '/') {
        at--;
    }
    struct slice last = {pointer.ptr + at, pointer.len - at};

    for (size_t i = 0; i < last.len; i++) {
        if (last.ptr[i] < '0' || last.ptr[i] > '9') {
            return slice_is(last, "*");
        }
    }
    return last.len > 0;
}

static bool has_pointer(const struct slice *items, size_t count, struct slice pointer)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(items[i], pointer)) {
            return true;
        }
    }
    return false;
}

static bool pointer_is_right(struct reader *reader, struct slice item, struct slice pointer, struct slice place,
                             bool drops)
{
    if (!pointer.ptr || !pointer_is_sound(pointer)) {
        faults_add(reader->faults, place,
                   "%.*s must be a JSON Pointer to a member of the arguments, such as \"/amount\" or \"/items/*/id\"",
                   SLICE_ARG(value_excerpt(item, reader->arena)));
    } else if (pointer.len > POINTER_BYTES_MAX) {
        faults_add(reader->faults, place, "the JSON Pointer has %zu bytes; it may have %d", pointer.len,
                   POINTER_BYTES_MAX);
    } else if (drops && names_element(pointer)) {
        faults_add(reader->faults, place,
                   "%.*s names an element of an array, and none is left out, because the others would move; name a "
                   "member, such as \"%.*s/request_id\", or the whole array",
                   SLICE_ARG(value_excerpt(item, reader->arena)), SLICE_ARG(pointer));
    } else {
        return true;
    }
    return false;
}

/* Reads a list of pointers behind those in `first`. Returns false when the member is absent. */
bool reader_pointers(struct reader *reader, const struct members *m, const char *name, const struct pointers *first,
                     bool drops, struct pointers *out)
{
    struct slice value = members_at(m, name), place = members_pointer(m, name), item;

    if (!value.ptr) {
        return false;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) > POINTERS_MAX) {
        faults_add(reader->faults, place, "`%s` is %.*s; it must be an array of at most %d JSON Pointers", name,
                   SLICE_ARG(value_excerpt(value, reader->arena)), POINTERS_MAX);
        return false;
    }
    struct slice *items = arena_array(reader->arena, json_count(value) + first->count + 1, sizeof(*items));
    struct json_walk walk = json_walk(value);
    size_t count = 0;

    while (count < first->count) {
        items[count] = first->items[count];
        count++;
    }
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        struct slice where = reader_element_pointer(reader, place, i);
        struct slice pointer = json_type(item) == JSON_STRING ? json_string(item, reader->arena) : SLICE_NONE;

        if (!pointer_is_right(reader, item, pointer, where, drops)) {
            continue;
        }
        if (has_pointer(items + first->count, count - first->count, pointer)) {
            faults_add(reader->faults, where, "\"%.*s\" is named twice; once is enough", SLICE_ARG(pointer));
        } else if (!has_pointer(items, first->count, pointer)) {
            items[count++] = pointer;
        }
    }
    *out = (struct pointers){items, count};
    return true;
}

/* Refuses pointers that are both material and volatile: the engine would both compare and ignore them. */
static void check_overlap(struct reader *reader, const struct members *m, const struct tool *tool)
{
    struct json_walk walk = json_walk(members_at(m, "material"));
    struct slice item;

    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        struct slice pointer = json_type(item) == JSON_STRING ? json_string(item, reader->arena) : SLICE_NONE;

        for (size_t k = 0;
             has_pointer(tool->material.items, tool->material.count, pointer) && k < tool->volatiles.count; k++) {
            struct slice other = tool->volatiles.items[k];

            if (!canon_pointers_overlap(pointer, other)) {
                continue;
            }
            faults_add(reader->faults, reader_element_pointer(reader, members_pointer(m, "material"), i),
                       has_pointer(volatiles_always.items, volatiles_always.count, other)
                           ? "\"%.*s\" is material, but \"%.*s\" always is volatile: it never counts; leave it out"
                           : "\"%.*s\" is material and \"%.*s\" is volatile, and one lies within the other; a "
                             "duplicate must not differ in the first and may in the second: keep one of them",
                       SLICE_ARG(pointer), SLICE_ARG(other));
            break;
        }
    }
}

/* --- precheck --- */

static void read_precheck(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "precheck");
    struct precheck *precheck = &tool->precheck;
    struct members m;

    if (!value.ptr) {
        return;
    }
    tool->has_precheck = true;
    precheck->timeout_ms = TIMEOUT_DEFAULT_MS;
    if (!members_open(&m, value, members_pointer(tool_members, "precheck"), "`precheck`",
                      ADAPTERS " done blocked result timeout", "", reader->arena, reader->faults)) {
        return;
    }
    reader_adapter(reader, &m, "a precheck", KEY_PLACE_DEFAULT, &precheck->adapter, &precheck->settings);
    reader_refuse_barrier(reader, &m, "a precheck");
    if (!members_at(&m, "done").ptr) {
        faults_add(reader->faults, m.pointer,
                   "`precheck` does not say what `done` means; it needs a condition over its answer that holds where "
                   "there is nothing left to do, such as \"${ .response.status == 200 }\"");
    }
    reader_expression(reader, &m, "done", ROOTS_RESPONSE, &precheck->done);
    reader_expression(reader, &m, "blocked", ROOTS_RESPONSE, &precheck->blocked);
    reader_template(reader, &m, "result", ROOTS_RESPONSE, &precheck->result);
    (void)members_duration(&m, "timeout", 1, TIMEOUT_MAX_MS, &precheck->timeout_ms); /* the member has a default */
}

/* --- duplicates and what answers them --- */

static void read_on_duplicate(struct reader *reader, const struct members *m, struct tool *tool)
{
    static const char *const names[] = {[DUPLICATE_COALESCE] = "coalesce",
                                        [DUPLICATE_REFUSE] = "refuse",
                                        [DUPLICATE_ESCALATE] = "escalate",
                                        [DUPLICATE_ALLOW] = "allow"};
    struct slice value = members_at(m, "on_duplicate");

    for (size_t i = 0; value.ptr && i < COUNT_OF(names); i++) {
        if (json_string_is(value, names[i])) {
            tool->on_duplicate = (enum on_duplicate)i;
            return;
        }
    }
    if (value.ptr) {
        struct slice near = json_type(value) == JSON_STRING
                                ? word_near(json_string(value, reader->arena), "coalesce refuse escalate allow")
                                : SLICE_NONE;

        faults_add(reader->faults, members_pointer(m, "on_duplicate"),
                   "`on_duplicate` is %.*s; it must be coalesce, refuse, escalate or allow%.*s",
                   SLICE_ARG(value_excerpt(value, reader->arena)), SLICE_ARG(did_you_mean(near, reader->arena)));
    }
}

static void read_on_expired(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice value = members_at(m, "on_expired");

    if (!value.ptr || json_string_is(value, "refuse")) {
        return;
    }
    tool->again_on_expired = json_string_is(value, "again");
    if (!tool->again_on_expired) {
        faults_add(reader->faults, members_pointer(m, "on_expired"),
                   "`on_expired` is %.*s; it must be refuse (what is called again after `ttl` is told so) or again (it "
                   "is called once more)",
                   SLICE_ARG(value_excerpt(value, reader->arena)));
    }
}

/* --- guards --- */

static void read_rate(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "rate");
    struct members m;

    if (!value.ptr || !members_open(&m, value, members_pointer(tool_members, "rate"), "`rate`", "limit per", "",
                                    reader->arena, reader->faults)) {
        return;
    }
    if (!members_at(&m, "limit").ptr || !members_at(&m, "per").ptr) {
        faults_add(reader->faults, m.pointer,
                   "`rate` needs `limit` and `per`: how many calls in which time, such as "
                   "{\"limit\": 100, \"per\": \"1s\"}");
    }
    (void)members_count(&m, "limit", 1, LIMIT_MAX, &tool->rate.limit);
    (void)members_duration(&m, "per", 1, DURATION_MS_MAX, &tool->rate.per_ms);
}

static void read_breaker(struct reader *reader, const struct members *tool_members, struct tool *tool)
{
    struct slice value = members_at(tool_members, "breaker");
    struct members m;

    if (!value.ptr || !members_open(&m, value, members_pointer(tool_members, "breaker"), "`breaker`",
                                    "failures window cooldown", "", reader->arena, reader->faults)) {
        return;
    }
    tool->breaker = (struct breaker_policy){.failures = BREAKER_FAILURES_DEFAULT,
                                            .window_ms = BREAKER_WINDOW_DEFAULT_MS,
                                            .cooldown_ms = BREAKER_COOLDOWN_DEFAULT_MS};
    (void)members_count(&m, "failures", 1, BREAKER_FAILURES_MAX,
                        &tool->breaker.failures);                                       /* the member has a default */
    (void)members_duration(&m, "window", 1, DURATION_MS_MAX, &tool->breaker.window_ms); /* here */
    (void)members_duration(&m, "cooldown", 1, DURATION_MS_MAX, &tool->breaker.cooldown_ms); /* and here */
}

static void read_test(struct reader *reader, const struct members *m, struct tool *tool)
{
    if (members_text(m, "test", &tool->test) && tool->breaker.failures == 0) {
        faults_add(reader->faults, members_pointer(m, "test"),
                   "`test` names the tool that tries the breaker, and this tool has no `breaker`; add one, or leave "
                   "`test` out");
        tool->test = SLICE_NONE;
    }
}

static void read_cost(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice value = members_at(m, "cost"), place = members_pointer(m, "cost");

    if (!value.ptr) {
        return;
    }
    if (json_type(value) == JSON_STRING) {
        reader_expression(reader, m, "cost", ROOT_ARGS | ROOT_RESULT | ROOT_KEY, &tool->cost);
        return;
    }
    int64_t micros;

    if (json_type(value) != JSON_NUMBER || !json_i64(value, &micros) || micros < 0 || micros > COST_MICROS_MAX) {
        faults_add(reader->faults, place,
                   "`cost` is %.*s; it must be a whole number of millionths of your currency, from 0 to %lld, or an "
                   "expression over the result, such as \"${ .result.fee_micros }\"",
                   SLICE_ARG(value_excerpt(value, reader->arena)), (long long)COST_MICROS_MAX);
        return;
    }
    tool->cost_fixed_micros = micros;
    template_compile(value, place, 0, reader->arena, reader->faults, &tool->cost);
}

static void read_currency(struct reader *reader, const struct members *m, struct tool *tool)
{
    struct slice currency = SLICE_NONE;
    bool good;

    if (!members_text(m, "currency", &currency)) {
        return;
    }
    good = currency.len == 3;
    for (size_t i = 0; good && i < currency.len; i++) {
        good = currency.ptr[i] >= 'A' && currency.ptr[i] <= 'Z';
    }
    if (!good) {
        faults_add(reader->faults, members_pointer(m, "currency"),
                   "`currency` is the code of ISO 4217, three capital letters such as \"EUR\"");
    } else if (!members_at(m, "cost").ptr) {
        faults_add(reader->faults, members_pointer(m, "currency"),
                   "`currency` is that of the `cost`, and this tool has none; add one, or leave `currency` out");
    } else {
        tool->currency = currency;
    }
}

void tool_read_registry(struct reader *reader, const struct members *m, struct tool *tool)
{
    tool->ttl_ms = TTL_DEFAULT_MS;
    read_precheck(reader, m, tool);
    read_on_duplicate(reader, m, tool);
    tool->volatiles = volatiles_always;
    (void)reader_pointers(reader, m, "volatile", &volatiles_always, true,
                          &tool->volatiles); /* only `volatiles_always` by default */
    tool->has_material = reader_pointers(reader, m, "material", &(struct pointers){0}, false, &tool->material);
    if (tool->has_material) {
        check_overlap(reader, m, tool);
    }
    reader_sensitive(reader, m, tool->input, &tool->sensitive);
    (void)members_duration(m, "ttl", 1, DURATION_MS_MAX, &tool->ttl_ms); /* the member has a default */
    read_on_expired(reader, m, tool);
    read_rate(reader, m, tool);
    (void)members_count(m, "concurrency", 1, CONCURRENCY_MAX, &tool->concurrency); /* without a bound by default */
    read_breaker(reader, m, tool);
    read_test(reader, m, tool);
    read_cost(reader, m, tool);
    read_currency(reader, m, tool);
    tool->guarded = tool->rate.limit || tool->concurrency || tool->breaker.failures || tool->has_precheck;
}

/* --- budgets --- */

bool budget_read(struct slice value, struct slice pointer, struct arena *arena, struct faults *faults,
                 struct budget *out)
{
    struct budget budget = BUDGET_UNBOUNDED;
    struct members m;

    if (!members_open(&m, value, pointer, "`budget`", "calls emissions micros", "", arena, faults)) {
        return false;
    }
    bool has_calls = members_at(&m, "calls").ptr, has_emissions = members_at(&m, "emissions").ptr;
    bool has_micros = members_at(&m, "micros").ptr;

    if (!has_calls && !has_emissions && !has_micros) {
        faults_add(faults, pointer,
                   "`budget` bounds nothing; give one or more of `calls` (operations), `emissions` (calls with all "
                   "repeats) and `micros` (millionths of your currency)");
        return false;
    }
    bool is_right = !has_calls || members_integer(&m, "calls", 0, BUDGET_MAX, &budget.calls);

    is_right = (!has_emissions || members_integer(&m, "emissions", 0, BUDGET_MAX, &budget.emissions)) && is_right;
    is_right = (!has_micros || members_integer(&m, "micros", 0, BUDGET_MAX, &budget.micros)) && is_right;
    if (is_right) {
        *out = budget;
    }
    return is_right;
}
