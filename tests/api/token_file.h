/* A tokens file for tests: the text of each token is its name. */
#ifndef SAGAD_TESTS_TOKEN_FILE_H
#define SAGAD_TESTS_TOKEN_FILE_H

#include <stddef.h>

struct test_token {
    const char *name, *namespace /* several with commas between */, *role;
    const char *expires_at; /* NULL: never */
    const char *tools;      /* several with commas between; NULL: it is not bound to tools */
};

/* Makes a file of its own; `path` ends in XXXXXX, as for mkstemp(). It stays until api_host_teardown(). */
void token_file_new(char *path, const struct test_token *tokens, size_t count);
void token_file_write(const char *path, const struct test_token *tokens, size_t count); /* replaces it */
void token_files_remove(void);                                                          /* those of token_file_new() */

#endif
