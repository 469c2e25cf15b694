/* See retention_rules.h. The rules are a line of text, read anew for each saga that ends: it is short, and a saga ends
 * once. */
#include "run/saga/retention_rules.h"

#include <string.h>

#include "base/instant.h"

struct rule {
    struct slice namespace; /* SLICE_NONE: all namespaces that no other rule names */
    struct slice duration;
};

/* Takes the next rule from the text. Returns false where none is left. */
static bool next_rule(struct slice *text, struct rule *rule)
{
    const char *comma, *equals;
    struct slice part = *text;

    if (!text->ptr) {
        return false;
    }
    comma = memchr(text->ptr, ',', text->len);
    part.len = comma ? (size_t)(comma - text->ptr) : text->len;
    *text = comma ? (struct slice){comma + 1, text->len - part.len - 1} : SLICE_NONE;
    equals = memchr(part.ptr, '=', part.len);
    rule->namespace = equals ? (struct slice){part.ptr, (size_t)(equals - part.ptr)} : SLICE_NONE;
    rule->duration = equals ? (struct slice){equals + 1, part.len - rule->namespace.len - 1} : part;
    return true;
}

/* Do two rules name the same namespaces? */
static bool is_twice(struct slice text, const struct rule *rule)
{
    struct rule other;
    int found = 0;

    while (next_rule(&text, &other)) {
        found += (other.namespace.ptr == NULL) == (rule->namespace.ptr == NULL) &&
                 slice_equal(other.namespace, rule->namespace);
    }
    return found > 1;
}

static enum err_code check_rule(const struct rule *rule, struct err *err)
{
    int64_t ms = 0;

    if (rule->namespace.ptr && rule->namespace.len == 0) {
        return err_set(err, ERR_CONFIG, "--retention has a rule without the name of its namespace");
    }
    if (!duration_parse(rule->duration, &ms) || ms <= 0) {
        return err_set(err, ERR_CONFIG, "--retention cannot be read at \"%.*s\"", SLICE_ARG(rule->duration));
    }
    return ERR_OK;
}

enum err_code retention_rules_check(const char *rules, struct err *err)
{
    struct slice rest = rules ? slice_of(rules) : SLICE_NONE, all = rest;
    enum err_code code = ERR_OK;
    struct rule rule;

    while (code == ERR_OK && next_rule(&rest, &rule)) {
        code = check_rule(&rule, err);
    }
    rest = all;
    while (code == ERR_OK && next_rule(&rest, &rule)) {
        if (is_twice(all, &rule)) {
            code = err_set(err, ERR_CONFIG, "--retention has two rules for the same sagas");
        }
    }
    if (code != ERR_OK) {
        err_hint(err, "give a duration, such as 30d, or rules with commas between: 30d,NAMESPACE=60d");
    }
    return code;
}

int64_t retention_rules_ms(const char *rules, struct slice namespace)
{
    struct slice rest = rules ? slice_of(rules) : SLICE_NONE;
    int64_t ms = 0, found = 0;
    struct rule rule;

    while (next_rule(&rest, &rule)) {
        if (!duration_parse(rule.duration, &ms)) {
            continue;
        }
        if (rule.namespace.ptr && slice_equal(rule.namespace, namespace)) {
            return ms;
        }
        found = rule.namespace.ptr ? found : ms;
    }
    return found;
}
