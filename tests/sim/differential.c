/* Plays one script of differential.h: decides who does what next, and writes the results line by line. */
#include "tests/sim/differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"

enum { LINES_BYTES_MAX = 1024 * 1024, LINE_ROWS_MAX = 4096, STEPS_MAX = 400 };

struct actor {
    struct transaction transactions[TRANSACTIONS];
    size_t transaction_count, next;
    struct transaction *running;
    struct buffer lines; /* the lines of the running statement */
    int gates[TRANSACTIONS * QUERIES];
    size_t gate_count, gates_open;
    enum actor_state state;
    bool over;
};

static struct actor actors[ACTORS];
static struct arena arena;
static struct buffer notifications;
static struct buffer *transcript;
static bool deadlocked;

/* --- values as text --- */

static void put_bytes_text(struct buffer *out, struct slice bytes)
{
    buffer_put_char(out, '\'');
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];

        if (c < ' ' || c > '~') {
            buffer_printf(out, "\\%02x", c);
        } else {
            buffer_put_char(out, (char)c);
        }
    }
    buffer_put_char(out, '\'');
}

/* The sides have other clocks: `t` is never one of them, `m` may be, and `c` may be, and is told exactly where it is
 * not. */
static void put_time_text(struct buffer *out, int64_t ms, char type)
{
    bool is_future = ms > side_clock_ms() + 60000, is_past = ms < side_clock_ms() - 3600000;

    if (ms == INT64_MIN || ms == INT64_MAX) {
        buffer_put_text(out, ms == INT64_MIN ? "-infinity" : "infinity");
    } else if (type == 't' || (type == 'c' && (is_future || is_past))) {
        buffer_printf(out, "%+lld", (long long)(ms - T0_MS));
    } else {
        buffer_put_text(out, is_future ? "future" : is_past ? "past" : "now");
    }
}

static void put_value(struct buffer *out, const struct db_rows *rows, size_t row, int column, char type)
{
    char text[UUID_TEXT_BYTES];
    struct uuid id;

    if (type == 'v') {
        buffer_put_char(out, '-');
        return;
    }
    if (db_is_null(rows, row, column)) {
        buffer_put_char(out, '~');
        return;
    }
    switch (type) {
    case 'i':
        buffer_printf(out, "%lld", (long long)db_int(rows, row, column));
        return;
    case 'n':
        buffer_put_text(out, db_int(rows, row, column) < 0 ? "minus" : db_int(rows, row, column) > 0 ? "plus" : "zero");
        return;
    case 'u':
    case 'x':
        id = db_uuid(rows, row, column);
        uuid_text(&id, text);
        buffer_put_text(out, type == 'x' && uuid_v7_ms(&id) > T0_MS + INT64_C(1000000000) && uuid_v7_ms(&id) < FAR_MS
                                 ? "new"
                                 : text);
        return;
    case 'b':
        put_bytes_text(out, db_bytes(rows, row, column));
        return;
    case 't':
    case 'm':
    case 'c':
        put_time_text(out, db_timestamptz(rows, row, column), type);
        return;
    }
    UNREACHABLE();
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Writes rows. Rows between masked ids may come in any order, so they are sorted by their text. */
static void put_rows(struct buffer *out, const struct kind *kind, const struct db_rows *rows)
{
    size_t count = db_row_count(rows);
    char **lines = memory_alloc((count + 1) * sizeof(*lines));
    size_t masked_from = count;

    CHECK(count < LINE_ROWS_MAX);
    for (size_t row = 0; row < count; row++) {
        struct buffer line;

        buffer_init(&line, LINES_BYTES_MAX);
        for (int column = 0; kind->columns[column]; column++) {
            buffer_put_text(&line, column > 0 ? " " : "");
            put_value(&line, rows, row, column, kind->columns[column]);
        }
        if (strstr(buffer_c(&line), "new") && masked_from == count) {
            masked_from = row;
        }
        lines[row] = strdup(buffer_c(&line));
        buffer_fini(&line);
    }
    if (kind->unordered) {
        masked_from = 0;
    }
    if (count > masked_from) {
        qsort(lines + masked_from, count - masked_from, sizeof(*lines), by_text);
    }
    for (size_t row = 0; row < count; row++) {
        buffer_printf(out, "    %s\n", lines[row]);
        free(lines[row]);
    }
    free(lines);
    if (kind->affects) {
        buffer_printf(out, "    affected %lld\n", (long long)db_affected(rows));
    }
}

/* --- what the sides tell --- */

void actor_rows(size_t actor, size_t query, const struct db_rows *rows)
{
    struct actor *a = &actors[actor];
    const struct kind *kind = a->running->kinds[query];

    if (kind != &gate_kind) {
        buffer_printf(&a->lines, "  %zu %s\n", query, kind->statement->name);
        put_rows(&a->lines, kind, rows);
    }
}

void actor_over(size_t actor, enum db_outcome outcome, const char *sqlstate, size_t failed_query)
{
    struct actor *a = &actors[actor];

    if (outcome == DB_COMMITTED) {
        buffer_put_text(&a->lines, "  committed\n");
    } else {
        buffer_printf(&a->lines, "  refused %s at %zu\n", sqlstate, failed_query);
        deadlocked = deadlocked || strcmp(sqlstate, "40P01") == 0;
    }
    a->over = true;
}

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void actor_notified(struct slice channel, struct slice payload)
{
    buffer_printf(&notifications, "%.*s ", SLICE_ARG(channel));
    put_bytes_text(&notifications, payload);
    buffer_put_char(&notifications, '\n');
}

/* --- steps --- */

static void settle(void)
{
    enum actor_state states[ACTORS];

    side_settle(states);
    for (size_t i = 0; i < ACTORS; i++) {
        struct actor *a = &actors[i];

        if (a->over) {
            if (i > 0 && !deadlocked) {
                buffer_printf(transcript, " %zu:\n", i);
            }
            if (!deadlocked) { /* the two sides may choose different victims */
                buffer_put_slice(transcript, buffer_slice(&a->lines));
            }
            buffer_reset(&a->lines);
            a->over = false;
            a->running = NULL;
        } else if (a->running && states[i] != a->state && !deadlocked) {
            buffer_printf(transcript, " %zu: %s\n", i, states[i] == ACTOR_AT_GATE ? "is at a gate" : "waits");
        }
        a->state = states[i];
        CHECK((a->state == ACTOR_IDLE) == (a->running == NULL));
    }
}

static void submit(size_t actor, struct transaction *transaction)
{
    actors[actor].running = transaction;
    side_submit(actor, transaction);
}

/* Runs a statement in the controlling session, alone. */
static void control(const struct kind *kind, struct db_args *args)
{
    static struct transaction transaction;

    memset(&transaction, 0, sizeof(transaction));
    transaction_add(&transaction, kind, args);
    submit(0, &transaction);
    settle();
    CHECK(!actors[0].running); /* no other actor takes a gate that this session holds */
}

static void control_drawn(const struct kind *kind, struct chance *chance)
{
    struct db_args *args = db_args_new(&arena);

    kind->put(args, chance);
    control(kind, args);
}

static void put_gates(struct db_args *args, const int *gates, size_t count)
{
    db_arg_int4(args, GATE_CLASS);
    db_array_begin(args, DB_INT2, count);
    for (size_t i = 0; i < count; i++) {
        db_item_int(args, gates[i]);
    }
    db_array_end(args);
}

static void close_gates(int count)
{
    static const struct kind kind = {.statement = &sql_lease_lock, .columns = "ii"};
    struct db_args *args = db_args_new(&arena);
    int *gates = arena_array(&arena, (size_t)count + 1, sizeof(*gates));

    for (int i = 0; i < count; i++) {
        gates[i] = i + 1;
    }
    put_gates(args, gates, (size_t)count);
    control(&kind, args);
}

static void open_gate(struct actor *actor)
{
    static const struct kind kind = {.statement = &sql_lease_unlock, .columns = "i"};
    struct db_args *args = db_args_new(&arena);

    put_gates(args, &actor->gates[actor->gates_open++], 1);
    control(&kind, args);
}

static void open_all_gates(void)
{
    static const struct kind kind = {.statement = &sql_lease_unlock_all, .columns = "v"};

    control(&kind, NULL);
}

/* --- the script --- */

static void draw(uint64_t seed, struct chance *chance)
{
    int next_gate = 1;

    for (uint32_t i = 1; i < ACTORS; i++) {
        struct actor *a = &actors[i];

        a->transaction_count = i == 3 && chance_percent(chance, 40) ? 0 : 1 + chance_below(chance, TRANSACTIONS);
        for (uint32_t t = 0; t < a->transaction_count; t++) {
            int first = next_gate;

            transaction_draw(&a->transactions[t], &arena, seed, i, t, &next_gate);
            for (; first < next_gate; first++) {
                a->gates[a->gate_count++] = first;
            }
        }
    }
    close_gates(next_gate - 1);
}

/* Puts some rows first, one statement in each transaction. */
static void prepare(uint64_t seed)
{
    struct chance chance = chance_of(seed, 50, 0);
    size_t count = 4 + chance_below(&chance, 16);

    bool taken = chance_percent(&chance, 50);

    draw_begin(taken);
    if (taken) {
        control_drawn(&take_all_kind, &chance);
        control_drawn(&renew_all_kind, &chance);
    }
    if (chance_percent(&chance, 70)) {
        control_drawn(&start_all_kind, &chance);
        if (chance_percent(&chance, 50)) {
            control_drawn(&park_all_kind, &chance);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        static struct transaction drawn;
        int gate = 0;

        memset(&drawn, 0, sizeof(drawn));
        transaction_draw(&drawn, &arena, seed, 0, i, &gate);
        buffer_printf(transcript, "prepare %s\n", drawn.kinds[0]->statement->name);
        control(drawn.kinds[0], drawn.queries[0].args);
    }
}

static void describe(size_t actor, const struct transaction *transaction)
{
    buffer_printf(transcript, "%zu submits", actor);
    for (size_t i = 0; i < transaction->count; i++) {
        buffer_printf(transcript, " %s",
                      transaction->kinds[i] == &gate_kind ? "|" : transaction->kinds[i]->statement->name);
    }
    buffer_put_char(transcript, '\n');
}

/* Takes one of the possible next steps. Returns false when there is none. */
static bool step(struct chance *chance)
{
    size_t choices[2 * ACTORS], count = 0;

    for (size_t i = 1; i < ACTORS; i++) {
        if (!actors[i].running && actors[i].next < actors[i].transaction_count) {
            choices[count++] = i;
        }
        if (actors[i].running && actors[i].gates_open < actors[i].gate_count && actors[i].state == ACTOR_AT_GATE) {
            choices[count++] = ACTORS + i;
        }
    }
    if (count == 0) {
        return false;
    }
    size_t choice = choices[chance_below(chance, (uint32_t)count)];
    struct actor *a = &actors[choice % ACTORS];

    if (choice < ACTORS) {
        size_t gates_before = 0;

        for (size_t t = 0; t < a->next; t++) { /* the gates of a refused transaction are passed */
            for (size_t q = 0; q < a->transactions[t].count; q++) {
                gates_before += a->transactions[t].kinds[q] == &gate_kind;
            }
        }
        a->gates_open = gates_before;
        describe(choice, &a->transactions[a->next]);
        submit(choice, &a->transactions[a->next++]);
        settle();
    } else {
        buffer_printf(transcript, "gate of %zu\n", choice - ACTORS);
        open_gate(a);
    }
    return true;
}

static void dump(void)
{
    for (size_t i = 0; i < dump_count; i++) {
        buffer_printf(transcript, "table %s\n", dumps[i].statement->name);
        control(&dumps[i], NULL);
    }
}

/* Writes the notifications in the order of their text, because those of one commit may come in any order. The marker
 * comes last. */
static void dump_notifications(void)
{
    static const struct kind kind = {.statement = &sql_definition_notify, .columns = "v"};
    char *lines[LINE_ROWS_MAX], *rest = NULL;
    size_t count = 0;

    control(&kind, NULL);
    for (char *line = strtok_r((char *)(uintptr_t)buffer_c(&notifications), "\n", &rest); line && count < LINE_ROWS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        lines[count++] = line;
    }
    qsort(lines, count, sizeof(*lines), by_line);
    for (size_t i = 0; i < count; i++) {
        buffer_printf(transcript, "notified %s\n", lines[i]);
    }
}

void script_run(uint64_t seed, struct buffer *out)
{
    struct chance chance = chance_of(seed, 1, 0);
    int steps = 0;

    transcript = out;
    deadlocked = false;
    memset(actors, 0, sizeof(actors));
    arena_init(&arena, 256 * 1024);
    buffer_init(&notifications, LINES_BYTES_MAX);
    for (size_t i = 0; i < ACTORS; i++) {
        buffer_init(&actors[i].lines, LINES_BYTES_MAX);
    }
    side_begin();
    prepare(seed);
    draw(seed, &chance);
    while (!deadlocked && steps++ < STEPS_MAX && step(&chance)) {
    }
    if (deadlocked) {
        buffer_put_text(out, "deadlock\n");
    } else {
        dump_notifications();
        dump();
    }
    transcript = &notifications; /* the rest is not compared */
    open_all_gates();
    side_end();
    for (size_t i = 0; i < ACTORS; i++) {
        buffer_fini(&actors[i].lines);
    }
    buffer_fini(&notifications);
    arena_fini(&arena);
}
