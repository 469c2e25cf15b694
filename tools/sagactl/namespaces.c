/* Lists of several namespaces. See namespaces.h. */
#include "tools/sagactl/namespaces.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/sagactl/output.h"

struct found {
    struct slice item, namespace;
    int64_t at_ms;
};

struct merge {
    struct ctl *ctl;
    struct slice path;
    const char *time;
    struct answer *answer; /* the answer of the namespace that was asked last */
    struct found *found;   /* in the arena of ctl */
    size_t count;
    bool ends_early; /* a namespace has more than its page shows */
};

static int newest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->at_ms != y->at_ms ? (x->at_ms < y->at_ms ? 1 : -1) : slice_compare(x->item, y->item);
}

static void merge_add(struct merge *merge, struct slice namespace, struct slice answer)
{
    struct slice items = json_member(answer, "items"), item;
    size_t more = json_count(items);
    struct found *larger = arena_array(&merge->ctl->arena, merge->count + more + 1, sizeof(*larger));
    struct json_walk walk = json_walk(items);

    for (size_t i = 0; i < merge->count; i++) {
        larger[i] = merge->found[i];
    }
    merge->found = larger;
    while (json_next_element(&walk, &item)) {
        struct found *found = &merge->found[merge->count++];

        *found = (struct found){.item = item, .namespace = namespace};
        (void)member_instant(item, merge->time, &found->at_ms); /* without one it is the oldest */
    }
    merge->ends_early = merge->ends_early || json_type(json_member(answer, "next_cursor")) == JSON_STRING;
}

static void put_item(struct merge *merge, const struct found *found, struct json_writer *w)
{
    struct json_walk walk = json_walk(found->item);
    struct slice name, value;

    json_object_begin(w, NULL);
    json_write_slice(w, "namespace", found->namespace);
    while (json_next_member(&walk, &name, &value)) {
        if (!slice_is(name, "namespace")) { /* a hold names what it holds */
            json_write_raw(w, arena_text(&merge->ctl->arena, name), value);
        }
    }
    json_object_end(w);
}

static struct slice merged(struct merge *merge, size_t limit)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    if (merge->count > 0) {
        qsort(merge->found, merge->count, sizeof(*merge->found), newest_first);
    }
    merge->ends_early = merge->ends_early || merge->count > limit;
    buffer_init(&out, SIZE_MAX / 2);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < merge->count && i < limit; i++) {
        put_item(merge, &merge->found[i], &w);
    }
    json_array_end(&w);
    json_write_null(&w, "next_cursor");
    json_object_end(&w);
    text = arena_slice(&merge->ctl->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

int namespaces_each(struct ctl *ctl, int (*visit)(struct ctl *ctl, struct slice namespace, void *context),
                    void *context)
{
    struct json_walk walk;
    struct slice item;
    struct answer me;
    int code;

    if (!ctl->all_namespaces) {
        return visit(ctl, SLICE_NONE, context);
    }
    code = client_get(ctl, SLICE("/v1/me"), &ctl->arena, &me);
    if (code != EXIT_OK) {
        return code;
    }
    walk = json_walk(json_member(me.body, "namespaces"));
    while (code == EXIT_OK && json_next_element(&walk, &item)) {
        struct slice namespace = json_string(item, &ctl->arena);

        ctl->namespace = arena_text(&ctl->arena, namespace);
        code = visit(ctl, namespace, context);
    }
    ctl->namespace = NULL;
    return code;
}

static int get_one(struct ctl *ctl, struct slice namespace, void *context)
{
    struct merge *merge = context;
    int code = client_get(ctl, merge->path, &ctl->arena, merge->answer);

    if (code == EXIT_OK && namespace.ptr) {
        merge_add(merge, namespace, merge->answer->body);
    }
    return code;
}

int namespaces_get(struct ctl *ctl, struct slice path, const char *time, const char *limit, struct answer *out)
{
    struct merge merge = {.ctl = ctl, .path = path, .time = time, .answer = out};
    int64_t most = 0;
    int code = namespaces_each(ctl, get_one, &merge);

    if (code != EXIT_OK || !ctl->all_namespaces) {
        return code;
    }
    *out = (struct answer){.status = 200};
    out->body = merged(&merge, slice_to_i64(slice_of(limit), &most) && most > 0 ? (size_t)most : 0);
    if (merge.ends_early) {
        (void)fprintf(stderr, "There are more: ask in one namespace with -n, or for more with --limit.\n");
    }
    return EXIT_OK;
}
