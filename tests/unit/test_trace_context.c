/* W3C Trace Context: what is handed on to tools, and what is not. */
#include <stdio.h>

#include "base/trace_context.h"
#include "tests/lib/test.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define ZEROS_16 "0000000000000000"

static const struct {
    const char *name, *parent;
    bool good;
} parents[] = {
    {"as it is", PARENT, true},
    {"no flags set", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true},
    {"a later version", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true},
    {"a later version with more", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", true},
    {"empty", "", false},
    {"version 00 with more", PARENT "-what", false},
    {"a later version with more, not parted", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.x", false},
    {"version ff", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
    {"capitals", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false},
    {"no trace", "00-" ZEROS_16 ZEROS_16 "-b7ad6b7169203331-01", false},
    {"no parent", "00-0af7651916cd43dd8448eb211c80319c-" ZEROS_16 "-01", false},
    {"too short", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false},
    {"another separator", "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", false},
    {"a line end behind it", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-a\r\nx: y", false},
};

TEST(a_parent_is_one_only_as_the_recommendation_says)
{
    for (size_t i = 0; i < COUNT_OF(parents); i++) {
        struct trace_context trace = trace_context_read(slice_of(parents[i].parent), SLICE("a=b"));

        if ((trace.parent.ptr != NULL) != parents[i].good || (trace.state.ptr != NULL) != parents[i].good) {
            fail_msg("%s", parents[i].name);
        }
    }
    assert_null(trace_context_read(SLICE_NONE, SLICE("a=b")).state.ptr);
}

static const struct {
    const char *name, *state;
    bool good;
} states[] = {
    {"one", "rojo=00f067aa0ba902b7", true},
    {"two, and white space", "rojo=1 , congo=t61rcWkgMzE", true},
    {"of a tenant", "1a@b*c/d-e_f=x", true},
    {"an empty member", "a=1,,b=2", true},
    {"nothing", "", false},
    {"only commas", ",,", false},
    {"no value", "a=", false},
    {"no key", "=1", false},
    {"no pair", "a", false},
    {"a capital key", "A=1", false},
    {"a key that begins with a sign", "@a=1", false},
    {"two signs of equality", "a=b=c", false},
    {"a character that is none", "a=b\x7f", false},
    {"a line end", "a=b\r\nx: y", false},
};

TEST(a_state_that_is_not_right_is_left_out_and_its_parent_stays)
{
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct trace_context trace = trace_context_read(SLICE(PARENT), slice_of(states[i].state));

        assert_true(slice_is(trace.parent, PARENT));
        if ((trace.state.ptr != NULL) != states[i].good) {
            fail_msg("%s", states[i].name);
        }
    }
}

TEST(a_state_has_at_most_512_bytes_and_32_members)
{
    char text[1024];
    size_t len = 0;

    for (size_t i = 0; i < 33; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%sk%zu=v", i ? "," : "", i);
        if (i == 31) {
            assert_non_null(trace_context_read(SLICE(PARENT), (struct slice){text, len}).state.ptr);
        }
    }
    assert_null(trace_context_read(SLICE(PARENT), (struct slice){text, len}).state.ptr);
    len = (size_t)snprintf(text, sizeof(text), "a=%0255d,b=%0251d", 1, 1);
    assert_int_equal(len, 511);
    assert_non_null(trace_context_read(SLICE(PARENT), (struct slice){text, len}).state.ptr);
    text[len] = ' ';
    text[len + 1] = ' ';
    assert_null(trace_context_read(SLICE(PARENT), (struct slice){text, len + 2}).state.ptr);
}

TEST_PROGRAM(NULL, NULL)
