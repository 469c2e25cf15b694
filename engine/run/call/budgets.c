/* Budgets from the settings. They are read as strictly as a definition, because a misspelt member would be a limit that
 * does not hold. */
#include "run/call/budgets.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/instant.h"
#include "base/json.h"

#define BUDGET_RULES_MAX 1000
#define MS_DAY (INT64_C(24) * 3600 * 1000)

static const char *const period_names[] = {[BUDGET_DAY] = "day", [BUDGET_MONTH] = "month", [BUDGET_EVER] = "ever"};

int64_t budget_period_start(enum budget_period per, int64_t now_ms)
{
    char text[INSTANT_TEXT_BYTES];
    int64_t start = 0;

    switch (per) {
    case BUDGET_DAY:
        return now_ms - now_ms % MS_DAY;
    case BUDGET_MONTH:
        instant_text(now_ms, text); /* cut after the date: 2026-01-31T... */
        text[8] = '0';
        text[9] = '1';
        memcpy(text + 11, "00:00:00.000", 12);
        CHECK(instant_parse(slice_of(text), &start));
        return start;
    case BUDGET_EVER:
        return 0;
    }
    UNREACHABLE();
}

static void read_limit(struct slice value, const char *name, struct slice at, int64_t *out, struct faults *faults)
{
    if (value.ptr && (!json_i64(value, out) || *out < 0)) {
        faults_add(faults, json_pointer_join(faults->arena, at, slice_of(name)), "must be a whole number, 0 or more");
    }
}

static struct slice read_name(struct slice row, const char *name, struct slice at, struct faults *faults)
{
    struct slice value = json_member(row, name), text = json_string(value, faults->arena);

    if (value.ptr && (!text.ptr || text.len == 0 || text.len > 128 || memchr(text.ptr, '/', text.len) ||
                      memchr(text.ptr, '*', text.len))) {
        faults_add(faults, json_pointer_join(faults->arena, at, slice_of(name)),
                   "must be the name of a %s; leave it out for all", name);
        return SLICE_NONE;
    }
    return text;
}

static void read_rule(struct slice row, struct slice at, struct budgets *budgets, struct faults *faults)
{
    struct budget_rule rule = {.calls = -1, .emissions = -1, .micros = -1};
    static const char *const known[] = {"namespace", "tool", "per", "calls", "emissions", "micros"};
    struct json_walk walk = json_walk(row);
    struct slice name, value;
    bool has_period = false;

    if (json_type(row) != JSON_OBJECT) {
        faults_add(faults, at, "must be an object");
        return;
    }
    while (json_next_member(&walk, &name, &value)) {
        bool found = false;

        for (size_t i = 0; i < COUNT_OF(known); i++) {
            found = found || slice_is(name, known[i]);
        }
        if (!found) {
            faults_add(faults, json_pointer_join(faults->arena, at, name),
                       "is not known; a budget has namespace, tool, per, calls, emissions, micros");
        }
    }
    rule.namespace = arena_slice(&budgets->arena, read_name(row, "namespace", at, faults));
    rule.tool = arena_slice(&budgets->arena, read_name(row, "tool", at, faults));
    for (size_t i = 0; i < COUNT_OF(period_names); i++) {
        if (json_string_is(json_member(row, "per"), period_names[i])) {
            rule.per = (enum budget_period)i;
            has_period = true;
        }
    }
    if (!has_period) {
        faults_add(faults, json_pointer_join(faults->arena, at, SLICE("per")),
                   "must be \"day\", \"month\" or \"ever\"");
    }
    read_limit(json_member(row, "calls"), "calls", at, &rule.calls, faults);
    read_limit(json_member(row, "emissions"), "emissions", at, &rule.emissions, faults);
    read_limit(json_member(row, "micros"), "micros", at, &rule.micros, faults);
    if (rule.calls < 0 && rule.emissions < 0 && rule.micros < 0) {
        faults_add(faults, at, "limits nothing: give calls, emissions or micros");
    }
    rule.name =
        arena_printf(&budgets->arena, "%.*s/%.*s/%s", SLICE_ARG(rule.namespace.ptr ? rule.namespace : SLICE("*")),
                     SLICE_ARG(rule.tool.ptr ? rule.tool : SLICE("*")), period_names[rule.per]);
    for (size_t i = 0; i < budgets->count; i++) {
        if (slice_equal(budgets->rules[i].name, rule.name)) {
            faults_add(faults, at, "there is a budget of the same namespace, tool and period already");
        }
    }
    budgets->rules[budgets->count++] = rule;
}

static int compare_rules(const void *a, const void *b)
{
    const struct budget_rule *x = a, *y = b;

    return slice_compare(x->name, y->name);
}

static enum err_code refuse(struct budgets *budgets, const struct faults *faults, struct err *err)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the budgets file is wrong");

    err_detail(err, "%.*s: %.*s", SLICE_ARG(faults->items[0].pointer), SLICE_ARG(faults->items[0].detail));
    err_hint(err, "it is {\"budgets\": [{\"namespace\"?, \"tool\"?, \"per\": \"day\"|\"month\"|\"ever\", \"calls\"?, "
                  "\"emissions\"?, \"micros\"?}]}");
    budgets_fini(budgets);
    return code;
}

enum err_code budgets_parse(struct budgets *budgets, struct slice text, struct err *err)
{
    struct faults faults;
    struct slice row;
    size_t i = 0;

    *budgets = (struct budgets){0};
    arena_init(&budgets->arena, 4096);
    faults_init(&faults, &budgets->arena);
    if (json_check(text, &json_limits_default, err) != ERR_OK) {
        err->code = ERR_CONFIG;
        budgets_fini(budgets);
        return err_context(err, "the budgets file");
    }
    text = arena_slice(&budgets->arena, text);
    struct slice rows = json_member(text, "budgets");

    if (json_type(text) != JSON_OBJECT || json_type(rows) != JSON_ARRAY || json_count(text) != 1) {
        faults_add(&faults, SLICE(""), "must be an object with the one member \"budgets\", an array");
    } else if (json_count(rows) > BUDGET_RULES_MAX) {
        faults_add(&faults, SLICE("/budgets"), "more than %d budgets", BUDGET_RULES_MAX);
    } else {
        struct json_walk walk = json_walk(rows);

        budgets->rules = arena_array(&budgets->arena, json_count(rows) + 1, sizeof(*budgets->rules));
        while (json_next_element(&walk, &row)) {
            read_rule(row, arena_printf(&budgets->arena, "/budgets/%zu", i), budgets, &faults);
            i++;
        }
    }
    if (faults.count > 0) {
        return refuse(budgets, &faults, err);
    }
    if (budgets->count > 1) {
        qsort(budgets->rules, budgets->count, sizeof(*budgets->rules), compare_rules);
    }
    return ERR_OK;
}

enum err_code budgets_load(struct budgets *budgets, const char *path, struct err *err)
{
    *budgets = (struct budgets){0};
    if (!path || !*path) {
        return ERR_OK;
    }
    struct arena scratch;
    struct slice text;

    arena_init(&scratch, 4096);
    enum err_code code = file_read(path, "budgets", 1024, FILE_OF_ANYBODY, &scratch, &text, err);

    if (code == ERR_OK) {
        code = budgets_parse(budgets, text, err);
    }
    arena_fini(&scratch);
    return code;
}

void budgets_fini(struct budgets *budgets)
{
    arena_fini(&budgets->arena);
    *budgets = (struct budgets){0};
}

static bool rule_matches(const struct budget_rule *rule, struct slice namespace, struct slice tool)
{
    return (!rule->namespace.ptr || slice_equal(rule->namespace, namespace)) &&
           (!rule->tool.ptr || slice_equal(rule->tool, tool));
}

bool budgets_apply(const struct budgets *budgets, struct slice namespace, struct slice tool)
{
    for (size_t i = 0; i < budgets->count; i++) {
        if (rule_matches(&budgets->rules[i], namespace, tool)) {
            return true;
        }
    }
    return false;
}

size_t budgets_match(const struct budgets *budgets, struct slice namespace, struct slice tool, int64_t now_ms,
                     struct guard_budget out[GUARD_BUDGETS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < budgets->count; i++) {
        const struct budget_rule *rule = &budgets->rules[i];

        if (rule_matches(rule, namespace, tool)) {
            CHECK(count < GUARD_BUDGETS_MAX); /* read_rule() allows one of each kind */
            out[count++] = (struct guard_budget){.name = rule->name,
                                                 .period_start_ms = budget_period_start(rule->per, now_ms),
                                                 .calls_max = rule->calls,
                                                 .emissions_max = rule->emissions,
                                                 .micros_max = rule->micros};
        }
    }
    return count;
}
