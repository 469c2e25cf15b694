/* The command doctor: asks sagad how it and its database are, and tells a person what is wrong, and what to do. What
 * the answers mean is judged in doctor/diagnosis.h. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/doctor/diagnosis.h"
#include "tools/sagactl/doctor/look.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/saga_end.h"

const char help_doctor[] =
    "sagactl doctor [--database DSN]\n"
    "\n"
    "Says what is wrong with the service, its engines and its database, trouble first: what it is,\n"
    "where, and what to do. It looks at readiness, settings of PostgreSQL that lose work, clocks,\n"
    "the schema, history, engines and their shards, lags, connections and standbys. A warning is\n"
    "no trouble yet. What it may not see is \"unknown\": engines and the database are shown to an\n"
    "admin of the namespace \"*\".\n"
    "\n"
    "With --database it looks at PostgreSQL itself, as sagad would, also while no sagad runs: does\n"
    "a pooler or proxy between the two break sessions or transactions, is the schema there, may the\n"
    "role use it? A password goes into ~/.pgpass.\n"
    "\n"
    "Exit code 0: no trouble; 1: trouble; 5: no trouble seen, and something may not be seen; 6:\n"
    "nobody answers. It changes nothing.\n"
    "\n"
    "  sagactl doctor\n"
    "  sagactl doctor --database 'host=db dbname=sagad user=sagad'\n"
    "  sagactl doctor -o json --jq '.items[] | select(.state == \"trouble\") | .what'\n";

#define ANSWER_MS 10000
#define CHECK_WIDTH 11
#define TEXT_COLUMN 22 /* state, check, and the blanks behind them */

static int ask(struct ctl *ctl, const char *path, struct answer *answer)
{
    ctl->silent = true;
    int code = client_call(ctl, "GET", slice_of(path), SLICE_NONE, ANSWER_MS, &ctl->arena, answer);

    ctl->silent = false;
    return code;
}

/* Gives the exit code for a server that is not there, or is no sagad; EXIT_OK where it answers. */
static int look_at_server(struct ctl *ctl, struct diagnosis *d)
{
    struct answer answer;
    struct slice server = slice_of(ctl->server);

    (void)ask(ctl, "/readyz?verbose", &answer); /* 503 has an answer, too */
    if (answer.status == 0) {
        diagnosis_add(d, "server", FINDING_TROUBLE,
                      arena_printf(&ctl->arena, "nobody answers: %.*s", SLICE_ARG(answer.why)), server,
                      SLICE("start sagad, or name its address with --server; where it has ended, the last line of its "
                            "log says why (`journalctl -u sagad -n 20`)"));
        return EXIT_UNREACHABLE;
    }
    if ((answer.status != 200 && answer.status != 503) ||
        json_type(json_member(answer.body, "status")) != JSON_STRING) {
        diagnosis_add(
            d, "server", FINDING_TROUBLE, arena_printf(&ctl->arena, "what answers is no sagad: HTTP %d", answer.status),
            server, SLICE("name the address of sagad with --server; where a proxy answers, look at what is behind it"));
        return EXIT_FAILED;
    }
    diagnose_readiness(d, server, answer.body);
    return EXIT_OK;
}

/* Only `sagad dev --clock virtual` has this clock, and every other service answers with 404. */
static void look_at_clock(struct ctl *ctl, struct diagnosis *d)
{
    struct answer answer;

    d->has_virtual_clock = ask(ctl, "/v1/clock", &answer) == EXIT_OK &&
                           json_i64(json_member(answer.body, "ahead_ms"), &d->virtual_ahead_ms);
}

static void look_at_engines(struct ctl *ctl, struct diagnosis *d)
{
    struct answer answer;

    look_at_clock(ctl, d);
    int64_t asked_ms = now_ms();
    int code = ask(ctl, "/v1/engines", &answer);

    if (code == EXIT_OK) {
        diagnose_engines(d, answer.body, asked_ms, now_ms());
    } else if (code == EXIT_NOT_PERMITTED) {
        diagnosis_add(d, "database", FINDING_UNKNOWN,
                      SLICE("engines and the database were not looked at: this token may not see them"),
                      slice_of(ctl->server),
                      SLICE("give a token of an admin of the namespace \"*\" with --token-file"));
    } else {
        struct slice detail = show_member(ctl, answer.body, "detail");

        diagnosis_add(d, "database", FINDING_UNKNOWN,
                      arena_printf(&ctl->arena, "engines and the database were not looked at: %.*s",
                                   SLICE_ARG(detail.len       ? detail
                                             : answer.why.ptr ? answer.why
                                                              : SLICE("no answer"))),
                      slice_of(ctl->server), SLICE("mend what is named above, and ask again"));
    }
}

/* --- what is printed --- */

static struct slice as_json(struct ctl *ctl, const struct diagnosis *d)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (int state = 0; state < FINDING_STATE_COUNT; state++) {
        for (size_t i = 0; i < d->count; i++) {
            const struct finding *finding = &d->items[i];

            if ((int)finding->state == state) {
                json_object_begin(&w, NULL);
                json_write_text(&w, "state", finding_state_names[state]);
                json_write_text(&w, "check", finding->check);
                json_write_slice(&w, "what", finding->what);
                json_write_slice(&w, "where", finding->where);
                json_write_slice(&w, "do", finding->act.len ? finding->act : SLICE_NONE);
                json_object_end(&w);
            }
        }
    }
    json_array_end(&w);
    json_object_end(&w);
    struct slice text = arena_slice(&ctl->arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static void print_part(const char *label, struct slice text)
{
    (void)printf("%*s%s", TEXT_COLUMN, "", label);
    print_wrapped(text, TEXT_COLUMN + strlen(label), terminal_width());
}

static void print_finding(const struct ctl *ctl, const struct finding *finding)
{
    static const enum colour colours[FINDING_STATE_COUNT] = {[FINDING_TROUBLE] = COLOUR_RED,
                                                             [FINDING_WARNING] = COLOUR_YELLOW,
                                                             [FINDING_UNKNOWN] = COLOUR_YELLOW,
                                                             [FINDING_FINE] = COLOUR_GREEN};

    (void)printf("%s%-8s%s %-*s  ", colour_on(ctl, colours[finding->state]), finding_state_names[finding->state],
                 colour_off(ctl, colours[finding->state]), CHECK_WIDTH, finding->check);
    print_wrapped(finding->what, TEXT_COLUMN, terminal_width());
    if (finding->state != FINDING_FINE) {
        print_part("where: ", finding->where);
        print_part("do:    ", finding->act);
    }
}

static void print_diagnosis(struct ctl *ctl, const struct diagnosis *d)
{
    for (int state = 0; state < FINDING_STATE_COUNT; state++) {
        for (size_t i = 0; i < d->count; i++) {
            if ((int)d->items[i].state == state && ctl->output == OUTPUT_NAME) {
                if (state != FINDING_FINE) {
                    (void)puts(d->items[i].check);
                }
            } else if ((int)d->items[i].state == state) {
                print_finding(ctl, &d->items[i]);
            }
        }
    }
}

static int judge(const struct diagnosis *d, int code)
{
    return code != EXIT_OK                           ? code
           : diagnosis_count(d, FINDING_TROUBLE) > 0 ? EXIT_FAILED
           : diagnosis_count(d, FINDING_UNKNOWN) > 0 ? EXIT_NOT_PERMITTED
                                                     : EXIT_OK;
}

int cmd_doctor(struct ctl *ctl, int argc, char **argv)
{
    const char *dsn = NULL;
    const struct option options[] = {{"--database", &dsn, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments none;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count > 0) {
        return usage_error(ctl, "doctor takes no arguments");
    }
    struct diagnosis *d = arena_alloc(&ctl->arena, sizeof(*d));

    d->ctl = ctl;
    d->where = slice_of(ctl->server);
    int code = look_at_server(ctl, d);

    if (dsn) {
        d->where = SLICE("--database");
        look_at_database(d, dsn);
    } else if (code == EXIT_OK) {
        look_at_engines(ctl, d);
    }
    if (ctl->output == OUTPUT_DATA || ctl->jq) {
        print_data(ctl, as_json(ctl, d));
    } else {
        print_diagnosis(ctl, d);
    }
    return judge(d, code);
}
