/* The commands abort, pause, resume, mend, rerun and wait: they act on one saga or on several named ones. */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/instant.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/bulk.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/query.h"
#include "tools/sagactl/saga_end.h"
#include "tools/sagactl/saga_name.h"

#define ANSWER_MS 30000

const char help_abort[] = "sagactl abort SAGA... [--note TEXT] [--yes]\n"
                          "sagactl abort FILTERS --note TEXT [--dry-run] [--yes]   see `sagactl bulk --help`\n"
                          "\n"
                          "Cancels sagas: no further step starts, what is under way is settled, what took\n"
                          "effect is undone in reverse. A saga whose terminal step has completed cannot be\n"
                          "aborted any more (exit 4). A role above agent says why with --note.\n"
                          "On a terminal it asks first; --yes answers that. Without a terminal several at\n"
                          "once need --yes.\n"
                          "\n"
                          "  sagactl abort 019b3c52-... --note \"customer called\"\n"
                          "  sagactl abort order/o-1 order/o-2 --note \"sold out\" --yes\n";

const char help_escalate[] = "sagactl escalate SAGA... --note TEXT\n"
                             "sagactl escalate FILTERS --note TEXT [--dry-run] [--yes]   see `sagactl bulk --help`\n"
                             "\n"
                             "Asks a person now (role operator): opens a case about the operation that the saga\n"
                             "waits for, or about the saga itself. What is under way goes on, and nothing new\n"
                             "begins while the case is open. The case is closed when its operation is settled.\n"
                             "`sagactl cases` lists it; `sagactl resolve` answers it.\n"
                             "\n"
                             "  sagactl escalate order/o-1 --note \"the hotel has not answered for an hour\"\n";

const char help_pause[] = "sagactl pause SAGA... --note TEXT\n"
                          "sagactl pause FILTERS --note TEXT [--dry-run] [--yes]   see `sagactl bulk --help`\n"
                          "\n"
                          "Lets sagas begin nothing more, neither steps nor undo, and stops their clocks:\n"
                          "deadline, timeouts, retries (role operator). Calls under way settle; signals are\n"
                          "kept, and approvals may be decided. `sagactl resume` lets them go on;\n"
                          "`sagactl abort` undoes them.\n"
                          "\n"
                          "  sagactl pause 019b3c52-... --note \"the bank asked us to wait\"\n";

const char help_resume[] = "sagactl resume SAGA... --note TEXT\n"
                           "sagactl resume FILTERS --note TEXT [--dry-run] [--yes]   see `sagactl bulk --help`\n"
                           "\n"
                           "Lets sagas go on that were paused, by an operator or by a loop, or opens what a\n"
                           "loop has closed (role operator). Their deadlines and timeouts move by the time\n"
                           "that they stood still.\n"
                           "\n"
                           "  sagactl resume 019b3c52-... --note \"told the agent to stop polling\"\n"
                           "  sagactl list --status paused -o name | xargs sagactl resume --note \"bank is back\"\n";

const char help_mend[] =
    "sagactl mend SAGA... --tool NAME [--version N] --note TEXT [--accept-double]\n"
    "\n"
    "Has sagas that go on use version N of a registered tool (the newest without\n"
    "--version) from its next attempt or probe on (role operator). Keys stay as they are. Once a call of the tool has\n"
    "begun, version N must have the same class, rule for the key, compensator and\n"
    "`terminal`. While the outcome of a call is open it must have the same receiver,\n"
    "too: add --accept-double if a second effect is acceptable. A call that is under\n"
    "way is not cut off: say it again when the call has ended (exit 7).\n"
    "\n"
    "  sagactl apply hotel.json\n"
    "  sagactl mend trip/t-17 --tool hotel.book --version 2 --note \"its probe used POST\"\n"
    "With filters (--saga, --status, --id, --tag, --opened-since, --opened-until) it is a\n"
    "bulk job: shown first, then run.\n"
    "\n"
    "  sagactl mend --saga trip --status running --tool hotel.book --version 2 \\\n"
    "    --note \"its probe used POST\"\n";

const char help_rerun[] = "sagactl rerun SAGA --note TEXT [--version N] [--accept-standing STEP,...] [--key K]\n"
                          "\n"
                          "Starts an ended saga once more, as a saga of its own (role operator): the same\n"
                          "input, version N of its definition or the newest, and its business id with ~2, ~3\n"
                          "and so on. What the saga did and nobody undid has to be accepted step by step. While\n"
                          "a rerun is unfinished or has completed, another one is refused (exit 4). Give --key\n"
                          "whenever the command may be sent again: under the same key it is one rerun.\n"
                          "\n"
                          "With filters (--saga, --status, --tag, --opened-since, --opened-until) it is a bulk\n"
                          "job: shown first, then run.\n"
                          "\n"
                          "  sagactl rerun --saga trip --status compensated --opened-since 2h --note \"it is back\"\n"
                          "  sagactl rerun trip/t-17 --note \"the bank is back\"\n"
                          "  sagactl rerun trip/t-17 --accept-standing notify --note \"a second mail is fine\"\n"
                          "  sagactl list --tag rerun_of=019b3c52-...\n";

const char help_wait[] = "sagactl wait SAGA... [--for STATUS,...] [--timeout 5m]\n"
                         "\n"
                         "Waits until each saga has ended or needs a person. The exit code tells how, of\n"
                         "several the first that is not 0: 0 completed, 8 compensated, 9 needs a person,\n"
                         "1 abandoned, 7 the --timeout is over. Without --timeout it waits as long as it takes.\n"
                         "\n"
                         "--for waits for one of these statuses instead: 0 when it is reached, 1 when the\n"
                         "saga has completed without it, and the others as above.\n"
                         "\n"
                         "  sagactl wait order/o-1 --timeout 30s\n"
                         "  sagactl wait 019b3c52-... --for waiting,completed\n";

static bool has_note(const char *note)
{
    return note && slice_trim(slice_of(note)).len > 0;
}

static struct slice note_body(struct ctl *ctl, const char *note)
{
    struct buffer body;
    struct json_writer w;

    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    if (note) {
        json_write_text(&w, "note", note);
    }
    json_object_end(&w);
    struct slice text = arena_slice(&ctl->arena, buffer_slice(&body));

    buffer_fini(&body);
    return text;
}

/* Sends the verb for one saga after the other, because a refusal for one says nothing about the next. Returns the code
 * of the first failure. */
static int post_each(struct ctl *ctl, const struct arguments *ids, const char *verb, struct slice body)
{
    int first = EXIT_OK;

    for (size_t i = 0; i < ids->count; i++) {
        struct answer answer;
        struct slice path;
        int code = saga_path(ctl, ids->items[i], &path);

        if (code == EXIT_OK) {
            code = client_call(ctl, "POST", arena_printf(&ctl->arena, "%.*s/%s", SLICE_ARG(path), verb), body,
                               ANSWER_MS, &ctl->arena, &answer);
        }
        if (code == EXIT_OK) {
            print_saga_line(ctl, answer.body);
        } else if (ids->count > 1) {
            (void)fprintf(stderr, "  that was %s %s\n", verb, ids->items[i]);
        }
        first = first == EXIT_OK ? code : first;
        if (code == EXIT_UNREACHABLE || code == EXIT_NOT_PERMITTED) {
            return first; /* the next one would fail in the same way */
        }
    }
    return first;
}

int cmd_abort(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    bool helped = false;

    if (bulk_is_meant(argc, argv)) {
        return bulk_do(ctl, "abort", argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count == 0) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    int code = ids.count == 1 ? ask_first(ctl, 1, "Abort %s and undo what it did", ids.items[0])
                              : ask_first(ctl, ids.count, "Abort %zu sagas and undo what they did", ids.count);

    return code == EXIT_OK ? post_each(ctl, &ids, "abort", note_body(ctl, note)) : code;
}

/* --- pause, resume --- */

static int with_note(struct ctl *ctl, int argc, char **argv, const char *verb)
{
    const char *note = NULL;
    const struct option options[] = {{"--note", &note, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    bool helped = false;

    if (bulk_is_meant(argc, argv)) {
        return bulk_do(ctl, verb, argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count == 0) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (!has_note(note)) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    return post_each(ctl, &ids, verb, note_body(ctl, note));
}

int cmd_escalate(struct ctl *ctl, int argc, char **argv)
{
    return with_note(ctl, argc, argv, "escalate");
}

int cmd_pause(struct ctl *ctl, int argc, char **argv)
{
    return with_note(ctl, argc, argv, "pause");
}

int cmd_resume(struct ctl *ctl, int argc, char **argv)
{
    return with_note(ctl, argc, argv, "resume");
}

/* --- mend --- */

static int newest_version(struct ctl *ctl, const char *tool, int64_t *number)
{
    struct answer answer;
    int code =
        client_get(ctl, arena_printf(&ctl->arena, "/v1/tools/%.*s", SLICE_ARG(url_escape(slice_of(tool), &ctl->arena))),
                   &ctl->arena, &answer);

    if (code == EXIT_OK && !json_i64(json_member(answer.body, "version"), number)) {
        (void)fprintf(stderr, "sagactl: the service does not say which version of %s is the newest: --version N\n",
                      tool);
        code = EXIT_FAILED;
    }
    return code;
}

static struct slice mend_body(struct ctl *ctl, const char *tool, int64_t version, bool accept_double, const char *note)
{
    struct buffer body;
    struct json_writer w;

    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    json_write_text(&w, "tool", tool);
    json_write_i64(&w, "version", version);
    if (accept_double) {
        json_write_bool(&w, "accept_double", true);
    }
    json_write_text(&w, "note", note);
    json_object_end(&w);
    struct slice text = arena_slice(&ctl->arena, buffer_slice(&body));

    buffer_fini(&body);
    return text;
}

int cmd_mend(struct ctl *ctl, int argc, char **argv)
{
    const char *tool = NULL, *version = NULL, *note = NULL;
    bool accept_double = false, helped = false;
    const struct option options[] = {{"--tool", &tool, NULL, NULL},
                                     {"--version", &version, NULL, NULL},
                                     {"--accept-double", NULL, NULL, &accept_double},
                                     {"--note", &note, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    int64_t number = 0;

    if (bulk_is_meant_of_sagas(argc, argv)) {
        return bulk_do(ctl, "tools", argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count == 0) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (!tool || (version && (!slice_to_i64(slice_of(version), &number) || number < 1))) {
        return usage_error(ctl, "which tool? --tool NAME, and --version N unless it is the newest");
    }
    if (!has_note(note)) {
        return usage_error(ctl, "say why with --note TEXT: it stands in the log for ever");
    }
    int code = version ? EXIT_OK : newest_version(ctl, tool, &number);

    if (code != EXIT_OK) {
        return code;
    }
    return post_each(ctl, &ids, "tools", mend_body(ctl, tool, number, accept_double, note));
}

/* --- rerun --- */

static struct slice rerun_body(struct ctl *ctl, int64_t version, const char *standing, const char *note)
{
    struct buffer body;
    struct json_writer w;

    buffer_init(&body, 65536);
    json_writer_init(&w, &body);
    json_object_begin(&w, NULL);
    if (version) {
        json_write_i64(&w, "version", version);
    }
    if (standing) {
        body_put_names(&w, "accept_standing", standing);
    }
    json_write_text(&w, "note", note);
    json_object_end(&w);
    struct slice text = arena_slice(&ctl->arena, buffer_slice(&body));

    buffer_fini(&body);
    return text;
}

int cmd_rerun(struct ctl *ctl, int argc, char **argv)
{
    const char *version = NULL, *note = NULL, *standing = NULL;
    const struct option options[] = {{"--version", &version, NULL, NULL},
                                     {"--accept-standing", &standing, NULL, NULL},
                                     {"--key", &ctl->emission, NULL, NULL},
                                     {"--note", &note, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    int64_t number = 0;
    bool helped = false;

    if (bulk_is_meant(argc, argv)) {
        return bulk_do(ctl, "rerun", argc, argv);
    }
    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count != 1) {
        return usage_error(ctl, ids.count ? "one saga at a time" : "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (version && (!slice_to_i64(slice_of(version), &number) || number < 1)) {
        return usage_error(ctl, "--version is a whole number from 1 on, not \"%s\"", version);
    }
    if (!has_note(note)) {
        return usage_error(ctl, "say why with --note TEXT: it stands beside the saga for ever");
    }
    if (!ctl->emission) {
        char *key = arena_alloc(&ctl->arena, UUID_TEXT_BYTES);
        struct uuid made = uuid_v7(now_ms());

        uuid_text(&made, key);
        ctl->emission = key;
    }
    return post_each(ctl, &ids, "rerun", rerun_body(ctl, number, standing, note));
}

/* --- wait --- */

/* Returns 0 when the saga reached an awaited status, otherwise the code of its status. A saga that completed without
 * the awaited status counts as failed. */
static int waited_code(struct slice saga, const char *statuses)
{
    int code = saga_exit_code(saga);

    if (!statuses) {
        return code;
    }
    return saga_is_one_of(saga, statuses) ? EXIT_OK : code == EXIT_OK ? EXIT_FAILED : code;
}

static int wait_for(struct ctl *ctl, const char *name, const char *statuses, int64_t wait_ms)
{
    struct answer answer;
    struct slice path;
    int code = saga_path(ctl, name, &path);

    code = code == EXIT_OK ? client_get(ctl, path, &ctl->arena, &answer) : code;
    if (code != EXIT_OK) {
        return code;
    }
    struct slice saga = answer.body;

    code = saga_await(ctl, show_member(ctl, saga, "id"), wait_ms, statuses, &saga);
    if (code != EXIT_OK) {
        return code;
    }
    print_saga_line(ctl, saga);
    if (saga_exit_code(saga) == EXIT_NEEDS_PERSON) {
        (void)fprintf(stderr, "It needs a person: sagactl show %.*s\n", SLICE_ARG(show_member(ctl, saga, "id")));
    } else if (saga_has_ended(saga) && saga_why(ctl, saga).len > 0) {
        (void)fprintf(stderr, "%.*s\n", SLICE_ARG(saga_why(ctl, saga)));
    }
    return waited_code(saga, statuses);
}

int cmd_wait(struct ctl *ctl, int argc, char **argv)
{
    const char *statuses = NULL, *timeout = NULL;
    const struct option options[] = {
        {"--for", &statuses, NULL, NULL}, {"--timeout", &timeout, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments ids;
    int64_t wait_ms = SAGA_WAIT_FOREVER_MS;
    bool helped = false;
    int first = EXIT_OK;

    if (!options_read(ctl, argc, argv, options, &ids, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (ids.count == 0) {
        return usage_error(ctl, "which saga? its id, or NAME/BUSINESS_ID");
    }
    if (timeout && !duration_parse(slice_of(timeout), &wait_ms)) {
        return usage_error(ctl, "--timeout is a duration such as 30s, not \"%s\"", timeout);
    }
    if (statuses && !saga_statuses_are_good(statuses)) {
        return usage_error(ctl, "--for takes running, waiting, paused, compensating, escalated, completed, compensated "
                                "or abandoned, several with commas");
    }
    int64_t until_ms = now_ms() + wait_ms;

    for (size_t i = 0; i < ids.count; i++) {
        int64_t left_ms = until_ms - now_ms();
        int code = wait_for(ctl, ids.items[i], statuses, left_ms > 0 ? left_ms : 0);

        first = first == EXIT_OK ? code : first;
    }
    return first;
}
