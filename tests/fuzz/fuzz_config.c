/*
 * Files that an operator writes: budgets and tokens. The first byte chooses one. A wrong file is refused with a
 * sentence, and an accepted one keeps the promises of the headers.
 */
#include "api/auth.h"
#include "run/call/budgets.h"
#include "tests/fuzz/fuzz.h"

static void budgets(struct slice text)
{
    struct guard_budget found[GUARD_BUDGETS_MAX];
    struct budgets rules = {0};
    struct err err = {0};
    size_t count;

    if (budgets_parse(&rules, text, &err) != ERR_OK) {
        MUST(err.message[0]);
    } else {
        for (size_t i = 0; i < rules.count; i++) {
            MUST(rules.rules[i].calls >= -1 && rules.rules[i].emissions >= -1 && rules.rules[i].micros >= -1);
            MUST(rules.rules[i].name.len > 0);
            MUST(i == 0 || slice_compare(rules.rules[i - 1].name, rules.rules[i].name) <= 0);
        }
        count = budgets_match(&rules, SLICE("default"), SLICE("mail"), INT64_C(1700000000000), found);
        MUST(count <= GUARD_BUDGETS_MAX && (count > 0) == budgets_apply(&rules, SLICE("default"), SLICE("mail")));
    }
    budgets_fini(&rules);
}

static void tokens(struct slice text)
{
    struct tokens found = {0};
    struct err err = {0};

    if (tokens_parse(text, &found, &err) != ERR_OK) {
        MUST(err.code == ERR_CONFIG && err.message[0]);
    } else {
        for (size_t i = 0; i < found.count; i++) {
            MUST(found.items[i].name.len > 0 && found.items[i].role < ROLE_COUNT && found.items[i].role != ROLE_NONE);
        }
        struct digest digest = digest_sha256(text);

        (void)tokens_find(&found, &digest, INT64_C(1700000000000));
    }
    tokens_fini(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);

    if (fuzz_byte(&text) % 2) {
        tokens(text);
    } else {
        budgets(text);
    }
    return 0;
}
