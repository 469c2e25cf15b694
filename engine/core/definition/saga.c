/* Reads the parts of a saga besides its steps: tags, how it is undone, locks on business keys, and sagas that follow
 * it. */
#include <string.h>

#include "base/json.h"
#include "core/definition/parts.h"

#define TAGS_MAX 32

/* Reads tags that have expressions. Programs are refused: they need a process, and a start waits only for its
 * commit. */
static void read_tag_values(struct reader *reader, struct slice value, struct slice place,
                            struct definition *definition)
{
    struct template *values = &definition->tag_values;

    reader_template_at(reader, value, place, ROOT_INPUT, values);
    for (size_t i = 0; i < values->count && values->program_count > 0; i++) {
        if (values->expressions[i].kind == EXPRESSION_PROGRAM) {
            faults_add(
                reader->faults, values->expressions[i].pointer,
                "a tag takes plain paths, such as \"${ .input.customer }\"; give what has to be computed with the "
                "start");
        }
    }
    if (values->count == 0) {
        *values = (struct template){0};
    }
}

void saga_read_tags(struct reader *reader, const struct members *m, struct definition *definition)
{
    struct slice value = members_at(m, "tags"), place = members_pointer(m, "tags"), name_raw, item;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_OBJECT || json_count(value) > TAGS_MAX) {
        faults_add(reader->faults, place, "`tags` is %.*s; it must be an object of %d texts at most",
                   SLICE_ARG(value_excerpt(value, reader->arena)), TAGS_MAX);
        return;
    }
    struct json_walk walk = json_walk(value);

    while (json_next_member(&walk, &name_raw, &item)) {
        if (json_type(item) != JSON_STRING) {
            struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, reader->arena);

            faults_add(reader->faults, place_join(reader->arena, place, name), "a tag is a text, not %.*s",
                       SLICE_ARG(value_excerpt(item, reader->arena)));
        }
    }
    if (reader->reading >= READING_SECOND) { /* the first reading takes `${ }` in tags as plain text */
        read_tag_values(reader, value, place, definition);
    }
    definition->tags = json_trim(value);
}

void saga_read_compensation(struct reader *reader, const struct members *m, struct definition *definition)
{
    struct slice value = members_at(m, "compensation");
    struct members inner;

    definition->undo_concurrency = 1;
    if (!value.ptr || !members_open(&inner, value, members_pointer(m, "compensation"), "`compensation`", "concurrency",
                                    "", reader->arena, reader->faults)) {
        return;
    }
    if (json_count(value) == 0) {
        faults_add(reader->faults, inner.pointer,
                   "`compensation` says nothing; give `concurrency`: how many steps may be undone at once");
        return;
    }
    (void)members_count(&inner, "concurrency", 1, DEFINITION_STEPS_MAX, &definition->undo_concurrency);
}

/* Returns an array of at most `max` elements; SLICE_NONE when it is absent or wrong. */
static struct slice array_of(struct reader *reader, const struct members *m, const char *name, size_t max,
                             const char *what)
{
    struct slice value = members_at(m, name);

    if (!value.ptr || (json_type(value) == JSON_ARRAY && json_count(value) <= max)) {
        return value;
    }
    faults_add(reader->faults, members_pointer(m, name), "`%s` is %.*s; it must be an array of %zu %s at most", name,
               SLICE_ARG(json_type(value) == JSON_ARRAY
                             ? arena_printf(reader->arena, "an array of %zu", json_count(value))
                             : value_excerpt(value, reader->arena)),
               max, what);
    return SLICE_NONE;
}

/* --- locks --- */

static void read_lock_key(struct reader *reader, struct slice value, struct slice place, struct lock_definition *lock)
{
    if (json_type(value) != JSON_STRING) {
        faults_add(reader->faults, place,
                   "the key of a lock is %.*s; it must be a string, such as \"order:${ .input.order_id }\"",
                   SLICE_ARG(value_excerpt(value, reader->arena)));
        return;
    }
    reader_template_at(reader, value, place, ROOTS_LOCK, &lock->key);
    size_t len = lock->key.count > 0 ? 1 : json_string(value, reader->arena).len;

    if (len == 0 || len > LOCK_KEY_BYTES_MAX) {
        faults_add(reader->faults, place, "the key of a lock has %zu bytes; it must have 1 to %d", len,
                   LOCK_KEY_BYTES_MAX);
    }
}

static void read_lock(struct reader *reader, struct slice value, struct slice place, struct lock_definition *lock)
{
    struct members m;
    struct slice word;

    if (json_type(value) != JSON_OBJECT) {
        read_lock_key(reader, value, place, lock);
        return;
    }
    if (!members_open(&m, value, place, "a lock", "key when_taken", "", reader->arena, reader->faults)) {
        return;
    }
    if (members_at(&m, "key").ptr) {
        read_lock_key(reader, members_at(&m, "key"), members_pointer(&m, "key"), lock);
    } else {
        faults_add(reader->faults, place,
                   "the lock has no `key`; it needs one, such as \"order:${ .input.order_id }\"");
    }
    word = members_at(&m, "when_taken");
    lock->fails = word.ptr && json_string_is(word, "fail");
    if (word.ptr && !lock->fails && !json_string_is(word, "wait")) {
        faults_add(reader->faults, members_pointer(&m, "when_taken"),
                   "`when_taken` is %.*s; it must be `wait` (for its turn, the default) or `fail` (the saga fails at "
                   "once)",
                   SLICE_ARG(value_excerpt(word, reader->arena)));
    }
}

void saga_read_locks(struct reader *reader, const struct members *m, struct definition *definition)
{
    struct slice value = array_of(reader, m, "locks", LOCKS_MAX, "locks"), item;

    if (!value.ptr || json_count(value) == 0) {
        return;
    }
    struct lock_definition *locks = arena_array(reader->arena, json_count(value), sizeof(*locks));
    struct json_walk walk = json_walk(value);
    uint32_t count = 0;

    for (; json_next_element(&walk, &item); count++) {
        read_lock(reader, json_trim(item), reader_element_pointer(reader, members_pointer(m, "locks"), count),
                  &locks[count]);
    }
    definition->locks = locks;
    definition->lock_count = count;
}

/* --- followers --- */

static void read_follower(struct saga_reader *s, struct slice value, struct slice place,
                          struct follower_definition *follower)
{
    struct reader *reader = s->reader;
    struct members m;

    if (!members_open(&m, value, place, "an element of `then`", "saga input id", "", reader->arena, reader->faults)) {
        return;
    }
    if (!members_at(&m, "saga").ptr) {
        faults_add(reader->faults, place, "it does not say which `saga` to start; name one");
    } else if (members_text(&m, "saga", &follower->saga) && reader->collects &&
               !slice_equal(follower->saga, s->definition->name) &&
               !(s->finder->has_saga && s->finder->has_saga(s->finder, follower->saga))) {
        /* A follower is looked up at registration already, although it starts later as a saga of its own, in its newest
         * version. */
        struct slice near = s->finder->near_saga ? s->finder->near_saga(s->finder, follower->saga) : SLICE_NONE;

        faults_add(reader->faults, members_pointer(&m, "saga"), "there is no saga `%.*s` in this document%s%.*s",
                   SLICE_ARG(follower->saga), reader_not_registered(reader),
                   SLICE_ARG(did_you_mean(near, reader->arena)));
    }
    reader_template(reader, &m, "input", ROOTS_END, &follower->input);
    reader_template(reader, &m, "id", ROOTS_END, &follower->id);
    if (template_is_set(&follower->id) && json_type(follower->id.json) != JSON_STRING) {
        faults_add(reader->faults, members_pointer(&m, "id"),
                   "`id` is %.*s; it must be a string, such as \"invoice:${ .input.order_id }\"",
                   SLICE_ARG(value_excerpt(follower->id.json, reader->arena)));
    }
}

void saga_read_followers(struct saga_reader *s, const struct members *m)
{
    struct slice value = array_of(s->reader, m, "then", FOLLOWERS_MAX, "sagas"), item;

    if (!value.ptr || json_count(value) == 0) {
        return;
    }
    struct follower_definition *followers = arena_array(s->reader->arena, json_count(value), sizeof(*followers));
    struct json_walk walk = json_walk(value);
    uint32_t count = 0;

    for (; json_next_element(&walk, &item); count++) {
        read_follower(s, json_trim(item), reader_element_pointer(s->reader, members_pointer(m, "then"), count),
                      &followers[count]);
    }
    s->definition->followers = followers;
    s->definition->follower_count = count;
}

/* --- the tags of a saga that starts --- */

#define TAG_BYTES_MAX 256
#define TEXT_BYTES_MAX ((size_t)64 << 20) /* longer than any input */

/* Writes one tag. A tag is text: a number is written as it is, and a null makes no tag. */
static bool put_tag(struct json_writer *w, struct slice name, struct slice value, struct arena *arena, struct err *err)
{
    struct slice text = json_type(value) == JSON_STRING ? json_string(value, arena) : json_trim(value);

    if (json_type(value) == JSON_NULL) {
        return true;
    }
    if (json_type(value) == JSON_OBJECT || json_type(value) == JSON_ARRAY || text.len > TAG_BYTES_MAX) {
        (void)err_set(err, ERR_INVALID, "the tag %.*s is no text of at most %d bytes with this input", SLICE_ARG(name),
                      TAG_BYTES_MAX);
        return false;
    }
    json_write_slice(w, arena_text(arena, name), text);
    return true;
}

enum err_code definition_tags(const struct definition *definition, struct slice input, struct arena *arena,
                              struct slice *out, struct err *err)
{
    struct expression_context context = {.input = input.len ? input : SLICE("{}")};
    struct slice rendered, name_raw, value;
    struct buffer text;
    struct json_writer w;
    bool good = true;

    *out = definition->tags;
    if (!template_is_set(&definition->tag_values)) {
        return ERR_OK;
    }
    if (template_render(&definition->tag_values, &context, NULL, arena, &rendered, err) != ERR_OK) {
        (void)err_context(err, "the tags");
        return ERR_INVALID;
    }
    struct json_walk walk = json_walk(rendered);

    buffer_init(&text, TEXT_BYTES_MAX);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    while (good && json_next_member(&walk, &name_raw, &value)) {
        good = put_tag(&w, json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena), value, arena, err);
    }
    json_object_end(&w);
    CHECK(!text.overflow);
    *out = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return good ? ERR_OK : ERR_INVALID;
}
