/* Refuses every unknown member, because a misspelt one would silently lose a compensator. */
#include "core/language/members.h"

#include <string.h>

#include "base/instant.h"
#include "base/json.h"

#define EXCERPT_BYTES 60
#define WORD_BYTES_MAX 64
#define DISTANCE_FAR 3

bool name_is_sound(struct slice name, const char *extra, size_t bytes_max)
{
    if (!name.ptr || name.len == 0 || name.len > bytes_max || name.ptr[0] < 'a' || name.ptr[0] > 'z') {
        return false;
    }
    for (size_t i = 1; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != '\0' && strchr(extra, c)))) {
            return false;
        }
    }
    return true;
}

unsigned word_distance(struct slice a, struct slice b)
{
    size_t rows[3][WORD_BYTES_MAX + 1];
    size_t *two_ago = rows[0], *ago = rows[1], *now = rows[2];

    if (a.len > WORD_BYTES_MAX || b.len > WORD_BYTES_MAX) {
        return DISTANCE_FAR;
    }
    for (size_t j = 0; j <= b.len; j++) {
        ago[j] = j;
        two_ago[j] = 0;
    }
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = ago[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);

            best = ago[j] + 1 < best ? ago[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                two_ago[j - 2] + 1 < best) {
                best = two_ago[j - 2] + 1;
            }
            now[j] = best;
        }
        size_t *spare = two_ago;

        two_ago = ago;
        ago = now;
        now = spare;
    }
    return ago[b.len] < DISTANCE_FAR ? (unsigned)ago[b.len] : DISTANCE_FAR;
}

static bool next_word(const char **list, struct slice *word)
{
    size_t len = strcspn(*list, " ");

    *word = (struct slice){*list, len};
    *list += len + ((*list)[len] == ' ');
    return len > 0;
}

static bool list_has(const char *list, struct slice word)
{
    struct slice item;

    while (next_word(&list, &item)) {
        if (slice_equal(item, word)) {
            return true;
        }
    }
    return false;
}

/* Short words are often similar by chance. Among them only one edit, or a word cut short, counts as a slip. */
static bool is_near(struct slice word, struct slice item, unsigned distance)
{
    size_t shorter = word.len < item.len ? word.len : item.len;

    return distance <= (shorter > 5   ? 2
                        : shorter > 1 ? 1
                                      : 0) ||
           (distance < DISTANCE_FAR && shorter > 2 && memcmp(word.ptr, item.ptr, shorter) == 0);
}

struct slice word_near(struct slice word, const char *list)
{
    struct slice item, best = SLICE_NONE;
    unsigned best_distance = DISTANCE_FAR;

    while (next_word(&list, &item)) {
        unsigned distance = word_distance(word, item);

        if (distance < best_distance && is_near(word, item, distance)) {
            best = item;
            best_distance = distance;
        }
    }
    return best;
}

struct slice value_excerpt(struct slice value, struct arena *arena)
{
    struct slice text = json_trim(value);

    if (text.len <= EXCERPT_BYTES) {
        return text;
    }
    size_t len = EXCERPT_BYTES;

    while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80) { /* moves to the beginning of a character */
        len--;
    }
    return arena_printf(arena, "%.*s...", (int)len, text.ptr);
}

struct slice did_you_mean(struct slice near, struct arena *arena)
{
    return near.ptr ? arena_printf(arena, " (did you mean `%.*s`?)", SLICE_ARG(near)) : SLICE("");
}

static struct slice listed(const char *list, struct arena *arena)
{
    struct slice item, text = SLICE("");

    while (next_word(&list, &item)) {
        text = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(text), text.len > 0 ? ", " : "", SLICE_ARG(item));
    }
    return text;
}

/* Members of definitions that people write one level too high or too low, and where each of them belongs. */
static const struct {
    const char *name, *home;
} homes[] = {
    {"visibility", "`probe`"},
    {"give_up_after", "`probe` and of `compensate`"},
    {"tolerates_absent", "`compensate`"},
    {"voids_key", "`compensate`"},
    {"window", "`key` and of `breaker`"},
    {"settles", "`key`"},
    {"max_attempts", "`retry`"},
    {"max_unsent", "`retry`"},
    {"blocked", "`precheck`"},
    {"failures", "`breaker`"},
    {"cooldown", "`breaker`"},
    {"url", "`http`"},
    {"method", "`http`"},
    {"headers", "`http`"},
    {"argv", "`exec`"},
    {"effect", "a tool"},
    {"probe", "a tool"},
    {"precheck", "a tool"},
    {"outcome", "a tool"},
    {"terminal", "a tool"},
    {"breaker", "a tool"},
    {"on_duplicate", "a tool"},
    {"after", "a step"},
    {"when", "a step"},
    {"for_each", "a step"},
    {"on_failure", "a step"},
    {"deadline", "a saga"},
    {"locks", "a saga"},
    {"retention", "a saga"},
    {"tags", "a saga"},
};

static const char *home_of(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(homes); i++) {
        if (slice_is(name, homes[i].name)) {
            return homes[i].home;
        }
    }
    return NULL;
}

static void check_name(const struct members *members, const char *what, struct slice name, const char *known,
                       const char *later)
{
    if (list_has(known, name)) {
        return;
    }
    if (members->faults->count >= members->faults->count_max) { /* further faults are only counted, without a text */
        faults_add(members->faults, members->pointer, "a member that is not known");
        return;
    }
    struct slice place = place_join(members->arena, members->pointer, name);

    if (list_has(later, name)) {
        faults_add_not_supported(members->faults, place, arena_text(members->arena, name));
        return;
    }
    struct slice near = word_near(name, known);
    const char *home = home_of(name);

    if (!near.ptr) {
        near = word_near(name, later);
    }
    if (home) {
        faults_add(members->faults, place, "`%.*s` is not a member of %s; it is a member of %s", SLICE_ARG(name), what,
                   home);
    } else if (near.ptr) {
        faults_add(members->faults, place, "`%.*s` is not a member of %s%.*s", SLICE_ARG(name), what,
                   SLICE_ARG(did_you_mean(near, members->arena)));
    } else {
        faults_add(members->faults, place, "`%.*s` is not a member of %s; its members are %.*s", SLICE_ARG(name), what,
                   SLICE_ARG(listed(known, members->arena)));
    }
}

bool members_open(struct members *members, struct slice value, struct slice pointer, const char *what,
                  const char *known, const char *later, struct arena *arena, struct faults *faults)
{
    *members = (struct members){value, pointer, arena, faults};
    if (json_type(value) != JSON_OBJECT) {
        faults_add(faults, pointer, "%s must be an object, not %.*s", what, SLICE_ARG(value_excerpt(value, arena)));
        return false;
    }
    struct json_walk walk = json_walk(value);
    struct slice name_raw, item;

    while (json_next_member(&walk, &name_raw, &item)) {
        check_name(members, what, json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena), known, later);
    }
    return true;
}

struct slice members_at(const struct members *members, const char *name)
{
    struct slice value = json_member(members->object, name);

    return value.ptr ? json_trim(value) : value;
}

struct slice members_pointer(const struct members *members, const char *name)
{
    return place_join(members->arena, members->pointer, slice_of(name));
}

static void fault_wants(const struct members *members, const char *name, struct slice value, const char *wanted)
{
    faults_add(members->faults, members_pointer(members, name), "`%s` is %.*s; it must be %s", name,
               SLICE_ARG(value_excerpt(value, members->arena)), wanted);
}

bool members_text(const struct members *members, const char *name, struct slice *out)
{
    struct slice value = members_at(members, name);

    if (!value.ptr) {
        return false;
    }
    if (json_type(value) != JSON_STRING) {
        fault_wants(members, name, value, "a string");
        return false;
    }
    *out = json_string(value, members->arena);
    return true;
}

bool members_bool(const struct members *members, const char *name, bool *out)
{
    struct slice value = members_at(members, name);

    if (!value.ptr) {
        return false;
    }
    if (!json_bool(value, out)) {
        fault_wants(members, name, value, "true or false");
        return false;
    }
    return true;
}

bool members_duration(const struct members *members, const char *name, int64_t min_ms, int64_t max_ms, int64_t *out_ms)
{
    struct slice value = members_at(members, name);
    char min[INSTANT_TEXT_BYTES], max[INSTANT_TEXT_BYTES];
    int64_t ms;

    if (!value.ptr) {
        return false;
    }
    if (json_type(value) != JSON_STRING || !duration_parse(json_string(value, members->arena), &ms)) {
        fault_wants(members, name, value,
                    "a duration: a string with a whole number and a unit, such as \"200ms\", \"10s\", "
                    "\"15m\", \"24h\" or \"7d\"");
        return false;
    }
    if (ms < min_ms || ms > max_ms) {
        duration_text(min_ms, min);
        duration_text(max_ms, max);
        faults_add(members->faults, members_pointer(members, name), "`%s` is %.*s; it must be from %s to %s", name,
                   SLICE_ARG(value), min, max);
        return false;
    }
    *out_ms = ms;
    return true;
}

bool members_integer(const struct members *members, const char *name, int64_t min, int64_t max, int64_t *out)
{
    struct slice value = members_at(members, name);
    int64_t number;

    if (!value.ptr) {
        return false;
    }
    if (json_type(value) != JSON_NUMBER || !json_i64(value, &number) || number < min || number > max) {
        faults_add(members->faults, members_pointer(members, name),
                   "`%s` is %.*s; it must be a whole number from %lld to %lld", name,
                   SLICE_ARG(value_excerpt(value, members->arena)), (long long)min, (long long)max);
        return false;
    }
    *out = number;
    return true;
}

bool members_count(const struct members *members, const char *name, int64_t min, int64_t max, uint32_t *out)
{
    int64_t count;

    if (!members_integer(members, name, min, max, &count)) {
        return false;
    }
    *out = (uint32_t)count;
    return true;
}
