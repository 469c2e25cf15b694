/* Expressions: honest programs give what jq gives; hostile ones are refused or halted in time, and disturb nothing
 * else. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/process/jq.h"
#include "tests/lib/test.h"
#include "tests/lib/test_seed.h"

#define INPUT                                                                                                          \
    "{\"input\":{\"amount\":5,\"name\":\"Ann\",\"items\":[3,1,2]},\"steps\":{\"a\":{\"result\":{\"id\":\"x-1\"}}}}"

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum err_code evaluate(const char *program, const char *input, struct arena *arena, struct slice *output,
                              struct err *err)
{
    struct slice text = slice_of(program);
    size_t failed;

    memset(err, 0, sizeof(*err));
    return jq_evaluate(&text, 1, slice_of(input), NULL, arena, output, &failed, err);
}

static enum err_code check(struct slice program, struct err *err)
{
    size_t failed;

    return jq_check(&program, 1, &failed, err);
}

static bool is_long(void)
{
    const char *text = getenv("SAGAD_TEST_LONG");

    return text && strcmp(text, "1") == 0;
}

/* Leaves out rows. libjq takes some 50 ms to compile a program, so the short form takes a quarter of each table's rows,
 * different ones in each run. */
static bool is_left_out(size_t row)
{
    static uint64_t first;

    first = first ? first : test_seed() + 1;
    return !is_long() && (row + first) % 4 != 0;
}

static struct arena arena;

TEST(honest_programs_give_what_jq_gives)
{
    static const char *const table[][2] = {
        {".", INPUT},
        {".input.amount", "5"},
        {".steps.a.result.id", "\"x-1\""},
        {".steps.b.result", "null"},
        {".input.amount * 2 + 1", "11"},
        {"(1, 2) as $x | $x | select(. == 2)", "2"},
        {"[(1, 2) * (3, 4)]", "[3,6,4,8]"},
        {"{a: 1} * {b: {c: 2}}", "{\"a\":1,\"b\":{\"c\":2}}"},
        {"{ id: .steps.a.result.id, total: (.input.items | add) }", "{\"id\":\"x-1\",\"total\":6}"},
        {".input.items | sort | map(. + 1)", "[2,3,4]"},
        {".input.items |= sort | .input.items", "[1,2,3]"},
        {".input.name # the customer", "\"Ann\""},
        {".input.name | ascii_downcase", "\"ann\""},
        {".input.name | explode | implode", "\"Ann\""},
        {"\"Hello \\(.input.name)!\"", "\"Hello Ann!\""},
        {".input | to_entries | map(.key) | join(\",\")", "\"amount,name,items\""},
        {"\"a,b\" | split(\",\")", "[\"a\",\"b\"]"},
        {"if .input.amount > 3 then \"much\" else \"little\" end", "\"much\""},
        {"try error(\"no\") catch .", "\"no\""},
        {".input | has(\"amount\") and (.name | length == 3)", "true"},
        {"[limit(3; range(10))]", "[0,1,2]"},
        {"@base64 \"\\(.input.name)\"", "\"QW5u\""},
        {"[.input.name] | @sh", "\"'Ann'\""},
        {"1700000000 | todate", "\"2023-11-14T22:13:20Z\""},
        {".input | tojson | fromjson | .amount", "5"},
        {"$ENV", "{}"}, /* a definition that was registered before `$ENV` was refused */
        {"$__prog_args", "{}"},
        {"reduce .input.items[] as $i (0; . + $i)", "6"},
        {"def f(x): x * 2; f(.input.amount)", "10"},
        {".input.missing // \"none\"", "\"none\""},
        {"[paths] | length", "11"},
        {"[.[]?] | length", "2"},
        {".input.items[1:] | first", "1"},
        {"[nan < 1, (0 * infinite | isnan)]", "[true,true]"}, /* the result is a value */
        {"\"\\u20ac\"", "\"\xe2\x82\xac\""},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (is_left_out(i)) {
            continue;
        }
        struct slice output = SLICE_NONE;
        struct err err;
        enum err_code code = evaluate(table[i][0], INPUT, &arena, &output, &err);

        if (code != ERR_OK || !slice_is(output, table[i][1])) {
            fail_msg("%s gave %.*s (%s: %s), not %s", table[i][0], SLICE_ARG(output), err.message, err.detail,
                     table[i][1]);
        }
    }
}

/* Each hostile program ends soon as an error, and the next program runs as if nothing had happened. */
TEST(hostile_programs_are_refused_or_halted_in_time)
{
    static const char *const table[] = {
        /* These must not be reached. */
        "env",
        "env.HOME",
        "[env]",
        "$ENV.HOME | error",
        "input",
        "[inputs] | error",
        "first(inputs)",
        "_input",
        "debug",
        "stderr",
        "halt",
        "halt_error",
        "\"x\" | halt_error(1)",
        "now",
        "localtime",
        "0 | localtime",
        "0 | strflocaltime(\"%Z\")",
        "input_filename",
        "input_line_number",
        "\"a\" | modulemeta",
        "get_search_list",
        "get_jq_origin",
        "get_prog_origin",
        "def f: env; f",
        "\"\\(env)\"",
        "try env catch error",
        "import \"a\" as a; .",
        "include \"a\"; .",
        "import \"a\" as $a; $a",
        "include \"a\" {search: \"/etc\"}; .",
        "module {}; .",
        "\"a\" | test(\"a\")",
        "\"a\" | match(\"a\"; \"g\") | .string",
        "\"a\" | capture(\"a\")",
        "\"a\" | scan(\"a\")",
        "\"a\" | split(\"a\"; null)",
        "\"a\" | [splits(\"a\")]",
        "\"a\" | sub(\"a\"; \"b\")",
        "\"a\" | gsub(\"a\"; \"b\"; \"x\")",
        "\"a\" | _match_impl(\"(a*)*b\"; null; false)",
        "_implode",
        "_times(1; 2)",
        /* These do not end. */
        "repeat(.)",
        "[repeat(1)]",
        "def f: f; f",
        "def f: 1 + f; f",
        "def f: [f]; f",
        "range(1e12)",
        "[range(1e12)]",
        "last(range(1e12))",
        "until(false; .)",
        "[while(true; .)]",
        "reduce range(1e12) as $i (0; . + $i)",
        "first(repeat(empty))",
        "[recurse(.)]",
        "reduce repeat(1) as $i (\"x\"; . + .)",
        "reduce repeat(1) as $i ([1]; . + .)",
        "\"x\" * 2000000000",
        "reduce range(60) as $i (\"x\"; [., .] | add)",
        "[limit(1e12; repeat(1))] | length",
        "label $out | repeat(1) | select(. == 2)",
        /* One operation of libjq takes all time or memory. */
        "reduce range(60) as $i (0; [., .])",
        "reduce range(60) as $i (0; [., .]) | tojson",
        "reduce range(60) as $i (0; [., .]) | tostring",
        "(reduce range(60) as $i (0; [., .])) == (reduce range(60) as $i (0; [., .]))",
        "[reduce range(60) as $i (0; [., .]), (reduce range(60) as $i (0; [., .]))] | sort",
        "reduce range(60) as $i ({}; {a: ., b: .}) | . * .",
        "(reduce range(60) as $i (1; [., .])) | contains(reduce range(59) as $i (2; [., .]))",
        "null | setpath([1000000000]; 1)",
        "[1] | .[1000000000] = 1",
        "[1] | .[900000000] |= 1",
        "[1] | .[100000000] += 1",
        "[range(100000) | 0] as $a | [range(100000) | 0] | indices($a)",
        /* libjq asserts on these. */
        "[null] | implode",
        "[\"a\"] | implode",
        "[55296] | implode",
        "[1e9] | implode",
        "[-1] | implode",
        "{} | implode",
        /* depth */
        "reduce range(1e7) as $i (0; [.])",
        "reduce range(1e5) as $i (0; [.])",
        "reduce range(1000) as $i (0; {a: .})",
        "null | setpath([range(300000) | 0]; 1)",
        "[range(300000) | 0] as $p | null | getpath($p) | setpath($p; 1)",
        "reduce range(300000) as $i (0; [.]) | . as $a | (reduce range(300000) as $i (0; [.])) == $a | [., error]",
        /* These do not give exactly one value. */
        "empty",
        "1, 2",
        "1, repeat(1)",
        ".input.items[]",
        "error",
        "error(\"x\")",
        "error(null)",
        "{} | error",
        ".a.b.c[0].d | keys",
        "1 + {}",
        ".input.name.x",
        "\"\\u0000\"",
        "[0] | implode",
        "1e1000",
        "infinite",
        "-infinite",
        "path(..)",
        "nan",
        "[1, nan]",
        "{a: (0 * infinite)}",
        "infinite - infinite",
        /* These are not programs. */
        "",
        "   ",
        "# nothing",
        "(",
        ")",
        ".)",
        "(.",
        ".) | env | (.",
        "1) + (2",
        ". | env | (",
        "\"",
        "\"\\(\"",
        "[",
        "}",
        "break $x",
        "$undefined",
        "nosuch",
        ".a |",
        "if . then",
        "def f: 1;",
        "@nosuch \"\\(.)\"",
        "reduce",
        "\xff\xfe(",
        ". # )\n(",
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct slice output = SLICE_NONE;
        struct err err, check_err;
        int64_t begin = now_ms(), ms;
        enum err_code code;

        if (is_left_out(i)) {
            continue;
        }
        code = evaluate(table[i], INPUT, &arena, &output, &err);
        ms = now_ms() - begin;
        if (code == ERR_OK) {
            code = check(slice_of(table[i]), &check_err);
        }
        if (code == ERR_OK) {
            fail_msg("%s was let through and gave %.*s", table[i], SLICE_ARG(output));
        }
        if (ms > 20000) { /* 100 ms of processor time; the machine may be busy */
            fail_msg("%s took %d ms", table[i], (int)ms);
        }
        if (getenv("JQ_TEST_TIMES")) {
            fprintf(stderr, "%5d ms %-60.60s %s: %s\n", (int)ms, table[i], err.message, err.detail);
        }
        assert_int_equal(evaluate(".input.amount", INPUT, &arena, &output, &err), ERR_OK);
        assert_true(slice_is(output, "5"));
    }
}

TEST(text_that_closes_our_parenthesis_is_refused_at_registration)
{
    const struct slice beside[] = {SLICE(".a"), SLICE("1) + (2"), SLICE(".b")};
    const struct slice crossing[] = {SLICE("\"a"), SLICE("b\""), SLICE("[1"), SLICE("2]")};
    size_t failed;
    struct err err;

    assert_int_equal(jq_check(beside, 3, &failed, &err), ERR_INVALID);
    assert_int_equal(failed, 1);
    for (size_t i = 0; i < COUNT_OF(crossing); i += 2) { /* they are compiled together, and must not make one */
        assert_int_equal(jq_check(crossing + i, 2, &failed, &err), ERR_INVALID);
        assert_int_equal(failed, 0);
    }

    assert_int_equal(check(SLICE("1) + (2"), &err), ERR_INVALID);
    assert_int_equal(check(SLICE(".) | env | (."), &err), ERR_INVALID);
    assert_int_equal(check(SLICE(". # fine"), &err), ERR_OK);
    assert_int_equal(check(SLICE(".a as [$x] | $x"), &err), ERR_OK);
}

TEST(many_programs_are_checked_together_and_the_first_bad_one_is_told)
{
    enum { COUNT = 60 };
    static const char *const texts[] = {
        ".a as [$x] | $x", "-1", "if . then {a: [1, 2]} else \"\\({b: \")\"} | .b)\" end",
        "def f: 1; f, 2",  "..", ". # )"};
    static char long_one[20000];
    struct slice programs[COUNT];
    size_t failed = 0;
    struct err err;

    for (size_t i = 0; i < COUNT; i++) {
        programs[i] = slice_of(texts[i % COUNT_OF(texts)]);
    }
    memset(long_one, ' ', sizeof(long_one) - 1);
    long_one[0] = '1';
    programs[33] = slice_of(long_one);
    if (jq_check(programs, COUNT, &failed, &err) != ERR_OK) {
        fail_msg("%zu: %s: %s", failed, err.message, err.detail);
    }
    programs[COUNT - 2] = SLICE("nosuch(1)");
    programs[COUNT - 1] = SLICE("1 +");
    assert_int_equal(jq_check(programs, COUNT, &failed, &err), ERR_INVALID);
    assert_int_equal(failed, COUNT - 2);
    assert_non_null(strstr(err.detail, "nosuch/1 is not defined"));
    programs[COUNT - 2] = SLICE("{a: now}");
    assert_int_equal(jq_check(programs, COUNT, &failed, &err), ERR_INVALID);
    assert_int_equal(failed, COUNT - 2);
    assert_non_null(strstr(err.message, "`now`"));
}

TEST(a_program_that_does_not_compile_is_told_in_the_words_of_jq)
{
    struct err err;

    assert_int_equal(check(SLICE(".input | nosuch(1)"), &err), ERR_INVALID);
    assert_non_null(strstr(err.detail, "nosuch/1 is not defined"));
    assert_int_equal(check(SLICE(".input |"), &err), ERR_INVALID);
    assert_non_null(strstr(err.detail, "syntax error"));
}

TEST(a_name_that_can_never_work_is_refused_at_registration_and_only_where_it_is_that_name)
{
    static const struct {
        const char *program, *says; /* NULL when the program is registered */
    } table[] = {
        {"$ENV.HOME", "`$ENV`"},
        {"$ ENV", "`$ENV`"},
        {"{$ENV}", "`$ENV`"},
        {"\"\\($ENV | tojson)\"", "`$ENV`"},
        {"\"costs $ENV\" # $ENV", NULL},
        {"1 as $ENVY | $ENVY", NULL},
        {"now", "`now`"},
        {"env", "`env`"},
        {"input", "`input`"},
        {".input", NULL},
        {"halt", "`halt`"},
        {"\"x\" | halt_error(1)", "`halt_error`"},
        {"0 | localtime", "`localtime`"},
        {".input.name | test(\"A\")", "`test`"},
        {"[match(\"a\"; \"g\")]", "`match`"},
        {"capture(\"a\")", "`capture`"},
        {"[scan(\"a\")]", "`scan`"},
        {"split(\"a\"; null)", "`split`"},
        {"split(\"a\")", NULL},
        {"[splits(\"a\")]", "`splits`"},
        {"sub(\"a\"; \"b\")", "`sub`"},
        {"gsub(\"a\"; \"b\"; \"g\")", "`gsub`"},
        {"if . then 1 else (2 | debug) end", "`debug`"},
        {"\"at \\(now)\"", "`now`"},
        {"def f: now; 1", NULL}, /* nobody calls it */
        {"def sub(f): f; sub(1)", NULL},
        {"{now: 1, test: .now, \"gsub\": .test.gsub}", NULL},
        {"_exact", "`_exact`"},
        {"_implode", "`_implode`"},
        {"\"5\" | tonumber, fromjson | tojson", NULL},
    };
    struct err err;

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (is_left_out(i)) {
            continue;
        }
        enum err_code code = check(slice_of(table[i].program), &err);

        if ((code == ERR_OK) != !table[i].says ||
            (table[i].says && (!strstr(err.message, table[i].says) || !err.detail[0]))) {
            fail_msg("%s: %s: %s", table[i].program, err.message, err.detail);
        }
    }
}

TEST(a_program_that_breaks_the_checking_process_harms_nobody_else)
{
    struct slice output;
    struct err err;

    for (int i = 0; i < 40; i++) {
        char program[64];

        if (is_left_out((size_t)i)) {
            continue;
        }
        assert_int_equal(check(SLICE("$ENV.HOME"), &err), ERR_INVALID);
        (void)snprintf(program, sizeof(program), "{k%d: .input.amount}", i);
        assert_int_equal(evaluate(program, INPUT, &arena, &output, &err), ERR_OK);
    }
}

#define NUMBERS                                                                                                        \
    "{\"big\":9007199254740993,\"neg\":-123456789012345678901234567890,\"far\":1e-400,\"money\":12.50,\"one\":1.0,"    \
    "\"n\":3,"                                                                                                         \
    "\"list\":[9007199254740993,2],\"text\":\"{\\\"id\\\":9007199254740993}\",\"digits\":\"9007199254740993\"}"

TEST(a_number_that_is_only_copied_keeps_its_bytes)
{
    static const char *const table[][2] = {
        {"{id: .big}", "{\"id\":9007199254740993}"},
        {"[.big, .neg, .far, .money, .one, .n]",
         "[9007199254740993,-123456789012345678901234567890,1e-400,12.50,1.0,3]"},
        {".list | map({v: .})", "[{\"v\":9007199254740993},{\"v\":2}]"},
        {"{a: .big} * {b: {c: .neg}}", "{\"a\":9007199254740993,\"b\":{\"c\":-123456789012345678901234567890}}"},
        {".nothing // .big", "9007199254740993"},
        {"if .big then .big else 0 end", "9007199254740993"},
        {".big as $b | [$b, $b] | first", "9007199254740993"},
        {"-.big", "-9007199254740993"}, /* a changed sign is exact as well */
        {"-.neg", "123456789012345678901234567890"},
        {".neg | length", "123456789012345678901234567890"},
        {"[.neg, -.big] | map(fabs)", "[123456789012345678901234567890,9007199254740993]"},
        {"-(.big | fabs)", "-9007199254740993"},
        {"copysign(.big; .neg)", "-9007199254740993"},
        {".big | type", "\"number\""},
        {".n + 1", "4"}, /* an untouched number does not make the program fail */
        {"[.list[] | select(. != null)] | length", "2"},
        {".money * 2", "25"}, /* a double holds it exactly, so the program may calculate with it */
        {"[.one, .money] | add", "13.5"},
        {"[.money, .n] | sort", "[3,12.5]"},
        {"\"\\(.money)\"", "\"12.5\""},
        {".one as $i | [5, 6, 7] | [.[$i], .[$i:]]", "[6,[6,7]]"},
        {".one as $i | [5, 6, 7] | del(.[$i])", "[5,7]"},
        {".text | fromjson", "{\"id\":9007199254740993}"},
        {".digits | tonumber", "9007199254740993"},
        {"[\"007\", \" 5 \", \".5\", \"1e3\"] | map(tonumber)", "[7,5,0.5,1e3]"},
        {"[\"x\", \"\", \"nan\", \"0000000000009007199254740993\"] | map(try tonumber catch \"no\")",
         "[\"no\",\"no\",\"no\",\"no\"]"},
        {".money | tonumber", "12.50"},
        {".list | to_entries | map(.value)", "[9007199254740993,2]"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (is_left_out(i)) {
            continue;
        }
        struct slice output = SLICE_NONE;
        struct err err;
        enum err_code code = evaluate(table[i][0], NUMBERS, &arena, &output, &err);

        if (code != ERR_OK || !slice_is(output, table[i][1])) {
            fail_msg("%s gave %.*s (%s: %s), not %s", table[i][0], SLICE_ARG(output), err.message, err.detail,
                     table[i][1]);
        }
    }
}

/* A builtin function of jq that would round a number fails, or gives the number itself. */
TEST(a_number_that_would_be_rounded_is_used_by_no_function_of_jq)
{
    static const char *const uses[] = {
        ".x + 1",
        "1 + .x",
        ".x - 1",
        ".x * 1",
        ".x / 1",
        ".x % 2",
        "5 % .x",
        ".x == 9007199254740993",
        ".x == .x",
        ".x != .x",
        ".x < 1",
        ".x > 1",
        ".x <= .x",
        "[.x, 1] | sort",
        "[.x, 1] | unique",
        "[.x, .x] | group_by(.)",
        "[.x, 1] | max",
        "[.x, 1] | min",
        "[.x, 1] | add",
        "[{k: .x}, {k: 1}] | sort_by(.k)",
        ".x | tostring",
        ".x | tojson",
        "\"\\(.x)\"",
        ".x | @text",
        "@json \"a\\(.x)\"",
        "[.x] | @csv",
        "[.x] | @tsv",
        ".x | @html",
        ".x | @uri",
        ".x | @sh",
        ".x | @base64",
        "{(.x | tostring): 1}",
        "{(.x): 1}",
        "[.x] | join(\",\")",
        ". | tojson",
        "[1, 2] | .[9007199254740993]?, error",
        ".x as $i | [1, 2] | .[$i]",
        ".x as $i | [1, 2] | .[$i:]",
        ".x as $i | \"abc\" | .[:$i]",
        ".x as $i | [1, 2] | has($i)",
        ".x as $i | [1, 2] | getpath([$i])",
        ".x as $i | [1, 2] | setpath([$i]; 3)",
        ".x as $i | [1, 2] | del(.[$i])",
        ".x as $i | [1, 2] | .[$i] = 5",
        ".x as $i | [1, 2] | nth($i)",
        ".x as $i | [limit($i; 1, 2)]",
        ".x as $i | [range($i)]",
        ".x as $i | [range(0; 10; $i)]",
        ".x as $i | [[1]] | flatten($i)",
        ".x as $i | [5] | index($i)",
        ".x as $i | [5] | contains([$i])",
        "[.x] | inside([1])",
        "[.x] - [1]",
        "[[.x]] - [[.x]]",
        ".x as $i | [5] | bsearch($i)",
        ".x as $i | [1] | combinations($i)",
        "[.x] | implode",
        ".x | todate",
        ".x | gmtime",
        "[.x, 1, 1, 1, 1, 1, 1] | mktime",
        ".x | strftime(\"%Y\")",
        ".x | isnan",
        ".x | isnormal",
        ".x | isinfinite",
        "try (.x + 1) catch 5",
        "(.x + 1)? // 5",
        ".x as $i | [3] | any(. == $i)",
        ".x as $i | \"a\" * $i",
        "[.x] == [.x]",
        "{a: .x} == {a: 1}",
        "[.. | numbers | select(. > 3)]",
        ".x | floor",
        ".x | ceil",
        ".x | round",
        ".x | sqrt",
        ".x | trunc",
        ".x | rint",
        ".x | nearbyint",
        ".x | frexp",
        ".x | modf",
        ".x | logb",
        ".x | significand",
        ".x | gamma",
        ".x | lgamma",
        ".x | tgamma",
        ".x | lgamma_r",
        ".x | exp10",
        ".x | exp",
        ".x | exp2",
        ".x | expm1",
        ".x | log",
        ".x | log2",
        ".x | log10",
        ".x | log1p",
        ".x | cbrt",
        ".x | sin",
        ".x | cos",
        ".x | tan",
        ".x | asin",
        ".x | acos",
        ".x | atan",
        ".x | sinh",
        ".x | cosh",
        ".x | tanh",
        ".x | asinh",
        ".x | acosh",
        ".x | atanh",
        ".x | j0",
        ".x | j1",
        ".x | y0",
        ".x | y1",
        "pow(.x; 0)",
        "pow(1; .x)",
        "atan2(.x; 1)",
        "fmin(.x; 1)",
        "fmax(1; .x)",
        "fma(.x; 1; 0)",
        "fma(1; 1; .x)",
        "fmod(.x; 2)",
        "fdim(.x; 1)",
        "hypot(infinite; .x)",
        "ldexp(.x; 1)",
        "ldexp(1; .x)",
        "scalb(.x; 1)",
        "scalbln(1; .x)",
        "nextafter(1; .x)",
        "nexttoward(.x; .x)",
        "drem(1; .x)",
        "[.x] | tostream | tojson",
        ".text | fromjson | .x + 1",
        ".digits | tonumber + 1",
        ".x | ascii_downcase",
        ".x | splits(\"a\")",
        ".x | fromjson",
        ".x | ascii",
        ".x | utf8bytelength",
        ".x | implode",
        ".x | keys",
        ".x | has(0)",
    };
    static const char *const inputs[] = {
        "{\"x\":9007199254740993,\"text\":\"{\\\"x\\\":9007199254740993}\",\"digits\":\"9007199254740993\"}",
        "{\"x\":-0.12345678901234567890,\"text\":\"{\\\"x\\\":-1e999}\",\"digits\":\"1e400\"}",
    };

    for (size_t i = 0; i < COUNT_OF(uses); i++) {
        for (size_t k = 0; k < COUNT_OF(inputs) && !is_left_out(i); k++) {
            struct slice output = SLICE_NONE;
            struct err err;

            if (evaluate(uses[i], inputs[k], &arena, &output, &err) == ERR_OK) {
                fail_msg("%s of %s gave %.*s", uses[i], inputs[k], SLICE_ARG(output));
            }
        }
    }
    struct slice output;
    struct err err;

    assert_int_equal(evaluate(".x + 1", inputs[0], &arena, &output, &err), ERR_INVALID);
    assert_string_equal(err.message, "the expression uses a number that jq would round");
    assert_non_null(strstr(err.detail, "9007199254740993 has more digits"));
}

TEST(a_halted_program_can_run_again)
{
    static const char program[] = "if . then repeat(.) else 7 end";
    struct slice output;
    struct err err;

    assert_int_equal(evaluate(program, "false", &arena, &output, &err), ERR_OK);
    assert_int_equal(evaluate("last(repeat(1))", "true", &arena, &output, &err), ERR_TIMEOUT);
    assert_int_equal(evaluate("last(if . then repeat(1) else 7 end)", "true", &arena, &output, &err), ERR_TIMEOUT);
    assert_int_equal(evaluate("last(if . then repeat(1) else 7 end)", "false", &arena, &output, &err), ERR_OK);
    assert_true(slice_is(output, "7"));
}

TEST(a_program_that_stops_within_a_path_is_told_as_it_is)
{
    struct slice output;
    struct err err;

    assert_int_equal(evaluate("path(..)", INPUT, &arena, &output, &err), ERR_INVALID);
    assert_string_equal(err.message, "the expression gives more than one value");
    enum err_code code = evaluate("path(repeat(.) | select(false))", INPUT, &arena, &output, &err);

    assert_true(code == ERR_TIMEOUT || code == ERR_TOO_LARGE); /* whichever limit is reached first */
}

TEST(the_program_that_failed_is_named)
{
    struct slice programs[] = {SLICE("1"), SLICE("2"), SLICE("error(\"no\")"), SLICE("3")}, outputs[4];
    size_t failed = 99;
    struct err err;

    assert_int_equal(jq_evaluate(programs, 4, SLICE("null"), NULL, &arena, outputs, &failed, &err), ERR_INVALID);
    assert_int_equal(failed, 2);
    assert_non_null(strstr(err.detail, "no"));
    programs[2] = SLICE("4");
    assert_int_equal(jq_evaluate(programs, 4, SLICE("null"), NULL, &arena, outputs, &failed, &err), ERR_OK);
    assert_true(slice_is(outputs[2], "4") && slice_is(outputs[3], "3"));
}

TEST(a_value_over_the_limit_is_refused)
{
    struct jq_limits limits = {.time_ms = 100, .output_bytes_max = 100};
    struct slice program = SLICE("[range(1000)]"), output;
    size_t failed;
    struct err err;

    assert_int_equal(jq_evaluate(&program, 1, SLICE("null"), &limits, &arena, &output, &failed, &err), ERR_TOO_LARGE);
    program = SLICE("[range(10)]");
    assert_int_equal(jq_evaluate(&program, 1, SLICE("null"), &limits, &arena, &output, &failed, &err), ERR_OK);
}

/* Returns the time of ten evaluations. Each program has another number: the one before plus `step`. */
static int64_t ten_ms(int number, int step)
{
    int64_t begin = now_ms();
    struct arena own;
    struct slice output;
    struct err err;

    arena_init(&own, 4096);
    for (int i = 0; i < 10; i++) {
        char program[64];

        (void)snprintf(program, sizeof(program), ".input.amount + %d", number + i * step);
        assert_int_equal(evaluate(program, INPUT, &own, &output, &err), ERR_OK);
    }
    arena_fini(&own);
    return now_ms() - begin;
}

TEST(a_compiled_program_is_not_compiled_again)
{
    int64_t same_ms = INT64_MAX, fresh_ms = INT64_MAX;

    for (int round = 0; round < 3; round++) { /* both under the same conditions; the best round of each counts */
        int64_t ms = ten_ms(0, 0);

        same_ms = ms < same_ms ? ms : same_ms;
        ms = ten_ms(1000 + 10 * round, 1);
        fresh_ms = ms < fresh_ms ? ms : fresh_ms;
    }
    if (2 * same_ms >= fresh_ms) {
        fail_msg("ten evaluations of one program took %d ms, of ten programs %d ms", (int)same_ms, (int)fresh_ms);
    }
}

/* --- from many sides ----------------------------------------------------------------------------------------- */

static void *evaluate_many(void *context)
{
    struct arena own;
    struct slice output;
    struct err err;
    int *wrong = context;

    arena_init(&own, 4096);
    for (int i = 0; i < (is_long() ? 20 : 10); i++) {
        bool crash = i % 10 == 9;
        enum err_code code =
            evaluate(crash ? "null | setpath([1000000000]; 1)" : ".input.amount", INPUT, &own, &output, &err);

        *wrong += crash ? code == ERR_OK : code != ERR_OK || !slice_is(output, "5");
    }
    arena_fini(&own);
    return NULL;
}

TEST(many_threads_evaluate_at_once_and_crashes_of_one_do_not_touch_the_others)
{
    pthread_t threads[8];
    int wrong[8] = {0};

    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_many, &wrong[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
}

struct submission {
    struct jq_job job;
    struct loop *loop;
    int done_count;
};

static void on_done(struct jq_job *job)
{
    struct submission *s = container_of(job, struct submission, job);

    s->done_count++;
    loop_stop(s->loop);
}

TEST(a_submitted_job_ends_on_the_loop)
{
    struct slice programs[] = {SLICE(".a"), SLICE("error(\"no\")")}, outputs[2];
    struct submission s;

    memset(&s, 0, sizeof(s));
    s.loop = loop_new();
    s.job = (struct jq_job){.programs = programs,
                            .count = 1,
                            .input_json = SLICE("{\"a\":[1]}"),
                            .arena = &arena,
                            .outputs = outputs,
                            .done = on_done};
    jq_submit(s.loop, &s.job);
    assert_int_equal(s.done_count, 0);
    loop_run(s.loop);
    assert_int_equal(s.job.code, ERR_OK);
    assert_true(slice_is(outputs[0], "[1]"));
    s.job.count = 2;
    jq_submit(s.loop, &s.job);
    loop_run(s.loop);
    assert_int_equal(s.job.code, ERR_INVALID);
    assert_int_equal(s.job.failed_index, 1);
    s.job.check_only = true;
    jq_submit(s.loop, &s.job);
    loop_run(s.loop);
    assert_int_equal(s.job.code, ERR_OK);
    assert_int_equal(s.done_count, 3);
    loop_free(s.loop);
}

TEST_ARENA(arena)

int main(void)
{
    jq_prepare();
    tests_each(open_arena, close_arena);
    return tests_run(NULL, NULL);
}
