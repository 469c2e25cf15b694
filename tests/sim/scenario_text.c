/*
 * Reads and writes a scenario as text, one thing on each line and the definitions last. People keep such texts as
 * regressions and edit them. A text that is read and written again is the same, byte for byte.
 */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/sim/pg.h"

static const char *const act_names[ACT_KIND_COUNT] = {
    [ACT_START] = "start",       [ACT_START_AGAIN] = "start_again",
    [ACT_OPEN] = "open",         [ACT_CALL] = "call",
    [ACT_COMPLETE] = "complete", [ACT_SIGNAL] = "signal",
    [ACT_ABORT] = "abort",       [ACT_PAUSE] = "pause",
    [ACT_RESUME] = "resume",     [ACT_GET] = "get",
    [ACT_ASK] = "ask",
};

static const char *const fault_names[FAULT_KIND_COUNT] = {
    [FAULT_KILL] = "kill",
    [FAULT_FREEZE] = "freeze",
    [FAULT_DRAIN] = "drain",
    [FAULT_START] = "start",
    [FAULT_CUT] = "cut",
    [FAULT_SLOW] = "slow",
    [FAULT_ENGINE_CLOCK] = "engine_clock",
    [FAULT_PG_RESTART] = "pg_restart",
    [FAULT_PG_FAIL_OVER] = "pg_fail_over",
    [FAULT_PG_TERMINATE] = "pg_terminate",
    [FAULT_PG_SLOW] = "pg_slow",
    [FAULT_PG_CLOCK] = "pg_clock",
    [FAULT_COMMIT] = "commit",
    [FAULT_TOOLS] = "tools",
    [FAULT_PG_FULL] = "pg_full",
};

/* Finds the numbers of a scenario by name. Each one is a line `NAME NUMBER`. */
static bool scenario_number(struct scenario *s, const char *name, uint64_t *get, const uint64_t *set);

#define NUMBERS(X)                                                                                                     \
    X("seed", seed)                                                                                                    \
    X("nodes", node_count)                                                                                             \
    X("lease_ms", options.lease_ms)                                                                                    \
    X("park_after_ms", options.park_after_ms)                                                                          \
    X("sagas_max", options.sagas_max)                                                                                  \
    X("payload_bytes_max", options.payload_bytes_max)                                                                  \
    X("calls_max", options.calls_max)                                                                                  \
    X("key_look_ms", options.key_look_ms)                                                                              \
    X("writers", options.writers)                                                                                      \
    X("readers", options.readers)                                                                                      \
    X("bulk_rate", options.bulk_rate)                                                                                  \
    X("standbys", options.standbys)                                                                                    \
    X("sealing", options.sealing)                                                                                      \
    X("swarm", swarm)                                                                                                  \
    X("chaos_us", chaos_us)                                                                                            \
    X("commit_percent", commit_percent)                                                                                \
    X("tool_percent", tool_percent)

static const char *const numbers[] = {
#define X(name, member) name,
    NUMBERS(X)
#undef X
};

static bool scenario_number(struct scenario *s, const char *name, uint64_t *get, const uint64_t *set)
{
#define X(text, member)                                                                                                \
    if (strcmp(name, text) == 0) {                                                                                     \
        *get = (uint64_t)s->member;                                                                                    \
        if (set) {                                                                                                     \
            s->member = (__typeof__(s->member))*set;                                                                   \
        }                                                                                                              \
        return true;                                                                                                   \
    }
    NUMBERS(X)
#undef X
    return false;
}

/* --- writing --- */

void scenario_write(const struct scenario *scenario, struct buffer *out)
{
    struct scenario copy = *scenario;
    uint64_t value;

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        CHECK(scenario_number(&copy, numbers[i], &value, NULL));
        buffer_printf(out, "%s %llu\n", numbers[i], (unsigned long long)value);
    }
    for (uint32_t i = 0; i < scenario->act_count; i++) {
        const struct act *act = &scenario->acts[i];

        buffer_printf(out, "act %u %s at %lld node %u saga %u variant %u\n", (unsigned)act->id, act_names[act->kind],
                      (long long)act->at_us, (unsigned)act->node, (unsigned)act->saga, (unsigned)act->variant);
    }
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const struct mishap *fault = &scenario->faults[i];

        buffer_printf(out, "fault %s at %lld for %lld node %u variant %u\n", fault_names[fault->kind],
                      (long long)fault->at_us, (long long)fault->for_us, (unsigned)fault->node,
                      (unsigned)fault->variant);
    }
    for (uint32_t i = 0; i < scenario->point_count; i++) {
        buffer_printf(out, "point %llu %d\n", (unsigned long long)scenario->points[i].commit, scenario->points[i].fate);
    }
    buffer_put_text(out, "definitions\n");
    buffer_put_slice(out, scenario->definitions);
    buffer_put_char(out, '\n');
}

/* --- reading --- */

#define WORDS_MAX 12

struct line {
    struct slice words[WORDS_MAX];
    uint32_t count, number;
};

static void split(struct line *line, struct slice text)
{
    size_t at = 0;

    line->count = 0;
    while (at < text.len && line->count < WORDS_MAX) {
        size_t from = at;

        while (at < text.len && text.ptr[at] != ' ') {
            at++;
        }
        if (at > from) {
            line->words[line->count++] = (struct slice){text.ptr + from, at - from};
        }
        at++;
    }
}

/* Reads a number of 64 bits. Swarms and seeds may use all bits, which slice_to_i64() does not accept. */
static bool word_number(struct slice word, uint64_t *out)
{
    char text[32], *end;

    if (word.len == 0 || word.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    *out = text[0] == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    return *end == '\0';
}

/* Reads the number behind the word `name`. */
static bool number_after(const struct line *line, const char *name, uint64_t *out)
{
    for (uint32_t i = 1; i + 1 < line->count; i++) {
        if (slice_is(line->words[i], name)) {
            return word_number(line->words[i + 1], out);
        }
    }
    return false;
}

static bool word_of(struct slice word, const char *const *names, unsigned count, unsigned *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (slice_is(word, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_act(struct scenario *scenario, const struct line *line)
{
    uint64_t id, at, node, saga, variant;
    unsigned kind;

    if (line->count < 3 || scenario->act_count == ACTS_MAX || !word_number(line->words[1], &id) ||
        !word_of(line->words[2], act_names, ACT_KIND_COUNT, &kind) || !number_after(line, "at", &at) ||
        !number_after(line, "node", &node) || !number_after(line, "saga", &saga) ||
        !number_after(line, "variant", &variant)) {
        return false;
    }
    scenario->acts[scenario->act_count++] = (struct act){.kind = (enum act_kind)kind,
                                                         .id = (uint32_t)id,
                                                         .at_us = (int64_t)at,
                                                         .node = (uint32_t)node,
                                                         .saga = (uint32_t)saga,
                                                         .variant = (uint32_t)variant};
    return true;
}

static bool read_fault(struct scenario *scenario, const struct line *line)
{
    uint64_t at, length, node, variant;
    unsigned kind;

    if (line->count < 2 || scenario->fault_count == FAULTS_MAX ||
        !word_of(line->words[1], fault_names, FAULT_KIND_COUNT, &kind) || !number_after(line, "at", &at) ||
        !number_after(line, "for", &length) || !number_after(line, "node", &node) ||
        !number_after(line, "variant", &variant)) {
        return false;
    }
    scenario->faults[scenario->fault_count++] = (struct mishap){.kind = (enum fault_kind)kind,
                                                                .at_us = (int64_t)at,
                                                                .for_us = (int64_t)length,
                                                                .node = (uint32_t)node,
                                                                .variant = (uint32_t)variant};
    return true;
}

static bool read_point(struct scenario *scenario, const struct line *line)
{
    uint64_t commit, fate;

    if (line->count != 3 || scenario->point_count == COUNT_OF(scenario->points) ||
        !word_number(line->words[1], &commit) || !word_number(line->words[2], &fate) ||
        ((int64_t)fate < POINT_KILL_LATE || (int64_t)fate > COMMIT_LATE)) {
        return false;
    }
    scenario->points[scenario->point_count].commit = commit;
    scenario->points[scenario->point_count++].fate = (int)(int64_t)fate;
    return true;
}

static bool read_line(struct scenario *scenario, const struct line *line, struct arena *arena)
{
    uint64_t value, old;

    if (line->count == 0 || line->words[0].ptr[0] == '#') {
        return true;
    }
    if (slice_is(line->words[0], "act")) {
        return read_act(scenario, line);
    }
    if (slice_is(line->words[0], "fault")) {
        return read_fault(scenario, line);
    }
    if (slice_is(line->words[0], "point")) {
        return read_point(scenario, line);
    }
    return line->count == 2 && word_number(line->words[1], &value) &&
           scenario_number(scenario, arena_text(arena, line->words[0]), &old, &value);
}

enum err_code scenario_read(struct scenario *out, struct slice text, struct arena *arena, struct err *err)
{
    struct scenario scenario = {.options = {.lease_ms = 2000,
                                            .park_after_ms = 200,
                                            .sagas_max = 1000,
                                            .payload_bytes_max = 65536,
                                            .calls_max = 64,
                                            .writers = 1,
                                            .readers = 1},
                                .node_count = 1,
                                .chaos_us = 1000000};
    struct line line = {.number = 0};
    size_t at = 0;

    while (at < text.len) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;

        split(&line, (struct slice){text.ptr + at, len});
        line.number++;
        at += len + 1;
        if (line.count == 1 && slice_is(line.words[0], "definitions")) {
            break;
        }
        if (!read_line(&scenario, &line, arena)) {
            (void)err_set(err, ERR_MALFORMED, "line %u of the scenario cannot be read", (unsigned)line.number);
            err_hint(err, "Lines are NAME NUMBER, act ..., fault ..., point ...; a scenario that was written by this "
                          "program shows them all.");
            return ERR_MALFORMED;
        }
    }
    scenario.definitions =
        at < text.len ? arena_slice(arena, slice_trim((struct slice){text.ptr + at, text.len - at})) : SLICE_NONE;
    if (!scenario.definitions.ptr || json_check(scenario.definitions, &json_limits_default, err) != ERR_OK) {
        return err_set(err, ERR_MALFORMED,
                       "the definitions of the scenario, behind the line \"definitions\", are not JSON");
    }
    if (scenario.node_count < 1 || scenario.node_count > NODES_MAX) {
        return err_set(err, ERR_MALFORMED, "a scenario has 1 to %d nodes", NODES_MAX);
    }
    *out = scenario;
    return ERR_OK;
}
