/*
 * Rows of which somebody has changed what is sealed. The first byte chooses: a turn, the body of a case, a column, a
 * digest. Nothing opens that was not sealed here, and what is plain stays as it is; a turn or a body that is JSON is
 * sealed and opened again to the byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/seal/places.h"
#include "store/seal/seal.h"
#include "tests/fuzz/fuzz.h"

static struct payload_keys *keys_made(void)
{
    static const char text[] =
        "{\"active\": \"k1\", \"keys\": {\"k1\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}";
    char path[] = "/tmp/sagad-fuzz-keys-XXXXXX";
    struct err err = {0};
    struct payload_keys *keys;
    int fd = mkstemp(path);

    MUST(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1 && close(fd) == 0);
    keys = payload_keys_new(path, &err);
    MUST(keys && unlink(path) == 0);
    return keys;
}

static void members(const struct payload_keys *keys, enum seal_shape shape, struct slice text)
{
    struct uuid saga = {{7}};
    struct seal_place place = shape == SEAL_TURN ? place_of_turn(&saga, 3) : place_of_case("escalation", &saga, 3);
    struct slice plain, again;
    struct err err = {0};
    struct buffer out;

    if (unseal_members(keys, shape, &place, text, fuzz_arena(), &plain, &err) != ERR_OK) {
        MUST(!plain.ptr && err.message[0]);
        return;
    }
    MUST(slice_equal(plain, text)); /* whoever writes a sealed member has no key */
    (void)members_under(shape, text, SLICE("k1"));
    if (!seal_shape_fits(shape, text)) {
        return; /* nobody seals it */
    }
    buffer_init(&out, 64 << 20);
    seal_members(keys, shape, &place, text, &out);
    MUST(json_check_syntax(buffer_slice(&out), NULL) == ERR_OK);
    MUST(unseal_members(keys, shape, &place, buffer_slice(&out), fuzz_arena(), &again, &err) == ERR_OK);
    MUST(slice_equal(again, text));
    buffer_fini(&out);
}

static void column(const struct payload_keys *keys, struct slice text)
{
    struct uuid saga = {{7}};
    struct seal_place place = place_of_answer(&saga);
    struct slice plain;
    struct err err = {0};

    if (unseal_whole(keys, &place, text, fuzz_arena(), &plain, &err) == ERR_OK) {
        MUST(slice_equal(plain, text) && (text.len == 0 || text.ptr[0] != '~'));
    } else {
        MUST(!plain.ptr && err.message[0]);
    }
}

static void digest(const struct payload_keys *keys, struct slice text)
{
    struct uuid saga = {{7}};
    struct seal_place place = place_of_digest(&saga);
    struct digest found;
    struct err err = {0};

    if (unseal_digest(keys, &place, text, &found, &err) == ERR_OK) {
        MUST(text.len == sizeof(found.bytes) && memcmp(found.bytes, text.ptr, text.len) == 0);
    } else {
        MUST(err.message[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct payload_keys *keys;
    struct slice text = fuzz_input(data, size);

    keys = keys ? keys : keys_made();
    switch (fuzz_byte(&text) % 4) {
    case 0:
        members(keys, SEAL_TURN, text);
        break;
    case 1:
        members(keys, SEAL_CASE, text);
        break;
    case 2:
        column(keys, text);
        break;
    default:
        digest(keys, text);
        break;
    }
    return 0;
}
