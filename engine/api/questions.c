/* What escalations and approvals share here: both are lists of questions to people, by number. */
#include <string.h>

#include "api/request.h"
#include "base/utf8.h"

#define WORDS_MAX 8         /* the most values in one parameter */
#define QUERY_TEXT_MAX 4096 /* the most bytes of one parameter */

static bool is_word(struct slice word, const char *known)
{
    while (*known) {
        size_t len = strcspn(known, " ");

        if (word.len == len && memcmp(word.ptr, known, len) == 0) {
            return true;
        }
        known += len + (known[len] == ' ');
    }
    return false;
}

bool query_words_are_known(struct slice list, const char *known)
{
    for (size_t count = 0; count < WORDS_MAX; count++) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;

        if (!is_word((struct slice){list.ptr, len}, known)) {
            return false;
        }
        if (!comma) {
            return true;
        }
        list = (struct slice){list.ptr + len + 1, list.len - len - 1};
    }
    return false;
}

bool request_read_tags(struct api_request *request, const struct engine_tag **out, size_t *out_count)
{
    const struct http_exchange *exchange = request->exchange;
    struct engine_tag *tags = arena_array(request->arena, exchange->query_count + 1, sizeof(*tags));
    size_t count = 0;

    for (size_t i = 0; i < exchange->query_count; i++) {
        struct slice name = exchange->query[i].name, value = exchange->query[i].value;

        if (!slice_starts_with(name, "tag.")) {
            continue;
        }
        if (name.len == 4 || !text_is_plain(name, QUERY_TEXT_MAX) ||
            (value.len > 0 && !text_is_plain(value, QUERY_TEXT_MAX))) {
            request_problem(request, ERR_MALFORMED, "a tag is asked for by its name and value, as in tag.customer=ada");
            return false;
        }
        tags[count++] = (struct engine_tag){{name.ptr + 4, name.len - 4}, value};
    }
    *out = tags;
    *out_count = count;
    return true;
}

bool request_read_texts(struct api_request *request, const struct query_text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *texts[i].out = request_query(request, texts[i].name);
        if (texts[i].out->len > 0 && !text_is_plain(*texts[i].out, QUERY_TEXT_MAX)) {
            request_problem(request, ERR_MALFORMED,
                            "the query parameter \"%s\" is longer than %d bytes, or holds what is no plain text",
                            texts[i].name, QUERY_TEXT_MAX);
            return false;
        }
    }
    return true;
}

static bool read_cost(struct api_request *request, struct engine_questions *in)
{
    uint64_t cost = 0;

    in->has_cost = request_query(request, "cost_above").ptr != NULL;
    if (!request_read_count(request, "cost_above", 0, &cost)) {
        return false;
    }
    in->cost_above = (int64_t)cost;
    return true;
}

void request_list_questions(struct api_request *request, struct engine_questions *in, const char *known,
                            void (*ask)(struct engine *, struct engine_request *))
{
    struct slice status = request_query(request, "status");
    bool all = status.ptr == NULL || slice_is(status, "all");
    const struct query_text texts[] = {{"tool", &in->tool},        {"saga", &in->saga},   {"step", &in->step},
                                       {"reason", &in->reason},    {"error", &in->error}, {"group_by", &in->group_by},
                                       {"assigned", &in->assigned}};

    if (!request_read_limit(request) || !request_read_texts(request, texts, COUNT_OF(texts)) ||
        !request_read_tags(request, &in->tags, &in->tag_count) || !read_cost(request, in) ||
        !request_read_bool(request, "acknowledged", &in->has_acknowledged, &in->acknowledged) ||
        !request_read_instant(request, "since", &in->since_ms) ||
        !request_read_instant(request, "until", &in->until_ms)) {
        return;
    }
    if (!all && !query_words_are_known(status, known)) {
        request_problem(
            request, ERR_MALFORMED,
            "the query parameter \"status\" is not \"all\", and not one or more of these, with commas between: %s",
            known);
        return;
    }
    in->number = 0;
    in->open_only = slice_is(status, "open");
    in->status = all ? SLICE_NONE : status;
    in->limit = request->limit;
    in->cursor = request_query(request, "cursor");
    request_ask(request, ask, request_on_items);
}

bool request_read_number(struct api_request *request, const char *what, uint64_t *out)
{
    int64_t number = 0;

    if (!slice_to_i64(request->params[0], &number) || number < 1) {
        request_problem(request, ERR_NOT_FOUND, "there is no %s \"%.*s\"", what, SLICE_ARG(request->params[0]));
        return false;
    }
    *out = (uint64_t)number;
    return true;
}
