/* Quotas from the settings. They are read as strictly as a definition, because a misspelt member would be a limit that
 * does not hold. */
#include "run/intake/quotas.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define QUOTA_RULES_MAX 1000
#define PER_SECOND_MAX 1000000
#define BUCKETS_MAX 10000       /* namespaces that asked within a second */
#define NOTHING_AT_ALL_MS 60000 /* a namespace without any room need not ask often */

struct bucket { /* of a namespace; a token bucket for each kind */
    int64_t filled_ms;
    double room[QUOTA_KIND_COUNT];
    size_t len;
    char namespace[];
};

static const struct {
    const char *member, *asked;
} kinds[] = {[QUOTA_STARTS] = {"starts_per_second", "starts"}, [QUOTA_CALLS] = {"calls_per_second", "calls"}};

/* --- the file --- */

static struct slice read_namespace(struct slice row, struct slice at, struct faults *faults)
{
    struct slice value = json_member(row, "namespace"), text = json_string(value, faults->arena);

    if (value.ptr && (!text.ptr || text.len == 0 || text.len > 128 || memchr(text.ptr, '*', text.len))) {
        faults_add(faults, json_pointer_join(faults->arena, at, SLICE("namespace")),
                   "must be the name of a namespace; leave it out for each that has no line of its own");
        return SLICE_NONE;
    }
    return text;
}

static void read_rule(struct slice row, struct slice at, struct quotas *quotas, struct faults *faults)
{
    struct quota_rule rule = {.per_second = {-1, -1}};
    struct json_walk walk = json_walk(row);
    struct slice name, value;
    bool limits = false;

    if (json_type(row) != JSON_OBJECT) {
        faults_add(faults, at, "must be an object");
        return;
    }
    while (json_next_member(&walk, &name, &value)) {
        size_t kind = 0;

        while (kind < QUOTA_KIND_COUNT && !slice_is(name, kinds[kind].member)) {
            kind++;
        }
        if (kind == QUOTA_KIND_COUNT && !slice_is(name, "namespace")) {
            faults_add(faults, json_pointer_join(faults->arena, at, name),
                       "is not known; a quota has namespace, starts_per_second, calls_per_second");
        } else if (kind < QUOTA_KIND_COUNT) {
            limits = true;
            if (!json_i64(value, &rule.per_second[kind]) || rule.per_second[kind] < 0 ||
                rule.per_second[kind] > PER_SECOND_MAX) {
                faults_add(faults, json_pointer_join(faults->arena, at, name), "must be a whole number from 0 to %d",
                           PER_SECOND_MAX);
            }
        }
    }
    if (!limits) {
        faults_add(faults, at, "limits nothing: give starts_per_second or calls_per_second");
    }
    rule.namespace = arena_slice(&quotas->arena, read_namespace(row, at, faults));
    for (size_t i = 0; i < quotas->count; i++) {
        if (slice_equal(quotas->rules[i].namespace, rule.namespace)) {
            faults_add(faults, at, "there is a quota of the same namespace already");
        }
    }
    quotas->rules[quotas->count++] = rule;
}

static enum err_code refuse(struct quotas *quotas, const struct faults *faults, struct err *err)
{
    enum err_code code = err_set(err, ERR_CONFIG, "the quotas file is wrong");

    err_detail(err, "%.*s: %.*s", SLICE_ARG(faults->items[0].pointer), SLICE_ARG(faults->items[0].detail));
    err_hint(err, "it is {\"quotas\": [{\"namespace\"?, \"starts_per_second\"?, \"calls_per_second\"?}]}");
    quotas_fini(quotas);
    return code;
}

enum err_code quotas_parse(struct quotas *quotas, struct slice text, struct err *err)
{
    struct faults faults;

    *quotas = (struct quotas){0};
    arena_init(&quotas->arena, 4096);
    map_init(&quotas->buckets);
    faults_init(&faults, &quotas->arena);
    if (json_check(text, &json_limits_default, err) != ERR_OK) {
        err->code = ERR_CONFIG;
        quotas_fini(quotas);
        return err_context(err, "the quotas file");
    }
    text = arena_slice(&quotas->arena, text);
    struct slice rows = json_member(text, "quotas"), row;

    if (json_type(text) != JSON_OBJECT || json_type(rows) != JSON_ARRAY || json_count(text) != 1) {
        faults_add(&faults, SLICE(""), "must be an object with the one member \"quotas\", an array");
    } else if (json_count(rows) > QUOTA_RULES_MAX) {
        faults_add(&faults, SLICE("/quotas"), "more than %d quotas", QUOTA_RULES_MAX);
    } else {
        struct json_walk walk = json_walk(rows);

        quotas->rules = arena_array(&quotas->arena, json_count(rows) + 1, sizeof(*quotas->rules));
        for (size_t i = 0; json_next_element(&walk, &row); i++) {
            read_rule(row, arena_printf(&quotas->arena, "/quotas/%zu", i), quotas, &faults);
        }
    }
    return faults.count > 0 ? refuse(quotas, &faults, err) : ERR_OK;
}

enum err_code quotas_load(struct quotas *quotas, const char *path, struct err *err)
{
    struct arena scratch;
    struct slice text;

    *quotas = (struct quotas){0};
    if (!path || !*path) {
        return ERR_OK;
    }
    arena_init(&scratch, 4096);
    enum err_code code = file_read(path, "quotas", 1024, FILE_OF_ITS_OWNER, &scratch, &text, err);

    if (code == ERR_OK) {
        code = quotas_parse(quotas, text, err);
        if (code != ERR_OK) {
            code = err_context(err, "%s", path);
        }
    }
    arena_fini(&scratch);
    return code;
}

void quotas_fini(struct quotas *quotas)
{
    struct bucket *bucket;

    for (size_t position = 0; map_next(&quotas->buckets, &position, (void **)&bucket);) {
        free(bucket);
    }
    map_fini(&quotas->buckets);
    arena_fini(&quotas->arena);
    *quotas = (struct quotas){0};
}

/* --- a request --- */

static const struct quota_rule *rule_of(const struct quotas *quotas, struct slice namespace)
{
    const struct quota_rule *each = NULL;

    for (size_t i = 0; i < quotas->count; i++) {
        if (slice_equal(quotas->rules[i].namespace, namespace)) {
            return &quotas->rules[i];
        }
        each = quotas->rules[i].namespace.ptr ? each : &quotas->rules[i];
    }
    return each;
}

/* Those that have not asked for a second have all their room again: a new bucket is the same. */
static void drop_idle(struct quotas *quotas, int64_t now_ms)
{
    struct bucket *bucket;

    for (size_t position = 0; map_next(&quotas->buckets, &position, (void **)&bucket);) {
        if (now_ms - bucket->filled_ms >= 1000) {
            (void)map_remove(&quotas->buckets, bucket->namespace, bucket->len);
            free(bucket);
        }
    }
}

/* NULL: as many namespaces as may have asked within a second. */
static struct bucket *bucket_of(struct quotas *quotas, const struct quota_rule *rule, struct slice namespace,
                                int64_t now_ms)
{
    struct bucket *bucket = map_find(&quotas->buckets, namespace.ptr, namespace.len);

    if (bucket) {
        for (size_t i = 0; i < QUOTA_KIND_COUNT; i++) {
            double most = (double)rule->per_second[i], more = most * (double)(now_ms - bucket->filled_ms) / 1000;

            bucket->room[i] = bucket->room[i] + more > most ? most : bucket->room[i] + more;
        }
        bucket->filled_ms = now_ms;
        return bucket;
    }
    if (quotas->buckets.count >= BUCKETS_MAX) {
        drop_idle(quotas, now_ms);
    }
    if (quotas->buckets.count >= BUCKETS_MAX) {
        return NULL;
    }
    bucket = memory_alloc(sizeof(*bucket) + namespace.len);
    bucket->filled_ms = now_ms;
    bucket->len = namespace.len;
    memcpy(bucket->namespace, namespace.ptr, namespace.len);
    for (size_t i = 0; i < QUOTA_KIND_COUNT; i++) {
        bucket->room[i] = (double)rule->per_second[i];
    }
    map_put(&quotas->buckets, bucket->namespace, bucket->len, bucket);
    return bucket;
}

bool quotas_admit(struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t now_ms, struct err *err,
                  int64_t *retry_after_ms)
{
    const struct quota_rule *rule = rule_of(quotas, namespace);
    int64_t per_second = rule ? rule->per_second[kind] : -1;
    struct bucket *bucket = per_second > 0 ? bucket_of(quotas, rule, namespace, now_ms) : NULL;

    if (per_second < 0) {
        return true;
    }
    if (bucket && bucket->room[kind] >= 1) {
        bucket->room[kind] -= 1;
        return true;
    }
    *retry_after_ms = per_second == 0 ? NOTHING_AT_ALL_MS : 1000;
    (void)err_set(err, ERR_QUOTA, "the quota of this namespace is used up: %lld %s a second", (long long)per_second,
                  kinds[kind].asked);
    err_hint(err, "ask again later and less often, or have --quotas give the namespace more");
    return false;
}
