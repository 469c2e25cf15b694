/* Makes the bytes that identify an operation. Never add anything here: it would change keys that receivers already
 * know. */
#include "core/definition/opkey.h"

#include <stdio.h>

#include "base/canon.h"

const char *direction_name(enum direction direction)
{
    switch (direction) {
    case DIRECTION_DO:
        return "do";
    case DIRECTION_UNDO:
        return "undo";
    case DIRECTION_COUNT:
        break;
    }
    UNREACHABLE();
}

struct op_key op_key_make(const struct op_identity *identity)
{
    char generation[16];
    int len = snprintf(generation, sizeof(generation), "%u", (unsigned)identity->generation);
    struct slice fields[] = {
        identity->namespace,
        identity->run,
        identity->step,
        identity->tool,
        slice_of(direction_name(identity->direction)),
        identity->scope,
        {generation, (size_t)len},
    };
    struct digest digest = digest_fields("sk1", fields, COUNT_OF(fields));

    return (struct op_key){uuid_v8(&digest)};
}

static const struct slice always[] = {
    {"/request_id", 11},
    {"/timestamp", 10},
    {"/trace_id", 9},
};

const struct pointers volatiles_always = {always, COUNT_OF(always)};

struct digest op_fingerprint(struct slice tool, struct slice args, const struct pointers *volatiles,
                             struct arena *scratch)
{
    const struct pointers *out = volatiles ? volatiles : &volatiles_always;
    struct slice json = args.ptr ? args : SLICE("null");
    struct slice fields[] = {tool, canon(json, out->items, out->count, scratch)};

    return digest_fields("fp1", fields, COUNT_OF(fields));
}
