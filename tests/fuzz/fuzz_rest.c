/*
 * The state of a run at rest, as it lies in the database. The first byte of the input says whether the digest in front
 * of the state is made right, so that what is behind it is reached; the second one is the record after which the row
 * has the bytes. The rest of the input are the bytes, without a digest where one is made.
 *
 * A state that is read is sound, wants nothing, can be shown, and says the same when it is written and read again. All
 * else is refused with a sentence, and the reader of the database goes to the log.
 */
#include "core/saga/machine.h"
#include "core/saga/rest.h"
#include "tests/fuzz/fuzz.h"

#define ECHO "'builtin':{'do':'echo'},"
#define KEYED ECHO "'effect':'keyed','key':{'window':'60s'},'compensate':{'tool':'undo'}"
#define DIGEST_BYTES 16

static const char *const tool_texts[] = {
    "{'name':'undo'," ECHO "'effect':'idempotent'}",
    "{'name':'look'," ECHO "'effect':'read'}",
    "{'name':'coalesce'," KEYED ",'material':['/amount']}",
    "{'name':'again'," KEYED ",'ttl':'1h','on_expired':'again'}",
    "{'name':'paid'," KEYED ",'cost':100}",
    "{'name':'mail'," ECHO "'effect':'once','terminal':true}",
};

static struct shelf {
    struct tool_shelf shelf;
    struct arena arena;
    const struct tool *tools[COUNT_OF(tool_texts)];
} kept;

static const struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 9}}};

static const struct tool *find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                               uint32_t version)
{
    (void)shelf;
    (void)namespace;
    for (size_t i = 0; i < COUNT_OF(kept.tools); i++) {
        if (version == 1 && slice_equal(kept.tools[i]->name, name)) {
            return kept.tools[i];
        }
    }
    return NULL;
}

static const struct definition *run(struct arena *arena)
{
    struct faults faults;

    if (!kept.shelf.find) {
        arena_init(&kept.arena, 16384);
        kept.shelf.find = find;
        for (size_t i = 0; i < COUNT_OF(tool_texts); i++) {
            char *text = arena_text(&kept.arena, slice_of(tool_texts[i]));

            for (char *c = text; *c; c++) {
                *c = *c == '\'' ? '"' : *c;
            }
            faults_init(&faults, &kept.arena);
            kept.tools[i] = tool_compile(slice_of(text), 1, SLICE(""), &kept.arena, &faults);
            MUST(kept.tools[i] && faults.count == 0);
        }
    }
    return definition_open(SAGA_RUN, &kept.shelf, arena);
}

/* The form, the digest of what is behind it, and that: as rest.c lays it out. */
static struct slice with_digest(struct slice bytes, struct arena *arena)
{
    struct slice body = {bytes.ptr + 1, bytes.len - 1};
    struct digest digest =
        digest_fields("sagad-rest", (const struct slice[]){{(const char *)&id, sizeof(id)}, body}, 2);
    char *all = arena_array(arena, bytes.len + DIGEST_BYTES, 1);

    all[0] = bytes.ptr[0];
    memcpy(all + 1, digest.bytes, DIGEST_BYTES);
    memcpy(all + 1 + DIGEST_BYTES, body.ptr, body.len);
    return (struct slice){all, bytes.len + DIGEST_BYTES};
}

static enum err_code read(struct saga *saga, struct slice bytes, uint64_t seq, struct arena *arena)
{
    struct err err = {0};
    enum err_code code = saga_read_rest(saga, arena, id, run(arena), SLICE("default"), seq, bytes, &err);

    MUST(code == ERR_OK || ((code == ERR_CORRUPT || code == ERR_UNSUPPORTED) && err.code == code && err.message[0]));
    return code;
}

static void look_at(const struct saga *saga, struct arena *arena)
{
    static struct buffer out;
    struct wants wants = {0};

    if (out.bytes_max == 0) {
        buffer_init(&out, (size_t)1 << 24);
    }
    MUST(saga_is_sound(saga) && saga->phase == PHASE_ENDED);
    buffer_reset(&out);
    saga_write_json(saga, &out);
    MUST(!out.overflow &&
         json_check(buffer_slice(&out), &(struct json_limits){(size_t)1 << 24, 96, 1024, 400}, NULL) == ERR_OK);
    saga_wants(saga, arena, &wants);
    MUST(wants.count == 0); /* it rests */
}

static void write_again(const struct saga *saga, uint64_t seq, struct arena *arena)
{
    static struct buffer first, second;
    struct saga again;

    buffer_init(&first, REST_BYTES_MAX);
    buffer_init(&second, REST_BYTES_MAX);
    if (saga_write_rest(saga, &first)) {
        MUST(read(&again, buffer_slice(&first), seq, arena) == ERR_OK);
        MUST(saga_write_rest(&again, &second));
        MUST(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    }
    buffer_fini(&first);
    buffer_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = fuzz_input(data, size);
    bool is_raw = fuzz_byte(&bytes) & 1;
    uint64_t seq = fuzz_byte(&bytes);
    struct arena *arena = fuzz_arena();
    struct saga *saga = arena_alloc(arena, sizeof(*saga));

    MUST(saga_rest_form(bytes) == 0 || bytes.len > 0);
    if (!is_raw && bytes.len > 0) {
        bytes = with_digest(bytes, arena);
    }
    if (read(saga, bytes, seq, arena) == ERR_OK) {
        look_at(saga, arena);
        write_again(saga, seq, arena);
    }
    return 0;
}
