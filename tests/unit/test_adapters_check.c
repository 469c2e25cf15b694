/* Registration checks the settings of a tool. It reports every fault with its place, and nothing that is right. */
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/answer.h"
#include "adapters/http_parts.h"
#include "base/json.h"
#include "tests/lib/test.h"

struct expectation {
    const char *adapter, *settings;
    enum key_place place;
    const char *pointers; /* the places of the faults in order, each followed by a space; "" for none */
};

static const struct expectation table[] = {
    {"http", "{\"url\":\"http://a/b\"}", KEY_PLACE_DEFAULT, ""},
    {"http",
     "{\"method\":\"POST\",\"url\":\"https://a/b\",\"headers\":{\"X-A\":\"b\",\"X-B\":1,\"X-C\":\"${ .args.c "
     "}\"},\"query\":{\"q\":[1,\"a\"],\"r\":true},"
     "\"body\":{\"any\":[1,2]},\"ca_file\":\"/a\",\"client_cert\":\"/b\"}",
     KEY_PLACE_HEADER, ""},
    {"http",
     "{\"method\":\"${ .args.m }\",\"url\":\"http://a/${ .args.url }\",\"headers\":\"${ .args.h }\",\"query\":\"${ "
     ".args.q }\"}",
     KEY_PLACE_BODY, ""},
    {"http", "{\"url\":\"${ secret(\\\"base\\\") }/x/${ .args.a }\"}", KEY_PLACE_QUERY, ""},
    {"http", "{\"url\":\"${secret(\\\"base\\\")}\"}", KEY_PLACE_QUERY, ""},
    {"http", "{\"url\":\"https://a?x=${ .args.a }\"}", KEY_PLACE_QUERY, ""},
    {"http", "{\"url\":\"${ .args.base }/x\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"${ .args.url }\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"${ secret(\\\"base\\\") }${ .args.a }\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"${ secret(\\\"base\\\") }.example\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"${ .args.scheme }://a/b\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://${ .args.user }@a/b\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://a${ .args.rest }\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://a:${ .args.port }/\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://${ secret(\\\"host\\\") }/\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://a/b/../c\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://a/b/%2E%2e\"}", KEY_PLACE_QUERY, "/t/url "},
    {"http", "{\"url\":\"http://a/b..c/...?x=/../\"}", KEY_PLACE_QUERY, ""},
    {"http", "{}", KEY_PLACE_DEFAULT, "/t "},
    {"http", "[]", KEY_PLACE_DEFAULT, "/t "},
    {"http", "{\"url\":\"ftp://a\"}", KEY_PLACE_DEFAULT, "/t/url "},
    {"http", "{\"url\":\"http://a b\"}", KEY_PLACE_DEFAULT, "/t/url "},
    {"http", "{\"url\":\"http://\"}", KEY_PLACE_DEFAULT, "/t/url "},
    {"http", "{\"url\":7,\"methd\":\"GET\",\"method\":\"get\"}", KEY_PLACE_DEFAULT, "/t/url /t/methd /t/method "},
    {"http", "{\"url\":\"http://a\",\"headers\":[1]}", KEY_PLACE_DEFAULT, "/t/headers "},
    {"http", "{\"url\":\"http://a\",\"headers\":{\"a b\":\"c\",\"d\":{},\"e\":\"f\\r\\ng\"}}", KEY_PLACE_DEFAULT,
     "/t/headers/a b /t/headers/d /t/headers/e "},
    {"http",
     "{\"url\":\"http://"
     "a\",\"headers\":{\"Host\":\"b\",\"Content-Length\":3,\"transfer-encoding\":\"chunked\",\"TE\":\"x\",\"Upgrade\":"
     "\"x\","
     "\"Trailer\":\"x\",\"Connection\":\"close\"}}",
     KEY_PLACE_DEFAULT,
     "/t/headers/Content-Length /t/headers/transfer-encoding /t/headers/TE /t/headers/Upgrade /t/headers/Trailer "
     "/t/headers/Connection "},
    {"http", "{\"url\":\"http://a\",\"headers\":{\"host\":\"${ .args.h }\"}}", KEY_PLACE_DEFAULT, "/t/headers/host "},
    {"http", "{\"url\":\"http://a\",\"query\":{\"a\":{},\"b\":[{}]}}", KEY_PLACE_DEFAULT, "/t/query/a /t/query/b "},
    {"http", "{\"url\":\"http://a\"}", KEY_PLACE_ENV, "/t "},
    {"http", "{\"url\":\"http://a\"}", KEY_PLACE_META, "/t "},
    {"exec", "{\"argv\":[\"/bin/true\",\"${ .args.a }\"],\"env\":{\"A_1\":\"b\",\"C\":2},\"cwd\":\"/\"}", KEY_PLACE_ENV,
     ""},
    {"exec", "{\"argv\":\"${ .args.argv }\"}", KEY_PLACE_DEFAULT, "/t/argv "},
    {"exec", "{\"argv\":[\"${ .args.program }\"]}", KEY_PLACE_DEFAULT, "/t/argv/0 "},
    {"exec", "{\"argv\":[\"/opt/${ .args.program }\"]}", KEY_PLACE_DEFAULT, "/t/argv/0 "},
    {"exec", "{}", KEY_PLACE_DEFAULT, "/t "},
    {"exec", "{\"argv\":[]}", KEY_PLACE_DEFAULT, "/t/argv "},
    {"exec", "{\"argv\":[\"\",1]}", KEY_PLACE_DEFAULT, "/t/argv/0 /t/argv/1 "},
    {"exec", "{\"argv\":\"ls -l\"}", KEY_PLACE_DEFAULT, "/t/argv "},
    {"exec", "{\"argv\":[\"a\"],\"env\":{\"A=B\":\"c\",\"1\":\"d\",\"E\":[]},\"cwd\":1,\"shell\":true}",
     KEY_PLACE_DEFAULT, "/t/env/A=B /t/env/1 /t/env/E /t/cwd /t/shell "},
    {"exec", "{\"argv\":[\"a\"]}", KEY_PLACE_HEADER, "/t "},
    {"mcp",
     "{\"server\":{\"url\":\"https://a/mcp\",\"bearer\":\"${ secret(\\\"t\\\") "
     "}\",\"headers\":{\"X-A\":1},\"ca_file\":\"/a\"},\"tool\":\"a-b.c/d_e\",\"arguments\":{}}",
     KEY_PLACE_META, ""},
    {"mcp",
     "{\"server\":{\"argv\":[\"npx\",\"x\"],\"env\":{\"A\":1},\"cwd\":\"/\"},\"tool\":\"${ .args.tool "
     "}\",\"arguments\":\"${ .args.a }\"}",
     KEY_PLACE_DEFAULT, ""},
    {"mcp", "{\"server\":\"${ .args.server }\",\"tool\":\"x\"}", KEY_PLACE_DEFAULT, "/t/server "},
    {"mcp", "{\"server\":{\"url\":\"http://${ .args.host }/\"},\"tool\":\"x\"}", KEY_PLACE_DEFAULT, "/t/server/url "},
    {"mcp", "{\"server\":{\"argv\":[\"${ .args.a }\"]},\"tool\":\"x\"}", KEY_PLACE_DEFAULT, "/t/server/argv/0 "},
    {"mcp", "{}", KEY_PLACE_DEFAULT, "/t /t "},
    {"mcp", "{\"server\":{},\"tool\":\"a b\"}", KEY_PLACE_DEFAULT, "/t/server /t/tool "},
    {"mcp", "{\"server\":{\"url\":\"http://a\",\"argv\":[\"b\"]},\"tool\":\"\"}", KEY_PLACE_DEFAULT,
     "/t/server /t/tool "},
    {"mcp", "{\"server\":{\"url\":\"ftp://a\",\"env\":{},\"headers\":{\"accept\":\"x\",\"a b\":\"c\"}},\"tool\":\"x\"}",
     KEY_PLACE_DEFAULT, "/t/server/url /t/server/env /t/server/headers/a b /t/server/headers/accept "},
    {"mcp", "{\"server\":{\"url\":\"http://a\",\"bearer\":\"x\",\"headers\":{\"authorization\":\"y\"}},\"tool\":\"x\"}",
     KEY_PLACE_DEFAULT, "/t/server/bearer "},
    {"mcp",
     "{\"server\":{\"argv\":[\"\"],\"env\":{\"A=B\":\"c\"},\"bearer\":\"x\"},\"tool\":\"x\",\"tools\":1,\"arguments\":["
     "]}",
     KEY_PLACE_DEFAULT, "/t/server/argv/0 /t/server/env/A=B /t/server/bearer /t/tools /t/arguments "},
    {"mcp", "{\"server\":{\"url\":\"http://a\"},\"tool\":\"x\"}", KEY_PLACE_HEADER, "/t "},
    {"sql",
     "{\"database\":\"host=/tmp user=b dbname=a\",\"statement\":\"select $1, $2, $key\",\"params\":[\"${ .args.a "
     "}\",{\"b\":[1]}],\"barrier\":true}",
     KEY_PLACE_DEFAULT, ""},
    {"sql",
     "{\"database\":\"${ secret(\\\"a\\\") }\",\"statement\":\"select '$1', \\\"$2\\\", $a$ $3 $a$, a$4, E'\\\\' $5' "
     "/* $6 /* $7 */ */ -- $8\"}",
     KEY_PLACE_DEFAULT, ""},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select 1; -- one\"}", KEY_PLACE_DEFAULT, ""},
    {"sql", "{}", KEY_PLACE_DEFAULT, "/t /t "},
    {"sql", "[]", KEY_PLACE_DEFAULT, "/t "},
    {"sql", "{\"database\":\"host=a password=b\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"postgresql://a:b@c/d\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"host=a dbname=b\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"user=a dbname=b\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"service=a\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":\"host=a what=b\",\"statement\":\"select 1\"}", KEY_PLACE_DEFAULT, "/t/database "},
    {"sql", "{\"database\":7,\"statement\":7,\"params\":7,\"barrier\":7,\"query\":7}", KEY_PLACE_DEFAULT,
     "/t/database /t/statement /t/params /t/barrier /t/query "},
    {"sql",
     "{\"database\":\"host=/tmp user=b\",\"statement\":\"select ${ .args.a }\",\"params\":\"${ .args.p "
     "}\",\"barrier\":\"${ .args.b }\"}",
     KEY_PLACE_DEFAULT, "/t/statement /t/params /t/barrier "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select $1, $3\",\"params\":[1,2]}", KEY_PLACE_DEFAULT,
     "/t/statement /t/params/1 "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select $0\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select $65\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select 1; select 2\"}", KEY_PLACE_DEFAULT,
     "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select 'open\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select $$ open\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"/* open\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\" -- nothing\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"Commit\"}", KEY_PLACE_DEFAULT, "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"/* a */ set search_path = b\"}", KEY_PLACE_DEFAULT,
     "/t/statement "},
    {"sql", "{\"database\":\"host=/tmp user=b\",\"statement\":\"select 1\"}", KEY_PLACE_HEADER, "/t "},
    {"builtin", "{\"do\":\"echo\"}", KEY_PLACE_DEFAULT, ""},
    {"builtin", "{\"do\":\"fail\",\"outcome\":\"unknown\"}", KEY_PLACE_DEFAULT, ""},
    {"builtin", "{\"do\":\"sleep\",\"for\":\"200ms\"}", KEY_PLACE_DEFAULT, ""},
    {"builtin", "{\"do\":\"sleep\",\"for\":\"${ .args.time }\"}", KEY_PLACE_DEFAULT, ""},
    {"builtin", "{\"do\":\"${ .args.what }\",\"for\":\"1s\",\"outcome\":\"retry\"}", KEY_PLACE_DEFAULT, ""},
    {"builtin", "{}", KEY_PLACE_DEFAULT, "/t "},
    {"builtin", "{\"do\":\"dance\"}", KEY_PLACE_DEFAULT, "/t/do "},
    {"builtin", "{\"do\":\"echo\",\"outcome\":\"retry\",\"for\":\"1s\"}", KEY_PLACE_DEFAULT, "/t/outcome /t/for "},
    {"builtin", "{\"do\":\"fail\",\"outcome\":\"absent\"}", KEY_PLACE_DEFAULT, "/t/outcome "},
    {"builtin", "{\"do\":\"sleep\"}", KEY_PLACE_DEFAULT, "/t "},
    {"builtin", "{\"do\":\"sleep\",\"for\":\"soon\"}", KEY_PLACE_DEFAULT, "/t/for "},
    {"builtin", "{\"do\":\"echo\"}", KEY_PLACE_HEADER, "/t "},
};

static struct arena arena;

TEST(every_fault_of_the_settings_is_found_at_its_place)
{
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct adapter *adapter = adapter_find(slice_of(table[i].adapter));
        struct faults faults;
        struct buffer found;

        arena_init(&arena, 4096);
        buffer_init(&found, 4096);
        faults_init(&faults, &arena);
        adapter->check(slice_of(table[i].settings), SLICE("/t"), table[i].place, &faults);
        for (size_t j = 0; j < faults.count; j++) {
            buffer_printf(&found, "%.*s ", SLICE_ARG(faults.items[j].pointer));
            assert_true(faults.items[j].detail.len > 10);
        }
        if (strcmp(buffer_c(&found), table[i].pointers) != 0) {
            fail_msg("%s %s: faults at \"%s\", not at \"%s\"", table[i].adapter, table[i].settings, buffer_c(&found),
                     table[i].pointers);
        }
        buffer_fini(&found);
        arena_fini(&arena);
    }
}

TEST(adapters_are_found_by_name_and_no_other_is)
{
    for (size_t i = 0; adapter_at(i); i++) {
        assert_ptr_equal(adapter_find(slice_of(adapter_at(i)->name)), adapter_at(i));
        assert_true(adapter_at(i)->call_size >= sizeof(struct call));
    }
    assert_null(adapter_find(SLICE("htt")));
    assert_null(adapter_find(SLICE("httpx")));
    assert_null(adapter_find(SLICE("")));
}

TEST(a_key_is_set_in_a_body_and_the_rest_stays_byte_for_byte)
{
    static const char *const bodies[][3] = {
        /* The columns are body, pointer and result; a NULL result means refused. */
        {"{\"a\":1.50}", "/key", "{\"a\":1.50,\"key\":\"K\"}"},
        {"{}", "/key", "{\"key\":\"K\"}"},
        {"{\"key\":\"old\",\"b\":[1, 2]}", "/key", "{\"key\":\"K\",\"b\":[1, 2]}"},
        {"{\"m\":{\"x\":1}}", "/m/key", "{\"m\":{\"x\":1,\"key\":\"K\"}}"},
        {"{}", "/m/key", "{\"m\":{\"key\":\"K\"}}"},
        {"{\"l\":[{\"a\":1},{}]}", "/l/1/key", "{\"l\":[{\"a\":1},{\"key\":\"K\"}]}"},
        {"[1]", "/-", "[1,\"K\"]"},
        {"[1]", "/5", NULL},
        {"{\"a/b\":{},\"~\":1}", "/a~1b/key", "{\"a/b\":{\"key\":\"K\"},\"~\":1}"},
        {"{\"m\":7}", "/m/key", NULL},
        {"7", "/key", NULL},
        {"{}", "key", NULL},
    };

    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct slice got = body_set(slice_of(bodies[i][0]), slice_of(bodies[i][1]), SLICE("\"K\""), &arena);

        if (bodies[i][2] ? !slice_is(got, bodies[i][2]) : got.ptr != NULL) {
            fail_msg("%s at %s gave %.*s", bodies[i][0], bodies[i][1], SLICE_ARG(got));
        }
    }
}

TEST(a_query_is_escaped_and_joined)
{
    static const char *const queries[][3] = {
        {"http://a/b", "{\"q\":\"x y&z\",\"n\":1.50,\"t\":true,\"none\":null}", "http://a/b?q=x%20y%26z&n=1.50&t=true"},
        {"http://a/b?c=d#frag", "{\"q\":[\"1\",2]}", "http://a/b?c=d&q=1&q=2"},
        {"http://a/b?", "{\"\\u00e4\":\"\\u20ac\"}", "http://a/b?%C3%A4=%E2%82%AC"},
        {"http://a/b", "{}", "http://a/b"},
        {"http://a/b", "{\"q\":{}}", NULL},
        {"http://a/b", "{\"q\":[[]]}", NULL},
    };

    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        struct slice got = url_add_query(slice_of(queries[i][0]), slice_of(queries[i][1]), &arena);

        if (queries[i][2] ? !slice_is(got, queries[i][2]) : got.ptr != NULL) {
            fail_msg("%s with %s gave %.*s", queries[i][0], queries[i][1], SLICE_ARG(got));
        }
    }
}

TEST(bytes_of_an_answer_become_json)
{
    static const struct {
        struct slice bytes;
        enum answer_kind kind;
        const char *json;
    } answers[] = {
        {SLICE(""), ANSWER_EMPTY, "null"},
        {SLICE(" \r\n"), ANSWER_EMPTY, "null"},
        {SLICE(" {\"a\": 1.50}\n"), ANSWER_JSON, "{\"a\": 1.50}"},
        {SLICE("12345678901234567890"), ANSWER_JSON, "12345678901234567890"},
        {SLICE("hello \"you\"\n"), ANSWER_TEXT, "\"hello \\\"you\\\"\\n\""},
        {SLICE("{\"a\":1,}"), ANSWER_TEXT, "\"{\\\"a\\\":1,}\""},
        {SLICE("a\0b"), ANSWER_BINARY, "null"},
        {SLICE("\xff\xfe"), ANSWER_BINARY, "null"},
        {SLICE("\xed\xa0\x80"), ANSWER_BINARY, "null"},
        {SLICE("\xc0\xaf"), ANSWER_BINARY, "null"},
        {SLICE("\xe2\x82"), ANSWER_BINARY, "null"},
        {SLICE("\xe2\x82\xac"), ANSWER_TEXT, "\"\xe2\x82\xac\""},
    };

    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct slice json;

        assert_int_equal(answer_json(answers[i].bytes, 1000, &arena, &json), answers[i].kind);
        assert_true(slice_is(json, answers[i].json));
    }
}

TEST_PROGRAM_CLOSING(arena, arena_fini)
