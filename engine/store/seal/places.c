/* The associated data of sealed columns. Whoever moves a row, or changes what it is for, makes it unreadable. */
#include "store/seal/places.h"

#include "base/digest.h"

/* Names have no length of their own in a place: a digest of them stands for them. */
static struct uuid id_of(const char *table, const struct slice *fields, size_t count)
{
    struct digest digest = digest_fields(table, fields, count);
    struct uuid id;

    memcpy(id.bytes, digest.bytes, sizeof(id.bytes));
    return id;
}

static struct slice bytes_of(const struct uuid *id)
{
    return (struct slice){(const char *)id->bytes, sizeof(id->bytes)};
}

struct seal_place place_of_turn(const struct uuid *saga, uint64_t first_seq)
{
    return (struct seal_place){.table = "log", .id = *saga, .number = first_seq};
}

struct seal_place place_of_rest(const struct uuid *saga, uint64_t last_seq)
{
    return (struct seal_place){.table = "log", .id = *saga, .number = last_seq, .member = SLICE("rest")};
}

struct seal_place place_of_digest(const struct uuid *saga)
{
    return (struct seal_place){.table = "saga", .id = *saga, .member = SLICE("input_digest")};
}

struct seal_place place_of_input(const struct uuid *id, const struct uuid *saga, struct slice kind)
{
    const struct slice fields[] = {bytes_of(id), bytes_of(saga), kind};

    return (struct seal_place){.table = "inbox", .id = id_of("inbox", fields, COUNT_OF(fields))};
}

struct seal_place place_of_answer(const struct uuid *input)
{
    return (struct seal_place){.table = "answer", .id = *input};
}

struct seal_place place_of_bulk(const struct uuid *id)
{
    return (struct seal_place){.table = "bulk", .id = *id};
}

struct seal_place place_of_bulk_item(const struct uuid *bulk, uint64_t number)
{
    return (struct seal_place){.table = "bulk_item", .id = *bulk, .number = number};
}

struct seal_place place_of_case(const char *table, const struct uuid *saga, uint64_t number)
{
    return (struct seal_place){.table = table, .id = *saga, .number = number};
}

struct seal_place place_of_schedule(struct slice namespace, struct slice name, const struct uuid *id)
{
    const struct slice fields[] = {namespace, name, bytes_of(id)};

    return (struct seal_place){.table = "schedule", .id = id_of("schedule", fields, COUNT_OF(fields))};
}
