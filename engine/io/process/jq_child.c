/*
 * The helper's side: one thread, libjq, and a cache of compiled programs.
 *
 * A timer of processor time ticks while libjq works. When the time is over, the first tick asks the virtual machine to
 * halt, which it notices between two instructions. If it does not halt, because it is in one long operation, the
 * process reports that and ends. The process also ends when it has grown too large.
 */
#include <fcntl.h>
#include <jq.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/map.h"
#include "io/process/jq_guard.h"
#include "io/process/jq_helper.h"
#include "io/process/jq_value.h"

#define PROGRAMS_MAX 512
#define PROGRAM_BYTES_MAX ((size_t)64 * 1024)
#define TOGETHER_BYTES_MAX ((size_t)16 * 1024) /* a longer text might take more than COMPILE_MS */
#define GROWTH_BYTES_MAX                                                                                               \
    ((size_t)160 * 1024 * 1024) /* the most memory above that of a new helper; beyond it the helper ends */
#define KEPT_BYTES_MAX                                                                                                 \
    ((size_t)64 * 1024 * 1024) /* the most memory kept between requests; beyond it the helper ends, too */
#define ADDRESS_BYTES_MORE ((size_t)512 * 1024 * 1024)
#define COMPILE_MS 1000
#define HALT_GRACE_MS 100
#define TICK_MS 10

struct program {
    struct list_link link; /* most recently used last */
    struct slice text;
    jq_state *jq;
};

/* A process has one timer and one signal handler, so it also has one such state. */
static struct {
    int fd, statm_fd;
    struct list programs;
    struct map by_text;
    size_t base_bytes;
    bool ends;       /* the helper takes no further program: libjq asserts when an unfinished program is started anew */
    char words[400]; /* the first error of libjq */
    struct jq_marks *marks; /* the marks of the running evaluation */
    jv asked;               /* what our `fromjson` or `tonumber` asks for, between `debug` and `input` */

    /* the running phase, for the signal handler */
    jq_state *volatile running; /* NULL while compiling or parsing */
    volatile int64_t used_ms, limit_ms;
    volatile sig_atomic_t halted;
    volatile uint32_t index;
} child;

/* --- limits -------------------------------------------------------------------------------------------------- */

static size_t resident_bytes(void) /* may run in a signal handler */
{
    char text[128];
    ssize_t len = pread(child.statm_fd, text, sizeof(text) - 1, 0);
    size_t pages = 0;
    ssize_t i = 0;

    while (i < len && text[i] != ' ') {
        i++;
    }
    for (i++; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = pages * 10 + (size_t)(text[i] - '0');
    }
    return pages * 4096;
}

static _Noreturn void die(enum jq_wire_end end)
{
    struct jq_wire_answer note;

    memset(&note, 0, sizeof(note));
    note.end = end;
    note.index = child.index;
    note.last = true;
    (void)jq_wire_write(child.fd, &note, sizeof(note)); /* the reader may be gone */
    _exit(0);
}

static void on_tick(int signal_number)
{
    (void)signal_number;
    if (child.limit_ms == 0) {
        return;
    }
    child.used_ms += TICK_MS;
    if (resident_bytes() > child.base_bytes + GROWTH_BYTES_MAX) {
        die(JQ_WIRE_MEMORY);
    }
    if (child.used_ms < child.limit_ms) {
        return;
    }
    if (child.running && !child.halted) {
        child.halted = 1;
        jq_halt(child.running, jv_invalid(), jv_invalid());
        child.limit_ms += HALT_GRACE_MS;
        return;
    }
    die(JQ_WIRE_TIME);
}

static void on_no_memory(void *context)
{
    (void)context;
    die(JQ_WIRE_MEMORY);
}

static void timer_set(int tick_ms)
{
    struct itimerval timer = {{0, tick_ms * 1000}, {0, tick_ms * 1000}};

    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

static void phase_begin(int64_t limit_ms)
{
    child.running = NULL;
    child.halted = 0;
    child.used_ms = 0;
    child.limit_ms = limit_ms;
    timer_set(TICK_MS);
}

static void phase_end(void)
{
    child.limit_ms = 0;
    child.running = NULL;
    timer_set(0);
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

static void words_put(const char *text)
{
    const char *end;
    size_t len;

    if (child.words[0]) {
        return; /* the first error explains the later ones */
    }
    if (strncmp(text, "jq: error: ", 11) == 0) {
        text += 11;
    }
    end = strstr(text, " (Unix shell quoting issues?)"); /* jq guesses at a cause that does not apply here */
    end = end ? end : strstr(text, " at <top-level>");
    len = end ? (size_t)(end - text) : strcspn(text, "\n");
    snprintf(child.words, sizeof(child.words), "%.*s", len < 300 ? (int)len : 300, len ? text : "error");
}

static void on_jq_message(void *context, jv message)
{
    (void)context;
    if (jv_get_kind(message) == JV_KIND_STRING) {
        words_put(jv_string_value(message));
    }
    jv_free(message);
}

/* --- fromjson and tonumber (io/process/jq_guard.c): `debug` brings what is asked, `input` takes the answer
 * --------------- */

static void on_jq_debug(void *context, jv message)
{
    (void)context;
    jv_free(child.asked);
    child.asked = message;
}

static jv asked_answer(jv asked, const char *name, jv (*read)(struct slice text, struct jq_marks *marks),
                       const char *words)
{
    jv text = jv_object_get(asked, jv_string(name)), value;

    if (jv_get_kind(text) != JV_KIND_STRING) {
        jv_free(text);
        return jv_invalid();
    }
    /* Marked text stays borrowed until the evaluation is over. */
    value = read(arena_slice(&child.marks->arena,
                             (struct slice){jv_string_value(text), (size_t)jv_string_length_bytes(jv_copy(text))}),
                 child.marks);
    if (!jv_is_valid(value)) {
        jv_free(value);
        value = jv_invalid_with_msg(jv_string_fmt(words, jv_string_value(text)));
    }
    jv_free(text);
    return value;
}

static jv on_jq_input(jq_state *jq, void *context)
{
    jv asked = child.asked;

    (void)jq;
    (void)context;
    child.asked = jv_null();
    if (jv_get_kind(asked) != JV_KIND_OBJECT || !child.marks) {
        jv_free(asked);
        return jv_invalid();
    }
    if (jv_object_has(jv_copy(asked), jv_string("tonumber"))) {
        return asked_answer(asked, "tonumber", jq_value_number, "string (\"%.40s\") cannot be parsed as a number");
    }
    return asked_answer(asked, "fromjson", jq_value_read, "string (\"%.40s\") is no JSON");
}

static jq_state *program_compile(const char *text)
{
    jq_state *jq;

    child.words[0] = '\0';
    phase_begin(COMPILE_MS);
    jq = jq_init();
    CHECK(jq);
    jq_set_error_cb(jq, on_jq_message, NULL);
    jq_set_debug_cb(jq, on_jq_debug, NULL);
    jq_set_input_cb(jq, on_jq_input, NULL); /* without the callback `input` jumps to a null pointer */
    jq_set_nomem_handler(jq, on_no_memory, NULL);
    /* Without these attributes an import ends the process. */
    jq_set_attr(jq, jv_string("JQ_ORIGIN"), jv_string("/nonexistent"));
    jq_set_attr(jq, jv_string("PROGRAM_ORIGIN"), jv_string("/nonexistent"));
    jq_set_attr(jq, jv_string("JQ_LIBRARY_PATH"), jv_array());
    if (!jq_compile(jq, text)) {
        words_put("error");
        jq_teardown(&jq);
        jq = NULL;
    }
    phase_end();
    return jq;
}

static char *program_text(const char *prefix, struct slice text, const char *suffix)
{
    size_t prefix_len = strlen(prefix), suffix_len = strlen(suffix);
    char *out = memory_alloc(prefix_len + text.len + suffix_len + 1);

    memcpy(out, prefix, prefix_len);
    memcpy(out + prefix_len, text.ptr, text.len);
    memcpy(out + prefix_len + text.len, suffix, suffix_len);
    return out;
}

static jq_state *program_compile_in(const char *prefix, struct slice text, const char *suffix)
{
    char *whole = program_text(prefix, text, suffix);
    jq_state *jq = program_compile(whole);

    free(whole);
    return jq;
}

static enum err_code does_not_compile(struct err *err)
{
    (void)err_set(err, ERR_INVALID, "the expression does not compile");
    err_detail(err, "%s", child.words);
    return ERR_INVALID;
}

static void program_drop(struct program *program)
{
    (void)map_remove(&child.by_text, program->text.ptr, program->text.len); /* the map returns the program itself */
    list_remove(&child.programs, &program->link);
    jq_teardown(&program->jq);
    free((char *)program->text.ptr);
    free(program);
}

static bool program_is_text(struct slice text, struct err *err)
{
    if (text.len > PROGRAM_BYTES_MAX) {
        (void)err_set(err, ERR_INVALID, "the expression is longer than %zu bytes", PROGRAM_BYTES_MAX);
        return false;
    }
    if (slice_trim(text).len == 0) {
        (void)err_set(err, ERR_INVALID, "the expression is empty");
        err_hint(err, "write \".\" for the whole input");
        return false;
    }
    if (memchr(text.ptr, '\0', text.len)) {
        (void)err_set(err, ERR_INVALID, "the expression holds a NUL byte");
        return false;
    }
    return true;
}

static struct program *program_get(struct slice text, struct err *err)
{
    struct program *program = map_find(&child.by_text, text.ptr, text.len);
    jq_state *jq;

    if (program) {
        list_remove(&child.programs, &program->link);
        list_push(&child.programs, &program->link);
        return program;
    }
    if (!program_is_text(text, err)) {
        return NULL;
    }
    jq = program_compile_in(jq_guard_prefix, text, jq_guard_suffix);
    if (!jq) {
        (void)does_not_compile(err);
        return NULL;
    }
    if (child.programs.count == PROGRAMS_MAX) {
        program_drop(LIST_ITEM(list_first(&child.programs), struct program, link));
    }
    program = memory_alloc(sizeof(*program));
    program->text = (struct slice){program_text("", text, ""), text.len};
    program->jq = jq;
    list_push(&child.programs, &program->link);
    map_put(&child.by_text, program->text.ptr, program->text.len, program);
    return program;
}

/* Writes the sentence about a refused name, when the message of jq is about one. */
static bool refused_name(struct err *err)
{
    const char *name = strncmp(child.words, JQ_GUARD_UNKNOWN, strlen(JQ_GUARD_UNKNOWN)) == 0
                           ? child.words + strlen(JQ_GUARD_UNKNOWN)
                           : NULL;
    size_t len = name ? strcspn(name, "/") : 0;

    if (len == 0) {
        return false;
    }
    (void)err_set(err, ERR_INVALID, "`%.*s` is not available in expressions", (int)len, name);
    err_detail(err, "%s", jq_guard_reason(name, len));
    return true;
}

/*
 * Registration compiles a program twice. First it is compiled alone, with all refused names unknown, because text like
 * "1) + (2" is an expression only between our parentheses. Then it is compiled in the form that is evaluated.
 */
static enum err_code program_check(struct slice text, struct err *err)
{
    jq_state *jq;

    if (!program_is_text(text, err)) {
        return err->code;
    }
    if (jq_guard_names_env(text.ptr, text.len)) {
        (void)err_set(err, ERR_INVALID, "`$ENV` is not available in expressions");
        err_detail(err, "%s", jq_guard_reason("env", 3));
        return err->code;
    }
    jq = program_compile_in(jq_guard_check_prefix, text, "");
    if (!jq) {
        return refused_name(err) ? err->code : does_not_compile(err);
    }
    jq_teardown(&jq);
    jq = program_compile_in(jq_guard_prefix, text, jq_guard_suffix);
    if (!jq) {
        return does_not_compile(err);
    }
    jq_teardown(&jq);
    return ERR_OK;
}

/*
 * Compiling costs the same for one program as for many, because libjq reads its own definitions anew each time. So as
 * many as fit are compiled together, each in its parentheses. Returns how many these are. When they are not all good,
 * each has to be checked alone.
 */
static uint32_t programs_check_together(const uint32_t *lengths, uint32_t count, const char *bytes, bool *good)
{
    struct buffer together;
    struct err err;
    jq_state *jq = NULL;
    uint32_t n = 0;

    buffer_init(&together, 2 * TOGETHER_BYTES_MAX);
    buffer_put_text(&together, jq_guard_check_prefix);
    for (size_t len = 0; n < count && (len += lengths[n]) <= TOGETHER_BYTES_MAX; bytes += lengths[n++]) {
        struct slice text = {bytes, lengths[n]};

        if (!program_is_text(text, &err) || jq_guard_names_env(bytes, text.len) ||
            !jq_guard_is_closed(bytes, text.len)) {
            break;
        }
        buffer_put_text(&together, n > 0 ? ",(" : "(");
        buffer_put_slice(&together, text);
        buffer_put_text(&together, ")");
    }
    if (n > 0 && !together.overflow) {
        jq = program_compile(buffer_c(&together));
    }
    buffer_fini(&together);
    *good = jq != NULL;
    if (jq) {
        jq_teardown(&jq);
    }
    return n;
}

static enum err_code programs_check(const struct jq_wire_request *r, const uint32_t *lengths, const char *bytes,
                                    struct err *err)
{
    uint32_t tried = 0;
    bool good = false;

    for (uint32_t i = 0; i < r->count && err->code == ERR_OK; i++) {
        child.index = i;
        if (i >= tried && !r->careful) {
            tried = i + programs_check_together(lengths + i, r->count - i, bytes, &good);
        }
        if (i >= tried || !good) {
            (void)program_check((struct slice){bytes, lengths[i]}, err); /* also in err */
        }
        bytes += lengths[i];
    }
    return err->code;
}

/* --- running ------------------------------------------------------------------------------------------------- */

enum run_end { RUN_GOOD, RUN_NONE, RUN_MORE, RUN_FAILED, RUN_TOUCHED, RUN_NOT_WRITTEN };

/* Runs a program over an input, which is consumed, and appends the JSON of its one value. After RUN_FAILED, child.words
 * holds the reason. */
static enum run_end program_run(jq_state *jq, jv input, const struct jq_wire_request *r, struct buffer *output,
                                enum jq_written *written)
{
    jv result = jv_invalid(), next = jv_invalid();
    enum run_end end;
    int values = 0;

    child.words[0] = '\0';
    jq_start(jq, input, 0);
    child.running = jq;
    jq_marks_watch();
    while (values < 2 && (jv_free(next), next = jq_next(jq), jv_is_valid(next))) {
        jv_free(result);
        result = jv_copy(next);
        values++;
    }
    end = values == 0 ? RUN_NONE : values == 1 ? RUN_GOOD : RUN_MORE;
    if (jq_marks_touched(child.marks)) {
        end = RUN_TOUCHED;
    } else if (values < 2 && jv_invalid_has_msg(jv_copy(next))) {
        jv message = jv_invalid_get_msg(jv_copy(next));

        message = jv_get_kind(message) == JV_KIND_STRING ? message : jv_dump_string(message, 0);
        words_put(jv_string_value(message));
        jv_free(message);
        end = RUN_FAILED;
    }
    jv_free(next);
    child.running = NULL; /* nothing looks at a request to halt from here on */
    child.ends = values == 2 || child.halted;
    if (end != RUN_GOOD || child.halted) {
        jv_free(result);
        return end;
    }
    *written = jq_value_write(result, child.marks, r->output_bytes_max, output);
    return *written == JQ_WRITTEN ? RUN_GOOD : RUN_NOT_WRITTEN;
}

static enum err_code not_written(enum jq_written written, const struct jq_wire_request *r, struct err *err)
{
    switch (written) {
    case JQ_WRITTEN_TOO_LARGE:
        return err_set(err, ERR_TOO_LARGE, "the value of the expression is larger than %llu bytes",
                       (unsigned long long)r->output_bytes_max);
    case JQ_WRITTEN_TOO_DEEP:
        (void)err_set(err, ERR_INVALID, "the value of the expression cannot be kept");
        err_detail(err, "it has too many arrays and objects in each other");
        return ERR_INVALID;
    case JQ_WRITTEN_NO_NUMBER:
        (void)err_set(err, ERR_INVALID, "the value of the expression cannot be kept");
        err_detail(err, "it holds a number that is infinite, or too large for jq");
        return ERR_INVALID;
    case JQ_WRITTEN_NAN:
        (void)err_set(err, ERR_INVALID, "the value of the expression cannot be kept");
        err_detail(err, "it holds the result of a calculation that has none (NaN), such as 0 * infinite");
        return ERR_INVALID;
    case JQ_WRITTEN:
        break;
    }
    return ERR_OK;
}

static enum err_code run_error(enum run_end end, enum jq_written written, const struct jq_wire_request *r,
                               struct err *err)
{
    struct slice sample = child.marks->sample;

    if (child.halted &&
        (end != RUN_TOUCHED ||
         !sample.ptr)) { /* a loop over a rounded number may never end, so a touched number is reported instead */
        return err_set(err, ERR_TIMEOUT, "the expression ran longer than %lld ms", (long long)r->time_ms);
    }
    switch (end) {
    case RUN_GOOD:
        return ERR_OK;
    case RUN_NONE:
        (void)err_set(err, ERR_INVALID, "the expression gives no value");
        err_hint(err, "write \"// null\" behind it for null");
        return ERR_INVALID;
    case RUN_MORE:
        (void)err_set(err, ERR_INVALID, "the expression gives more than one value");
        err_hint(err, "put it in brackets for an array of them");
        return ERR_INVALID;
    case RUN_FAILED:
        (void)err_set(err, ERR_INVALID, "the expression failed");
        err_detail(err, "%s", child.words[0] ? child.words : "error");
        return ERR_INVALID;
    case RUN_TOUCHED:
        (void)err_set(err, ERR_INVALID, "the expression uses a number that jq would round");
        err_detail(err, "%.*s%s has more digits than jq calculates with: it can be copied, and not be used otherwise",
                   (int)(sample.len < 40 ? sample.len : 40), sample.ptr ? sample.ptr : "",
                   sample.len > 40 ? "..." : "");
        err_hint(err, "hand it over as text, or copy it as it is");
        return ERR_INVALID;
    case RUN_NOT_WRITTEN:
        return not_written(written, r, err);
    }
    return ERR_OK;
}

/* Runs the program once with one kind of marks. RUN_TOUCHED with JQ_MARK_SPELLING does not yet judge the program. */
static enum run_end program_try(struct program *program, struct slice input_json, enum jq_marking marking,
                                const struct jq_wire_request *r, struct buffer *output, struct err *err)
{
    struct jq_marks marks;
    size_t before = output->len;
    enum jq_written written = JQ_WRITTEN;
    enum run_end end = RUN_FAILED;
    jv input;

    jq_marks_init(&marks, marking);
    child.marks = &marks;
    phase_begin(COMPILE_MS);
    input = jq_value_read(input_json, &marks);
    phase_end();
    if (!jv_is_valid(input)) {
        jv_free(input);
        (void)err_set(err, ERR_INVALID, "the input of the expression is no JSON that jq can read");
    } else {
        phase_begin(r->time_ms);
        end = program_run(program->jq, input, r, output, &written);
        phase_end();
        bool says_nothing = end == RUN_TOUCHED && marks.spelling_count > 0;

        if (says_nothing && child.ends) { /* the next helper begins with careful marks */
            (void)err_set(err, ERR_TIMEOUT, "the expression has not come to its end");
        }
        if (!says_nothing) {
            (void)run_error(end, written, r, err); /* also in err */
        }
        end = says_nothing && !child.ends ? RUN_TOUCHED : RUN_GOOD; /* judged */
    }
    if (err->code != ERR_OK || end == RUN_TOUCHED) {
        output->len = before;
    }
    if (!child.ends) {
        jq_start(program->jq, jv_null(), 0); /* frees what the program still holds */
    }
    child.marks = NULL;
    jq_marks_fini(&marks);
    return end;
}

static enum err_code program_evaluate(struct slice text, const struct jq_wire_request *r, struct slice input_json,
                                      struct buffer *output, struct err *err)
{
    struct program *program = program_get(text, err);
    size_t begin = output->len;
    uint32_t len = 0;

    if (!program) {
        return err->code;
    }
    buffer_put(output, &len, sizeof(len));
    if (r->careful || program_try(program, input_json, JQ_MARK_SPELLING, r, output, err) == RUN_TOUCHED) {
        (void)program_try(program, input_json, JQ_MARK_VALUE, r, output, err); /* also in err */
    }
    len = (uint32_t)(output->len - begin - sizeof(len));
    memcpy(output->ptr + begin, &len, sizeof(len));
    return err->code;
}

/* --- serving ------------------------------------------------------------------------------------------------- */

static enum err_code request_perform(const struct jq_wire_request *r, const uint32_t *lengths, const char *bytes,
                                     struct buffer *output, struct err *err)
{
    struct slice input_json = {bytes, r->input_bytes};

    bytes += r->input_bytes;
    if (r->check_only) {
        return programs_check(r, lengths, bytes, err);
    }
    for (uint32_t i = 0; i < r->count && err->code == ERR_OK; i++) {
        struct slice program = {bytes, lengths[i]};

        child.index = i;
        (void)program_evaluate(program, r, input_json, output, err); /* also in err */
        bytes += lengths[i];
    }
    return err->code;
}

/* Is the helper worn out? After a large request, malloc() returns the memory that it keeps. When that is not enough,
 * the next request gets a new helper. */
static bool is_worn_out(void)
{
    if (resident_bytes() <= child.base_bytes + KEPT_BYTES_MAX) {
        return false;
    }
    memory_give_back();
    return resident_bytes() > child.base_bytes + KEPT_BYTES_MAX;
}

static bool request_serve(void) /* returns false when the reader is gone or the helper is worn out */
{
    struct jq_wire_request r;
    struct jq_wire_answer answer;
    struct err err;
    struct buffer output;
    uint32_t *lengths;
    uint64_t total = 0;
    char *bytes;
    bool ok;

    if (!jq_wire_read(child.fd, &r, sizeof(r))) {
        return false;
    }
    lengths = memory_alloc((size_t)r.count * sizeof(*lengths) + 1);
    ok = jq_wire_read(child.fd, lengths, (size_t)r.count * sizeof(*lengths));
    for (uint32_t i = 0; ok && i < r.count; i++) {
        total += lengths[i];
    }
    bytes = memory_alloc((size_t)total + r.input_bytes + 1);
    ok = ok && jq_wire_read(child.fd, bytes, (size_t)total + r.input_bytes);
    memset(&answer, 0, sizeof(answer));
    memset(&err, 0, sizeof(err));
    buffer_init(&output, (size_t)r.count * ((size_t)r.output_bytes_max + sizeof(uint32_t)) + 1);
    if (ok) {
        answer.end = request_perform(&r, lengths, bytes, &output, &err) == ERR_OK ? JQ_WIRE_GOOD : JQ_WIRE_ERROR;
        answer.index = child.index;
        answer.last = child.ends || is_worn_out();
        ok = jq_wire_write(child.fd, &answer, sizeof(answer)) &&
             (answer.end == JQ_WIRE_GOOD ? jq_wire_write(child.fd, output.ptr, output.len)
                                         : jq_wire_write(child.fd, &err, sizeof(err)));
    }
    buffer_fini(&output);
    free(bytes);
    free(lengths);
    return ok && !answer.last;
}

static void limits_set(void)
{
    struct rlimit core = {0, 0};
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigset_t none;

    CHECK(setrlimit(RLIMIT_CORE, &core) == 0);
    sigemptyset(&none);
    CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer itself reserves terabytes of addresses */
    {
        struct rlimit space;
        FILE *statm = fopen("/proc/self/statm", "r");
        unsigned long pages = 0;

        if (statm && fscanf(statm, "%lu", &pages) == 1 && getrlimit(RLIMIT_AS, &space) == 0) {
            rlim_t wanted = (rlim_t)pages * 4096 + ADDRESS_BYTES_MORE;

            if (space.rlim_max == RLIM_INFINITY || space.rlim_max > wanted) {
                space.rlim_cur = space.rlim_max = wanted;
                CHECK(setrlimit(RLIMIT_AS, &space) == 0);
            }
        }
        if (statm) {
            (void)fclose(statm); /* the file was only read */
        }
    }
#endif
}

_Noreturn void jq_child_serve(int fd)
{
    child.fd = fd;
    child.statm_fd =
        open("/proc/self/statm",
             O_RDONLY | O_CLOEXEC); /* without /proc the process cannot see its memory, and only RLIMIT_AS bounds it */
    CHECK(jq_marks_work());
    child.asked = jv_null();
    limits_set();
    child.base_bytes = resident_bytes();
    list_init(&child.programs);
    map_init(&child.by_text);
    while (request_serve()) {
    }
    _exit(0);
}
