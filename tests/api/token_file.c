/* Writes a file of tokens for --tokens, for the tests of roles. */
#include "tests/api/token_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"

static void put_list(FILE *file, const char *member, const char *text)
{
    CHECK(fprintf(file, ",\"%s\":[\"", member) > 0);
    for (; *text; text++) {
        CHECK(*text == ',' ? fputs("\",\"", file) >= 0 : fputc(*text, file) == *text);
    }
    CHECK(fputs("\"]", file) >= 0);
}

void token_file_write(const char *path, const struct test_token *tokens, size_t count)
{
    FILE *file = fopen(path, "we");

    CHECK(file);
    CHECK(fchmod(fileno(file), 0600) == 0);
    CHECK(fputs("{\"tokens\":[", file) >= 0);
    for (size_t i = 0; i < count; i++) {
        struct digest digest = digest_sha256(slice_of(tokens[i].name));
        char hex[65];

        digest_hex(&digest, hex);
        CHECK(fprintf(file, "%s{\"name\":\"%s\",\"sha256\":\"%s\",\"role\":\"%s\"", i ? "," : "", tokens[i].name, hex,
                      tokens[i].role) > 0);
        if (strchr(tokens[i].namespace, ',')) {
            put_list(file, "namespaces", tokens[i].namespace);
        } else {
            CHECK(fprintf(file, ",\"namespace\":\"%s\"", tokens[i].namespace) > 0);
        }
        if (tokens[i].tools) {
            put_list(file, "tools", tokens[i].tools);
        }
        CHECK(!tokens[i].expires_at || fprintf(file, ",\"expires_at\":\"%s\"", tokens[i].expires_at) > 0);
        CHECK(fputc('}', file) == '}');
    }
    CHECK(fputs("]}", file) >= 0);
    CHECK(fclose(file) == 0);
}

static const char *made[4]; /* paths of token_file_new(), which the tests keep */
static size_t made_count;

void token_file_new(char *path, const struct test_token *tokens, size_t count)
{
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK(close(fd) == 0);
    token_file_write(path, tokens, count);
    CHECK(made_count < COUNT_OF(made));
    made[made_count++] = path;
}

void token_files_remove(void)
{
    while (made_count > 0) {
        (void)unlink(made[--made_count]); /* a test may have removed it */
    }
}
