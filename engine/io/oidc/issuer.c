/*
 * One read of the keys is two requests: the discovery document, then the keys that it names.
 *
 * Reads that tokens cause come out of a small store that fills up again slowly. A flood of unknown keys empties it and
 * is refused with 503, and the keys are still read every few seconds; so a new key of the issuer is found meanwhile.
 */
#include "io/oidc/issuer.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "base/log.h"
#include "io/http/client.h"
#include "io/oidc/keys.h"

#define WELL_KNOWN "/.well-known/openid-configuration"
#define DISCOVERY_BYTES_MAX (64 * 1024)
#define URL_BYTES_MAX 1024
#define AGAIN_MS (10 * 60 * 1000)
#define FAILED_AGAIN_MS 1000 /* doubled with each failure */
#define FAILED_AGAIN_MS_MAX 60000
#define TIMEOUT_MS 10000
#define READS_MAX 5 /* the reads that tokens may cause in a row */
#define READ_AGAIN_MS 10000
#define ASKING_MAX 256
#define VERIFIED_MAX 256 /* JWTs whose signatures are remembered */

struct issuer {
    struct loop *loop;
    const char *url, *audience;
    struct http_client *client;
    struct jwt_keys *keys; /* NULL: not read yet */
    /*
     * Digests of JWTs whose signatures these keys have verified, each at the place that the digest itself says. To
     * verify one costs as much as half a saga. All else about a JWT is looked at each time, and with other keys nothing
     * is remembered any more; only a good JWT comes in, in place of another one.
     */
    struct digest verified[VERIFIED_MAX];
    struct list asking;
    struct timer timer;
    int64_t good_ms; /* when they were last read; before that: when the issuer was opened */
    int64_t failed_again_ms;
    int reads_left; /* the reads that tokens may cause */
    int64_t reads_at_ms;

    bool reads; /* a request is under way */
    struct arena arena;
    struct http_request request;

    struct deferred over;
    void (*closed)(void *context);
    void *closed_context;
};

/* --- settings --- */

static bool is_loopback(struct slice host)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]", "localhost"};

    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        size_t len = strlen(hosts[i]);

        if (slice_starts_with(host, hosts[i]) && (host.len == len || host.ptr[len] == ':' || host.ptr[len] == '/')) {
            return true;
        }
    }
    return false;
}

/* Whoever can change the keys on their way can make tokens. */
static bool url_is_safe(struct slice url)
{
    size_t scheme = slice_starts_with(url, "http://") ? 7 : 0;

    for (size_t i = 0; i < url.len; i++) {
        if (url.ptr[i] <= 0x20 || url.ptr[i] >= 0x7f || strchr("@#\\", url.ptr[i])) {
            return false;
        }
    }
    return url.len <= URL_BYTES_MAX && http_url_is_good(url) &&
           (slice_starts_with(url, "https://") ||
            (scheme && is_loopback((struct slice){url.ptr + scheme, url.len - scheme})));
}

enum err_code issuer_check(const struct issuer_options *options, struct err *err)
{
    if (!url_is_safe(slice_of(options->url)) || strchr(options->url, '?')) {
        (void)err_set(err, ERR_CONFIG, "--oidc-issuer is not the address of an issuer");
        err_detail(err, "its keys would be read from \"%.200s\"", options->url);
        err_hint(err, "give an https URL without user, query and fragment; http is for loopback only");
        return ERR_CONFIG;
    }
    if (!options->audience || !*options->audience) {
        (void)err_set(err, ERR_CONFIG, "--oidc-issuer is given without --oidc-audience");
        err_hint(err, "name what \"aud\" of a token for this sagad says: tokens for others must not be good here");
        return ERR_CONFIG;
    }
    return ERR_OK;
}

/* --- reading the keys --- */

static void on_discovered(struct http_request *request);

static void ask(struct issuer *issuer, struct slice url, size_t bytes_max, void (*done)(struct http_request *))
{
    static const struct http_header headers[] = {{{"Accept", 6}, {"application/json", 16}}};

    issuer->request = (struct http_request){.method = SLICE("GET"),
                                            .url = url,
                                            .headers = headers,
                                            .header_count = COUNT_OF(headers),
                                            .timeout_ms = TIMEOUT_MS,
                                            .connect_timeout_ms = TIMEOUT_MS,
                                            .response_bytes_max = bytes_max,
                                            .arena = &issuer->arena,
                                            .done = done};
    http_send(issuer->client, &issuer->request);
}

static void read_begin(struct issuer *issuer)
{
    struct slice url = slice_of(issuer->url);

    if (issuer->reads || issuer->closed) {
        return;
    }
    while (url.len > 0 && url.ptr[url.len - 1] == '/') { /* the issuer itself keeps it */
        url.len--;
    }
    issuer->reads = true;
    arena_init(&issuer->arena, 4096);
    ask(issuer, arena_printf(&issuer->arena, "%.*s" WELL_KNOWN, SLICE_ARG(url)), DISCOVERY_BYTES_MAX, on_discovered);
}

static void on_timer(struct timer *timer)
{
    read_begin(container_of(timer, struct issuer, timer));
}

static void answer_all(struct issuer *issuer, bool was_read);

static void on_over(struct deferred *deferred)
{
    struct issuer *issuer = container_of(deferred, struct issuer, over);
    void (*closed)(void *) = issuer->closed;
    void *context = issuer->closed_context;

    http_client_free(issuer->client);
    jwt_keys_free(issuer->keys);
    free(issuer);
    closed(context);
}

/* `err` is NULL when the keys were read. */
static void read_end(struct issuer *issuer, const struct err *err)
{
    int64_t again_ms = err ? issuer->failed_again_ms : AGAIN_MS;

    issuer->reads = false;
    arena_fini(&issuer->arena);
    if (issuer->closed) {
        loop_defer(issuer->loop, &issuer->over, on_over);
        return;
    }
    if (err) {
        log_warn("oidc_keys_not_read", LOG_TEXT("issuer", issuer->url), LOG_MS("again_in", again_ms),
                 LOG_TEXT("then", issuer->keys ? "the keys as they were still hold" : "no JWT is accepted until then"),
                 LOG_ERR(err));
    }
    issuer->failed_again_ms = !err                                                ? FAILED_AGAIN_MS
                              : issuer->failed_again_ms * 2 < FAILED_AGAIN_MS_MAX ? issuer->failed_again_ms * 2
                                                                                  : FAILED_AGAIN_MS_MAX;
    timer_start(issuer->loop, &issuer->timer, again_ms, on_timer);
    answer_all(issuer, !err);
}

/* The answer is one JSON text with status 200? */
static enum err_code answer_of(const struct http_request *request, const char *what, struct err *err)
{
    if (!request->complete) {
        (void)err_set(err, ERR_UNREACHABLE, "%s: %s", what, request->error);
        err_detail(err, "%s", request->detail);
    } else if (request->status != 200) {
        (void)err_set(err, ERR_UNREACHABLE, "%s: the status is %d", what, request->status);
    } else {
        return ERR_OK;
    }
    return ERR_UNREACHABLE;
}

static void on_keys(struct http_request *request)
{
    struct issuer *issuer = container_of(request, struct issuer, request);
    struct jwt_keys *keys = NULL;
    struct err err = {0};

    if (answer_of(request, "reading the keys", &err) == ERR_OK) {
        keys = jwt_keys_read(request->response_body, &err);
    }
    if (keys) {
        bool was_away = issuer->failed_again_ms > FAILED_AGAIN_MS;

        if (!issuer->keys || was_away || jwt_keys_count(keys) != jwt_keys_count(issuer->keys)) {
            log_info("oidc_keys_read", LOG_TEXT("issuer", issuer->url), LOG_I64("count", jwt_keys_count(keys)));
        }
        jwt_keys_free(issuer->keys);
        issuer->keys = keys;
        memset(issuer->verified, 0, sizeof(issuer->verified));
        issuer->good_ms = loop_boot_ms(issuer->loop);
    }
    read_end(issuer, keys ? NULL : &err);
}

static enum err_code keys_url(struct issuer *issuer, struct slice text, struct slice *url, struct err *err)
{
    struct json_limits limits = json_limits_default;

    limits.bytes_max = DISCOVERY_BYTES_MAX;
    if (json_check(text, &limits, err) != ERR_OK) {
        return err_context(err, "the discovery document");
    }
    if (!json_string_is(json_member(text, "issuer"), issuer->url)) {
        return err_set(err, ERR_MALFORMED, "the discovery document is of another issuer than --oidc-issuer");
    }
    *url = json_string(json_member(text, "jwks_uri"), &issuer->arena);
    if (!url->ptr || !url_is_safe(*url) ||
        (slice_starts_with(slice_of(issuer->url), "https://") && !slice_starts_with(*url, "https://"))) {
        return err_set(err, ERR_MALFORMED, "the discovery document names no keys (jwks_uri) that are safe to read");
    }
    return ERR_OK;
}

static void on_discovered(struct http_request *request)
{
    struct issuer *issuer = container_of(request, struct issuer, request);
    struct slice url = SLICE_NONE;
    struct err err = {0};

    if (issuer->closed || answer_of(request, "reading the discovery document", &err) != ERR_OK ||
        keys_url(issuer, request->response_body, &url, &err) != ERR_OK) {
        read_end(issuer, &err);
        return;
    }
    ask(issuer, url, JWT_KEYS_BYTES_MAX, on_keys);
}

/* --- life --- */

struct issuer *issuer_open(struct loop *loop, const struct issuer_options *options)
{
    struct issuer *issuer = memory_alloc(sizeof(*issuer));

    issuer->loop = loop;
    issuer->url = options->url;
    issuer->audience = options->audience;
    issuer->good_ms = loop_boot_ms(loop);
    issuer->failed_again_ms = FAILED_AGAIN_MS;
    issuer->reads_left = READS_MAX;
    list_init(&issuer->asking);
    issuer->client = http_client_new(loop, 2, 2);
    if (options->egress) {
        http_client_set_egress(issuer->client, options->egress);
    }
    read_begin(issuer);
    return issuer;
}

void issuer_refresh(struct issuer *issuer)
{
    read_begin(issuer);
}

int64_t issuer_age_ms(const struct issuer *issuer)
{
    return loop_boot_ms(issuer->loop) - issuer->good_ms;
}

void issuer_close(struct issuer *issuer, void (*closed)(void *context), void *context)
{
    CHECK(list_empty(&issuer->asking));
    issuer->closed = closed;
    issuer->closed_context = context;
    timer_stop(issuer->loop, &issuer->timer);
    if (issuer->reads) {
        http_cancel(&issuer->request);
    } else {
        loop_defer(issuer->loop, &issuer->over, on_over);
    }
}

/* --- tokens --- */

static bool is_signed(struct issuer *issuer, const struct jwt *jwt, struct slice token)
{
    struct digest digest = digest_sha256(token);
    struct digest *place = &issuer->verified[digest.bytes[0] % VERIFIED_MAX];

    if (digest_equal(place, &digest)) {
        return true;
    }
    if (!jwt_keys_verify(issuer->keys, jwt)) {
        return false;
    }
    *place = digest;
    return true;
}

bool issuer_judge(struct issuer *issuer, struct issuer_asking *asking)
{
    struct jwt jwt;

    asking->retry_after_ms = 0;
    asking->code = jwt_read(asking->token, asking->arena, &jwt, &asking->err);
    if (asking->code == ERR_OK) {
        asking->code = jwt_check_claims(&jwt, issuer->url, issuer->audience, loop_wall_ms(issuer->loop),
                                        &asking->expires_ms, &asking->err);
    }
    if (asking->code != ERR_OK) {
        return true;
    }
    if (!issuer->keys || !jwt_keys_has(issuer->keys, &jwt)) {
        return false;
    }
    asking->claims = jwt.claims;
    if (!is_signed(issuer, &jwt, asking->token)) {
        asking->code = err_set(&asking->err, ERR_UNAUTHENTICATED,
                               "this JWT is not accepted: its signature is not that of the key that it names");
    }
    return true;
}

static void refuse(struct issuer_asking *asking, enum err_code code, int64_t retry_after_ms, const char *why)
{
    asking->code = err_set(&asking->err, code, "%s", why);
    asking->retry_after_ms = retry_after_ms;
}

static void answer_all(struct issuer *issuer, bool was_read)
{
    size_t count = issuer->asking.count;
    struct issuer_asking *asking;

    while (count-- > 0 && (asking = LIST_ITEM(list_pop(&issuer->asking), struct issuer_asking, link))) {
        bool is_judged = issuer_judge(issuer, asking);

        if (!is_judged && was_read) {
            refuse(asking, ERR_UNAUTHENTICATED, 0, "this JWT is not accepted: the issuer has no key of its name (kid)");
        } else if (!is_judged) {
            refuse(asking, ERR_UNREACHABLE, READ_AGAIN_MS,
                   "the key of this JWT is not known here, and the keys of the issuer cannot be read");
        }
        asking->done(asking);
    }
}

static bool may_read(struct issuer *issuer)
{
    int64_t now_ms = loop_boot_ms(issuer->loop), more = (now_ms - issuer->reads_at_ms) / READ_AGAIN_MS;

    if (more > 0) {
        issuer->reads_left = more < READS_MAX - issuer->reads_left ? issuer->reads_left + (int)more : READS_MAX;
        issuer->reads_at_ms = now_ms;
    }
    return issuer->reads_left > 0;
}

bool issuer_wait(struct issuer *issuer, struct issuer_asking *asking)
{
    bool waits = issuer->asking.count < ASKING_MAX && (issuer->reads || may_read(issuer));

    if (!waits) {
        refuse(asking, issuer->keys ? ERR_BUSY : ERR_UNREACHABLE, READ_AGAIN_MS,
               "the key of this JWT is not known here, and the keys of the issuer were read a moment ago");
        return false;
    }
    list_push(&issuer->asking, &asking->link);
    if (!issuer->reads) {
        issuer->reads_left--;
        timer_stop(issuer->loop, &issuer->timer);
        read_begin(issuer);
    }
    return true;
}

void issuer_forget(struct issuer *issuer, struct issuer_asking *asking)
{
    if (list_linked(&asking->link)) {
        list_remove(&issuer->asking, &asking->link);
    }
}
