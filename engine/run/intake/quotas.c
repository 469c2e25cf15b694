/* Quotas from the settings. They are read as strictly as a definition, because a misspelt member would be a limit that
 * does not hold. */
#include "run/intake/quotas.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define QUOTA_RULES_MAX 1000
#define PER_SECOND_MAX 1000000
#define BYTES_MAX INT64_C(1000000000000000)
#define COUNT_MAX 1000000
#define BUCKETS_MAX 10000       /* namespaces that have used something up of late */
#define NOTHING_AT_ALL_MS 60000 /* where nothing comes back by itself, nobody need ask often */
#define SAGAS_END_MS 1000       /* sagas in flight end at any time */
#define COUNTED_MS 200          /* so long a count of sagas holds */

struct bucket { /* the bucket of a namespace; a token bucket for each rate */
    int64_t filled_ms;
    double room[QUOTA_RATES];
    int64_t sagas, counted_ms; /* in flight, when they were counted; 0: never */
    size_t len;
    char namespace[];
};

static const struct {
    const char *member, *asked;
    int64_t max, window_ms; /* a rate: the window in which that much comes back */
} kinds[] = {[QUOTA_STARTS] = {"starts_per_second", "starts a second", PER_SECOND_MAX, 1000},
             [QUOTA_CALLS] = {"calls_per_second", "calls a second", PER_SECOND_MAX, 1000},
             [QUOTA_BYTES] = {"payload_bytes_per_day", "bytes of payload a day", BYTES_MAX, 86400000},
             [QUOTA_SAGAS] = {"sagas_in_flight", "sagas in flight", COUNT_MAX, 0},
             [QUOTA_DEFINITIONS] = {"definitions", "definitions", COUNT_MAX, 0}};

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
    struct quota_rule rule = {.most = {-1, -1, -1, -1, -1}};
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
            faults_add(
                faults, json_pointer_join(faults->arena, at, name),
                "is not known; a quota has namespace, starts_per_second, calls_per_second, payload_bytes_per_day, "
                "sagas_in_flight, definitions");
        } else if (kind < QUOTA_KIND_COUNT) {
            limits = true;
            if (!json_i64(value, &rule.most[kind]) || rule.most[kind] < 0 || rule.most[kind] > kinds[kind].max) {
                faults_add(faults, json_pointer_join(faults->arena, at, name), "must be a whole number from 0 to %lld",
                           (long long)kinds[kind].max);
            }
        }
    }
    if (!limits) {
        faults_add(faults, at, "limits nothing: give starts_per_second, or another limit");
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
    err_hint(err, "it is {\"quotas\": [{\"namespace\"?, \"starts_per_second\"?, \"calls_per_second\"?, "
                  "\"payload_bytes_per_day\"?, \"sagas_in_flight\"?, \"definitions\"?}]}");
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

static double room_now(const struct bucket *bucket, const struct quota_rule *rule, size_t kind, int64_t now_ms)
{
    double most = (double)rule->most[kind];
    double more = most * (double)(now_ms - bucket->filled_ms) / (double)kinds[kind].window_ms;

    return bucket->room[kind] + more > most ? most : bucket->room[kind] + more;
}

/* A bucket that has all its room again is the same as a new one. */
static bool is_idle(const struct quotas *quotas, const struct bucket *bucket, int64_t now_ms)
{
    const struct quota_rule *rule = rule_of(quotas, (struct slice){bucket->namespace, bucket->len});

    for (size_t i = 0; i < QUOTA_RATES; i++) {
        if (rule->most[i] >= 0 && room_now(bucket, rule, i, now_ms) < (double)rule->most[i]) {
            return false;
        }
    }
    return now_ms - bucket->counted_ms >= COUNTED_MS;
}

static void drop_idle(struct quotas *quotas, int64_t now_ms)
{
    struct bucket *bucket;

    for (size_t position = 0; map_next(&quotas->buckets, &position, (void **)&bucket);) {
        if (is_idle(quotas, bucket, now_ms)) {
            (void)map_remove(&quotas->buckets, bucket->namespace, bucket->len);
            free(bucket);
        }
    }
}

/* NULL: as many namespaces as may have used something up. */
static struct bucket *bucket_of(struct quotas *quotas, const struct quota_rule *rule, struct slice namespace,
                                int64_t now_ms)
{
    struct bucket *bucket = map_find(&quotas->buckets, namespace.ptr, namespace.len);

    if (bucket) {
        for (size_t i = 0; i < QUOTA_RATES; i++) {
            bucket->room[i] = room_now(bucket, rule, i, now_ms);
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
    for (size_t i = 0; i < QUOTA_RATES; i++) {
        bucket->room[i] = (double)rule->most[i];
    }
    map_put(&quotas->buckets, bucket->namespace, bucket->len, bucket);
    return bucket;
}

static bool refuse_asked(enum quota_kind kind, int64_t most, int64_t after_ms, struct err *err, int64_t *retry_after_ms)
{
    *retry_after_ms = after_ms;
    (void)err_set(err, ERR_QUOTA, "the quota of this namespace is used up: %lld %s", (long long)most,
                  kinds[kind].asked);
    err_hint(err, "ask again later and less often, or have --quotas give the namespace more");
    return false;
}

static int64_t most_of(const struct quotas *quotas, enum quota_kind kind, struct slice namespace)
{
    const struct quota_rule *rule = rule_of(quotas, namespace);

    return rule ? rule->most[kind] : -1;
}

bool quotas_bound(const struct quotas *quotas, enum quota_kind kind, struct slice namespace)
{
    return most_of(quotas, kind, namespace) >= 0;
}

bool quotas_admit(struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t amount, int64_t now_ms,
                  struct err *err, int64_t *retry_after_ms)
{
    int64_t most = most_of(quotas, kind, namespace);
    struct bucket *bucket = most > 0 ? bucket_of(quotas, rule_of(quotas, namespace), namespace, now_ms) : NULL;

    if (most < 0 || amount == 0) {
        return true;
    }
    if (bucket && bucket->room[kind] >= (double)amount) {
        bucket->room[kind] -= (double)amount;
        return true;
    }
    if (amount > most || !bucket) { /* it never fits, or nobody knows when */
        return refuse_asked(kind, most, amount > most ? NOTHING_AT_ALL_MS : kinds[kind].window_ms, err, retry_after_ms);
    }
    double missing = ((double)amount - bucket->room[kind]) * (double)kinds[kind].window_ms / (double)most;

    return refuse_asked(kind, most, (int64_t)missing + 1, err, retry_after_ms);
}

bool quotas_allow(const struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t count,
                  struct err *err, int64_t *retry_after_ms)
{
    int64_t most = most_of(quotas, kind, namespace);

    return most < 0 || count <= most || refuse_asked(kind, most, NOTHING_AT_ALL_MS, err, retry_after_ms);
}

bool quotas_admit_saga(struct quotas *quotas, struct slice namespace, const struct quota_sagas *sagas, int64_t now_ms,
                       struct err *err, int64_t *retry_after_ms)
{
    int64_t most = most_of(quotas, QUOTA_SAGAS, namespace);
    struct bucket *bucket = most > 0 ? bucket_of(quotas, rule_of(quotas, namespace), namespace, now_ms) : NULL;

    if (most < 0) {
        return true;
    }
    if (bucket && (bucket->counted_ms == 0 || now_ms - bucket->counted_ms >= COUNTED_MS)) {
        bucket->sagas = sagas->count(sagas->context, namespace);
        bucket->counted_ms = now_ms;
    }
    if (bucket && bucket->sagas < most) {
        bucket->sagas++;
        return true;
    }
    return refuse_asked(QUOTA_SAGAS, most, most == 0 ? NOTHING_AT_ALL_MS : SAGAS_END_MS, err, retry_after_ms);
}
