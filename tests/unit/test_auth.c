/* The file of tokens is read strictly, and a token has the rights that the file gives it. */
#include <string.h>

#include "api/auth.h"
#include "tests/lib/test.h"

#define SHA_OF_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define ROW(more)                                                                                                      \
    "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"namespace\":\"n\",\"role\":\"agent\"" more "}]}"
#define SEVERAL(namespaces)                                                                                            \
    "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"namespaces\":" namespaces ",\"role\":\"agent\"}]}"

#define CERTIFICATE(name, more)                                                                                        \
    "{\"tokens\":[{\"name\":\"a\",\"certificate\":\"" name "\",\"namespace\":\"n\",\"role\":\"agent\"" more "}]}"

static const struct {
    const char *name, *text, *says; /* says: NULL when the file is good */
} cases[] = {
    {"a good one", ROW(""), NULL},
    {"with an expiry", ROW(",\"expires_at\":\"2099-01-01T00:00:00Z\""), NULL},
    {"no tokens at all", "{\"tokens\":[]}", NULL},
    {"not JSON", "{", ""},
    {"an array", "[]", "must be an object"},
    {"another member", "{\"tokens\":[],\"more\":1}", "must be an object"},
    {"an unknown member of a token", ROW(",\"colour\":1"), "/tokens/0/colour: unknown member"},
    {"an expiry that is none", ROW(",\"expires_at\":\"soon\""), "/tokens/0/expires_at"},
    {"an unknown role",
     "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"namespace\":\"n\",\"role\":\"king\"}]}",
     "/tokens/0/role"},
    {"the role none",
     "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"namespace\":\"n\",\"role\":\"none\"}]}",
     "/tokens/0/role"},
    {"no role", "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"namespace\":\"n\"}]}", "role is missing"},
    {"no namespace", "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"" SHA_OF_ABC "\",\"role\":\"agent\"}]}",
     "namespace is missing"},
    {"several namespaces", SEVERAL("[\"n\",\"m\"]"), NULL},
    {"no namespaces", SEVERAL("[]"), "/tokens/0/namespaces: not an array"},
    {"a namespace twice", SEVERAL("[\"n\",\"n\"]"), "different"},
    {"all namespaces among others", SEVERAL("[\"n\",\"*\"]"), "none of them \"*\""},
    {"a namespace with a blank", SEVERAL("[\"n m\"]"), "/tokens/0/namespaces"},
    {"namespaces that are a text", SEVERAL("\"n\""), "/tokens/0/namespaces"},
    {"one namespace and several", ROW(",\"namespaces\":[\"m\"]"), "either namespace or namespaces"},
    {"a digest too short", "{\"tokens\":[{\"name\":\"a\",\"sha256\":\"ba78\",\"namespace\":\"n\",\"role\":\"agent\"}]}",
     "sha256 is missing"},
    {"tools", ROW(",\"tools\":[\"card.pay\",\"mail.*\"]"), NULL},
    {"no tools", ROW(",\"tools\":[]"), "/tokens/0/tools: not an array"},
    {"tools that are a text", ROW(",\"tools\":\"card.pay\""), "/tokens/0/tools"},
    {"all tools", ROW(",\"tools\":[\"*\"]"), "/tokens/0/tools"},
    {"a star within a name", ROW(",\"tools\":[\"card.*.pay\"]"), "/tokens/0/tools"},
    {"two tools in one", ROW(",\"tools\":[\"card.pay,card.void\"]"), "/tokens/0/tools"},
    {"a certificate", CERTIFICATE("URI:spiffe://shop.example/billing", ""), NULL},
    {"the name of a host", CERTIFICATE("DNS:billing.shop.example", ""), NULL},
    {"a certificate and a digest", CERTIFICATE("DNS:a", ",\"sha256\":\"" SHA_OF_ABC "\""),
     "either sha256 or certificate"},
    {"a certificate without a kind", CERTIFICATE("billing.shop.example", ""), "/tokens/0/certificate: not DNS:NAME"},
    {"a certificate without a name", CERTIFICATE("DNS:", ""), "/tokens/0/certificate"},
    {"a certificate with a blank", CERTIFICATE("DNS:a b", ""), "/tokens/0/certificate"},
};

static const struct token *find(const struct tokens *tokens, struct slice text, int64_t now_ms)
{
    struct digest digest = digest_sha256(text);

    return tokens_find(tokens, &digest, now_ms);
}

TEST(a_tokens_file_is_read_strictly)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tokens tokens = {0};
        struct err err = {0};
        enum err_code code = tokens_parse(slice_of(cases[i].text), &tokens, &err);

        if (cases[i].says ? code != ERR_CONFIG || !strstr(err.detail, cases[i].says) : code != ERR_OK) {
            fail_msg("%s: %d %s: %s", cases[i].name, (int)code, err.message, err.detail);
        }
        tokens_fini(&tokens);
    }
}

TEST(a_token_is_found_by_its_text)
{
    struct tokens tokens = {0};
    const struct token *token;

    assert_int_equal(tokens_parse(slice_of(ROW(",\"expires_at\":\"2030-01-01T00:00:00Z\"")), &tokens, NULL), ERR_OK);
    token = find(&tokens, SLICE("abc"), 0);
    assert_non_null(token);
    assert_true(slice_is(token->namespace, "n") && token->role == ROLE_AGENT);
    assert_null(find(&tokens, SLICE("abcd"), 0));
    assert_null(find(&tokens, SLICE(""), 0));
    assert_null(find(&tokens, SLICE("abc"), INT64_C(4000000000000))); /* the token has expired by then */
    tokens_fini(&tokens);
}

TEST(a_token_has_the_tools_of_its_row)
{
    static const struct {
        const char *tool;
        bool has;
    } table[] = {{"card.pay", true}, {"card.pays", false}, {"mail.", true}, {"mail.send", true},
                 {"mail", false},    {"email.x", false},   {"", false}};
    struct tokens tokens = {0};

    assert_int_equal(tokens_parse(slice_of(ROW(",\"tools\":[\"card.pay\",\"mail.*\"]")), &tokens, NULL), ERR_OK);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        assert_int_equal(token_tools_have(&tokens.items[0].tools, slice_of(table[i].tool)), table[i].has);
    }
    assert_int_equal(tokens_parse(slice_of(ROW("")), &tokens, NULL), ERR_OK);
    assert_true(token_tools_have(&tokens.items[0].tools, SLICE("anything")));
    tokens_fini(&tokens);
}

TEST(a_token_may_act_in_its_namespaces_only)
{
    static const struct {
        const char *text, *namespace;
        bool may;
    } table[] = {
        {ROW(""), "n", true},
        {ROW(""), "m", false},
        {ROW(""), "*", false},
        {SEVERAL("[\"n\",\"m\"]"), "m", true},
        {SEVERAL("[\"n\",\"m\"]"), "n", true},
        {SEVERAL("[\"n\",\"m\"]"), "nm", false},
        {SEVERAL("[\"n\",\"m\"]"), "", false},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct tokens tokens = {0};

        assert_int_equal(tokens_parse(slice_of(table[i].text), &tokens, NULL), ERR_OK);
        assert_int_equal(token_has_namespace(find(&tokens, SLICE("abc"), 0), slice_of(table[i].namespace)),
                         table[i].may);
        assert_true(slice_is(tokens.items[0].namespace, "n"));
        tokens_fini(&tokens);
    }
}

TEST(a_wrong_file_leaves_the_tokens_as_they_were)
{
    struct tokens tokens = {0};

    assert_int_equal(tokens_parse(slice_of(ROW("")), &tokens, NULL), ERR_OK);
    assert_int_equal(tokens_parse(SLICE("[]"), &tokens, NULL), ERR_CONFIG);
    assert_non_null(find(&tokens, SLICE("abc"), 0));
    tokens_fini(&tokens);
}

TEST_PROGRAM(NULL, NULL)
