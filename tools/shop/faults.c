/* See faults.h. */
#include "faults.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/json.h"

static const struct {
    const char *name;
    bool effect;
} fault_modes[FAULT_MODE_COUNT] = {
#define X(id, name, effect) [id] = {name, effect},
    FAULT_MAP(X)
#undef X
};

/* The default faults of chaos and their weights. None of them holds a caller for long. */
static const unsigned chaos_weights[FAULT_MODE_COUNT] = {
    [FAULT_RESET_AFTER] = 2, [FAULT_RESET_BEFORE] = 1, [FAULT_500_BEFORE] = 1, [FAULT_500_AFTER] = 1, [FAULT_503] = 1,
    [FAULT_429] = 1,         [FAULT_GARBAGE] = 1,      [FAULT_TRUNCATED] = 1,  [FAULT_SLOW] = 2,
};

#define CHAOS_MS_MIN 50
#define CHAOS_MS_MAX 305

struct key_seen {
    struct slice key;
    uint32_t times;
};

const char *fault_mode_name(enum fault_mode mode)
{
    CHECK(mode < FAULT_MODE_COUNT);
    return fault_modes[mode].name;
}

bool fault_mode_has_effect(enum fault_mode mode)
{
    CHECK(mode < FAULT_MODE_COUNT);
    return fault_modes[mode].effect;
}

void fault_plan_init(struct fault_plan *plan, unsigned chaos_percent, uint64_t seed)
{
    *plan = (struct fault_plan){.chaos_percent = chaos_percent, .seed = seed, .ms_max = CHAOS_MS_MAX};
    memcpy(plan->weights, chaos_weights, sizeof(plan->weights));
    map_init(&plan->seen);
    arena_init(&plan->arena, 16 * 1024);
}

void fault_plan_fini(struct fault_plan *plan)
{
    map_fini(&plan->seen);
    arena_fini(&plan->arena);
}

void fault_plan_clear(struct fault_plan *plan)
{
    plan->rule_count = 0;
}

static bool mode_find(struct slice name, enum fault_mode *out)
{
    for (int i = 0; i < FAULT_MODE_COUNT; i++) {
        if (slice_is(name, fault_modes[i].name)) {
            *out = (enum fault_mode)i;
            return true;
        }
    }
    return false;
}

static bool mode_parse(struct slice name, struct fault_rule *rule)
{
    struct slice ms = {NULL, 0};

    if (slice_is(name, "slow-ms")) { /* with `ms` beside it, the name of the mode */
        name = SLICE("slow");
    } else if (slice_starts_with(name, "slow-")) {
        ms = (struct slice){name.ptr + 5, name.len - 5};
        name = SLICE("slow");
        if (!slice_to_i64(ms, &rule->ms) || rule->ms < 0) {
            return false;
        }
    }
    return mode_find(name, &rule->mode);
}

static bool route_parse(struct slice name, struct fault_rule *rule)
{
    rule->any_route = slice_is(name, "*");
    for (int i = 0; i < ROUTE_COUNT; i++) {
        if (slice_is(name, route_name((enum route)i))) {
            rule->route = (enum route)i;
            return true;
        }
    }
    return rule->any_route;
}

static void rules_drop_spent(struct fault_plan *plan)
{
    size_t kept = 0;

    for (size_t i = 0; i < plan->rule_count; i++) {
        if (plan->rules[i].times != 0) {
            plan->rules[kept++] = plan->rules[i];
        }
    }
    plan->rule_count = kept;
}

enum err_code fault_plan_add(struct fault_plan *plan, struct slice rule_json, struct err *err)
{
    struct fault_rule rule = {.times = 1, .ms = 1000};
    struct slice times = json_member(rule_json, "times"), match = json_member(rule_json, "match");
    struct slice ms = json_member(rule_json, "ms");
    struct arena arena;
    enum err_code code = ERR_OK;

    arena_init(&arena, 1024);
    if (!route_parse(json_string(json_member(rule_json, "route"), &arena), &rule)) {
        code =
            err_set(err, ERR_INVALID,
                    "route must be * or one of reservations, releases, charges, refunds, mails, tags, untags, probes, "
                    "shipments, prices, requests");
    } else if (ms.ptr && (!json_i64(ms, &rule.ms) || rule.ms < 0)) {
        code = err_set(err, ERR_INVALID, "ms must be a whole number of milliseconds");
    } else if (!mode_parse(json_string(json_member(rule_json, "mode"), &arena), &rule)) {
        code = err_set(err, ERR_INVALID, "mode is not known; GET /faults lists them");
    } else if (times.ptr && json_type(times) != JSON_NULL && !json_i64(times, &rule.times)) {
        code = err_set(err, ERR_INVALID, "times must be a whole number; -1 is for ever");
    } else if (match.ptr && json_type(match) != JSON_NULL) {
        struct slice text = json_string(match, &arena);

        if (!text.ptr || text.len >= sizeof(rule.match)) {
            code = err_set(err, ERR_INVALID, "match must be a text of at most %zu bytes", sizeof(rule.match) - 1);
        } else {
            memcpy(rule.match, text.ptr, text.len);
        }
    }
    arena_fini(&arena);
    if (code == ERR_OK && plan->rule_count == FAULT_RULES_MAX) {
        rules_drop_spent(plan);
    }
    if (code == ERR_OK && plan->rule_count == FAULT_RULES_MAX) {
        code = err_set(err, ERR_INVALID, "there are %d rules already; DELETE /faults drops them", FAULT_RULES_MAX);
    }
    if (code == ERR_OK) {
        plan->rules[plan->rule_count++] = rule;
    }
    return code;
}

static bool rule_matches(const struct fault_rule *rule, enum route route, struct slice body)
{
    if (rule->times == 0 || (!rule->any_route && rule->route != route)) {
        return false;
    }
    return !rule->match[0] || (body.len > 0 && memmem(body.ptr, body.len, rule->match, strlen(rule->match)));
}

static uint32_t times_seen(struct fault_plan *plan, struct slice key)
{
    struct key_seen *seen = map_find(&plan->seen, key.ptr, key.len);

    if (!seen) {
        seen = arena_alloc(&plan->arena, sizeof(*seen));
        seen->key = arena_slice(&plan->arena, key);
        map_put(&plan->seen, seen->key.ptr, seen->key.len, seen);
    }
    return seen->times++;
}

static struct fault_decision chaos_take(struct fault_plan *plan, enum route route, struct slice key, struct slice body)
{
    struct slice name = key.len > 0 ? key : body.len > 0 ? body : SLICE("-");
    char text[96];
    uint8_t luck[4];
    unsigned total = 0, pick;
    enum fault_mode mode = FAULT_NONE;
    struct digest digest;
    int len = snprintf(text, sizeof(text), "%llu %s %u ", (unsigned long long)plan->seed, route_name(route),
                       times_seen(plan, name));
    struct slice fields[] = {{text, (size_t)len}, name};

    digest = digest_fields("chaos", fields, COUNT_OF(fields));
    memcpy(luck, digest.bytes, sizeof(luck));
    if ((unsigned)luck[0] * 100 / 256 >= plan->chaos_percent) {
        return (struct fault_decision){.mode = FAULT_NONE};
    }
    for (int i = 0; i < FAULT_MODE_COUNT; i++) {
        total += plan->weights[i];
    }
    pick = total > 0 ? (luck[1] + 256u * luck[2]) % total : 0;
    for (int i = 0; i < FAULT_MODE_COUNT && mode == FAULT_NONE && total > 0; i++) {
        if (pick < plan->weights[i]) {
            mode = (enum fault_mode)i;
        } else {
            pick -= plan->weights[i];
        }
    }
    /* No caller without keys can prevent a tag that is set late, after it was removed again. */
    if (mode == FAULT_LATE && (route == ROUTE_TAGS || route == ROUTE_UNTAGS)) {
        mode = FAULT_SLOW;
    }
    return (struct fault_decision){.mode = mode, .ms = CHAOS_MS_MIN + luck[3] * (plan->ms_max - CHAOS_MS_MIN) / 255};
}

static bool weights_parse(struct slice modes, unsigned weights[FAULT_MODE_COUNT], struct err *err)
{
    struct json_walk walk = json_walk(modes);
    struct slice name, value;

    memset(weights, 0, FAULT_MODE_COUNT * sizeof(weights[0]));
    while (json_next_member(&walk, &name, &value)) {
        enum fault_mode mode;
        int64_t weight;

        if (!mode_find(name, &mode) || mode == FAULT_NONE || !json_i64(value, &weight) || weight < 0 || weight > 1000) {
            (void)err_set(err, ERR_INVALID, "modes: %.*s is no fault with a weight from 0 to 1000", SLICE_ARG(name));
            return false;
        }
        weights[mode] = (unsigned)weight;
    }
    return true;
}

enum err_code fault_plan_set_chaos(struct fault_plan *plan, struct slice chaos, struct err *err)
{
    struct slice modes = json_member(chaos, "modes");
    unsigned weights[FAULT_MODE_COUNT];
    int64_t percent = plan->chaos_percent, seed = (int64_t)plan->seed, ms = plan->ms_max;

    memcpy(weights, plan->weights, sizeof(weights));
    if (json_type(chaos) != JSON_OBJECT) {
        return err_set(err, ERR_INVALID, "chaos must be an object");
    }
    if (json_member(chaos, "percent").ptr &&
        (!json_i64(json_member(chaos, "percent"), &percent) || percent < 0 || percent > 100)) {
        return err_set(err, ERR_INVALID, "percent must be a whole number from 0 to 100");
    }
    if (json_member(chaos, "seed").ptr && (!json_i64(json_member(chaos, "seed"), &seed) || seed < 0)) {
        return err_set(err, ERR_INVALID, "seed must be a whole number");
    }
    if (json_member(chaos, "ms").ptr && (!json_i64(json_member(chaos, "ms"), &ms) || ms < CHAOS_MS_MIN || ms > 60000)) {
        return err_set(err, ERR_INVALID, "ms must be a whole number from %d to 60000", CHAOS_MS_MIN);
    }
    if (modes.ptr && json_type(modes) != JSON_OBJECT) {
        return err_set(err, ERR_INVALID, "modes must be an object: the weight of each");
    }
    if (modes.ptr && !weights_parse(modes, weights, err)) {
        return ERR_INVALID;
    }
    plan->chaos_percent = (unsigned)percent;
    plan->seed = (uint64_t)seed;
    plan->ms_max = (unsigned)ms;
    memcpy(plan->weights, weights, sizeof(weights));
    return ERR_OK;
}

struct fault_decision fault_plan_take(struct fault_plan *plan, enum route route, struct slice key, struct slice body)
{
    for (size_t i = 0; i < plan->rule_count; i++) {
        struct fault_rule *rule = &plan->rules[i];

        if (rule_matches(rule, route, body)) {
            rule->times -= rule->times > 0;
            rule->fired++;
            plan->fired++;
            return (struct fault_decision){.mode = rule->mode, .ms = rule->ms};
        }
    }
    if (plan->chaos_percent > 0) {
        struct fault_decision decision = chaos_take(plan, route, key, body);

        plan->fired += decision.mode != FAULT_NONE;
        return decision;
    }
    return (struct fault_decision){.mode = FAULT_NONE};
}

void fault_plan_write(const struct fault_plan *plan, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "rules");
    for (size_t i = 0; i < plan->rule_count; i++) {
        const struct fault_rule *rule = &plan->rules[i];

        json_object_begin(&w, NULL);
        json_write_text(&w, "route", rule->any_route ? "*" : route_name(rule->route));
        json_write_text(&w, "mode", fault_mode_name(rule->mode));
        json_write_i64(&w, "times", rule->times);
        json_write_i64(&w, "ms", rule->ms);
        if (rule->match[0]) {
            json_write_text(&w, "match", rule->match);
        } else {
            json_write_null(&w, "match");
        }
        json_write_i64(&w, "fired", (int64_t)rule->fired);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_array_begin(&w, "modes");
    for (int i = 0; i < FAULT_MODE_COUNT; i++) {
        json_write_text(&w, NULL, fault_modes[i].name);
    }
    json_array_end(&w);
    json_write_i64(&w, "chaos_percent", plan->chaos_percent);
    json_write_i64(&w, "seed", (int64_t)plan->seed);
    json_write_i64(&w, "fired", (int64_t)plan->fired);
    json_object_end(&w);
}
