/* What `sagactl check` says of a document without a service: see review.h. */
#include <stdio.h>
#include <string.h>

#include "review/review.h"
#include "tests/lib/test.h"

static size_t faults_of(const char *text, struct arena *arena, char *first, size_t bytes)
{
    struct tool_source none = {0};
    struct document document;
    struct faults faults;

    faults_init(&faults, arena);
    review_document(slice_of(text), &none, arena, &faults, &document);
    if (faults.count > 0) {
        (void)snprintf(first, bytes, "%.*s", (int)faults.items[0].detail.len, faults.items[0].detail.ptr);
    }
    return faults.count;
}

static struct arena arena;

TEST(programs_and_settings_are_looked_at_without_a_service)
{
    char first[512] = "";

    assert_int_equal(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\","
                               "\"result\":\"${ [.response | keys[]] }\"}]}",
                               &arena, first, sizeof(first)),
                     0);
    assert_int_equal(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\","
                               "\"result\":\"${ [.response | no_such_function] }\"}]}",
                               &arena, first, sizeof(first)),
                     1);
    assert_non_null(strstr(first, "no_such_function"));
    assert_true(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"juggle\"},\"effect\":\"read\"}]}", &arena,
                          first, sizeof(first)) > 0);
}

static const struct {
    const char *tools;
    const char *warnings, *differences; /* pointers, each followed by a space */
} advised[] = {
    {"{'name':'t','http':{'url':'http://a/${ .key }','method':'POST','body':'${ .args "
     "}'},'effect':'idempotent','terminal':true}",
     "", ""},
    {"{'name':'t','http':{'url':'http://a/${ .args.id }'},'effect':'idempotent','terminal':true,'input':{}}", "",
     "/tools/0/http /tools/0/http "},
    {"{'name':'t','http':{'url':'http://a'},'effect':'read','input':{}}", "/tools/0/http ", "/tools/0/http "},
    {"{'name':'t','http':{'url':'http://a','method':'POST'},'effect':'read'}", "/tools/0/http/method ",
     "/tools/0/http "},
    {"{'name':'t','http':{'url':'http://a','method':'HEAD'},'effect':'read'}", "", ""},
    {"{'name':'t','http':{'url':'http://a','method':'DELETE'},'effect':'once','terminal':true,'input':{}}",
     "/tools/0/http ", ""},
    {"{'name':'t','http':{'url':'http://a','method':'DELETE','query':{'x':'${ .args.x "
     "}'}},'effect':'once','terminal':true,'input':{}}",
     "", ""},
    {"{'name':'t','http':{'url':'http://a','body':{}},'effect':'checked','terminal':true,'probe':{'http':{'url':'http:/"
     "/a'}},"
     "'precheck':{'http':{'url':'http://a','method':'PUT'},'done':'${ .response }'}}",
     "/tools/0/precheck/http/method ", "/tools/0/probe/http "},
    {"{'name':'t','http':{'url':'http://a/${ .args.id }','body':{}},'effect':'once','terminal':true,'url_raw':true}",
     "/tools/0/url_raw ", ""},
    {"{'name':'t','exec':{'argv':['a','${ .args.x }','-x${ .args.y }','--','${ .args.z "
     "}']},'effect':'once','terminal':true}",
     "/tools/0/exec/argv/1 ", ""},
    {"{'name':'t','mcp':{'server':{'argv':['a','${ .args.x | tostring "
     "}']},'tool':'x','arguments':{}},'effect':'once','terminal':true,'input':{}}",
     "/tools/0/mcp/server/argv/1 ", ""},
    {"{'name':'t','mcp':{'server':{'url':'http://"
     "a'},'tool':'x','arguments':{}},'effect':'once','terminal':true,'input':{}}",
     "/tools/0/mcp ", ""},
    {"{'name':'t','sql':{'database':'host=/tmp user=b','statement':'select 1'},'effect':'read','input':{}}",
     "/tools/0/sql ", ""},
};

static void pointers_of(const struct faults *faults, struct buffer *out)
{
    buffer_reset(out);
    for (size_t i = 0; i < faults->count; i++) {
        buffer_printf(out, "%.*s ", SLICE_ARG(faults->items[i].pointer));
    }
}

TEST(what_is_seldom_meant_is_warned_of_and_what_a_reading_changed_is_listed)
{
    struct buffer found;

    buffer_init(&found, 4096);
    for (size_t i = 0; i < COUNT_OF(advised); i++) {
        struct tool_source none = {0};
        struct document document;
        struct faults faults, warnings, differences;

        arena_reset(&arena);
        char *text = (char *)arena_printf(&arena, "{\"tools\":[%s]}", advised[i].tools).ptr;

        for (char *at = text; *at; at++) {
            *at = *at == '\'' ? '"' : *at;
        }
        faults_init(&faults, &arena);
        faults_init(&warnings, &arena);
        faults_init(&differences, &arena);
        review_document(slice_of(text), &none, &arena, &faults, &document);
        if (faults.count > 0) {
            fail_msg("%s: %.*s", text, SLICE_ARG(faults.items[0].detail));
        }
        advice_warn(&document, &warnings);
        pointers_of(&warnings, &found);
        assert_string_equal(buffer_c(&found), advised[i].warnings);
        advice_differences(&document, READING_FIRST, &differences);
        pointers_of(&differences, &found);
        assert_string_equal(buffer_c(&found), advised[i].differences);
        advice_differences(&document, READING_NEWEST, &warnings);
        pointers_of(&warnings, &found);
        assert_string_equal(buffer_c(&found), advised[i].warnings);
    }
    buffer_fini(&found);
}

TEST(a_tool_that_is_written_in_its_step_is_looked_at_too)
{
    struct tool_source none = {0};
    struct document document;
    struct faults faults, warnings;

    faults_init(&faults, &arena);
    faults_init(&warnings, &arena);
    review_document(SLICE("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\"}],\"sagas\":[{"
                          "\"name\":\"s\",\"steps\":["
                          "{\"id\":\"a\",\"call\":\"t\"},{\"id\":\"b\",\"call\":{\"http\":{\"url\":\"http://"
                          "a\",\"method\":\"POST\"},\"effect\":\"read\"}}]}]}"),
                    &none, &arena, &faults, &document);
    assert_int_equal(faults.count, 0);
    advice_warn(&document, &warnings);
    assert_int_equal(warnings.count, 1);
    assert_true(slice_is(warnings.items[0].pointer, "/sagas/0/steps/1/call/http/method"));
}

TEST_PROGRAM_ARENA(arena)
