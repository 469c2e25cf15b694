/* The command line of sagad: the table of commands, the global options and the help. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/language/members.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/help.h"
#include "tools/sagactl/watch.h"

#ifndef SAGAD_VERSION
#define SAGAD_VERSION "0.1.0"
#endif

const struct command commands[] = {
    {"check", "check definition files, offline; every fault with its place", help_check, cmd_check},
    {"prove", "play definition files through every failure point, offline", help_prove, cmd_prove},
    {"test", "play scenarios of sagas and say what differs, offline", help_test, cmd_test},
    {"record", "print what happened to a saga as a scenario for test", help_record, cmd_record},
    {"hammer", "say what a receiver does with repeats; no server is asked", help_hammer, cmd_hammer},
    {"graph", "print sagas as Graphviz or Mermaid text, offline", help_graph, cmd_graph},
    {"apply", "check definition files and register them, each all or nothing", help_apply, cmd_apply},
    {"diff", "say how definition files differ from what is registered", help_diff, cmd_diff},
    {"retire", "start no saga of a definition any more", help_retire, cmd_retire},
    {"start", "start a saga", help_start, cmd_start},
    {"call", "call a tool through the registry: once, however often asked", help_call, cmd_call},
    {"open", "open a saga whose steps are calls", help_open, cmd_open},
    {"complete", "end an open saga well", help_complete, cmd_complete},
    {"list", "list sagas, newest first", help_list, cmd_list, .can_watch = true, .has_namespaces = true},
    {"show", "show one saga as a timeline: steps, undo, what to do", help_show, cmd_show, .can_watch = true},
    {"log", "show the durable log of a saga, or follow it", help_log, cmd_log},
    {"wait", "wait until sagas have ended, or have a status", help_wait, cmd_wait},
    {"escalate", "ask a person about a saga now", help_escalate, cmd_escalate},
    {"abort", "cancel sagas and undo what was done", help_abort, cmd_abort},
    {"signal", "give a saga what a step of it waits for", help_signal, cmd_signal},
    {"pause", "let sagas begin nothing more, and stop their clocks", help_pause, cmd_pause},
    {"resume", "let sagas or runs go on that were paused", help_resume, cmd_resume},
    {"mend", "let running sagas go on with another version of a tool", help_mend, cmd_mend},
    {"rerun", "start an ended saga once more, as a saga of its own", help_rerun, cmd_rerun},
    {"hold", "keep a tool, a saga, a tag or a namespace from beginning", help_hold, cmd_hold},
    {"holds", "list what is held, or show one hold", help_holds, cmd_holds, .can_watch = true, .has_namespaces = true},
    {"release", "end holds: what waited goes on, at a pace", help_release, cmd_release},
    {"breaker", "open or close the breaker of a tool", help_breaker, cmd_breaker},
    {"approvals", "list what waits for a yes or no, or show one", help_approvals, cmd_approvals, .can_watch = true,
     .has_namespaces = true},
    {"approve", "approve, or refuse, what a saga asks for", help_approve, cmd_approve},
    {"cases", "list or count what waits for a person, or show one", help_escalations, cmd_escalations,
     .can_watch = true, .has_csv = true, .has_namespaces = true},
    {"escalations", "the same as cases", help_escalations, cmd_escalations, .can_watch = true, .has_csv = true,
     .has_namespaces = true},
    {"acknowledge", "say that you look at cases", help_acknowledge, cmd_acknowledge},
    {"assign", "say who is to answer cases", help_assign, cmd_assign},
    {"comment", "leave a comment with cases", help_comment, cmd_comment},
    {"preview", "say what each verb would lead to; nothing changes", help_preview, cmd_preview},
    {"resolve", "answer an escalation", help_resolve, cmd_resolve},
    {"bulk", "jobs that did a verb on many sagas: list, show, stop", help_bulk, cmd_bulk, .has_namespaces = true},
    {"operations", "list operations, or show one by its key", help_operations, cmd_operations, .can_watch = true,
     .has_namespaces = true},
    {"bypass", "sign one more execution of an operation off", help_bypass, cmd_bypass},
    {"cost", "say what an operation cost that shows cost_unknown", help_cost, cmd_cost},
    {"tools", "tools and their health at a glance, or show one", help_tools, cmd_tools, .can_watch = true,
     .has_namespaces = true},
    {"definitions", "list registered sagas, or show one", help_definitions, cmd_definitions, .has_namespaces = true},
    {"schedules", "sagas that the clock starts: make, list, hold, delete", help_schedules, cmd_schedules,
     .has_namespaces = true},
    {"stats", "counts by status, engines and their shards", help_stats, cmd_stats, .can_watch = true},
    {"top", "a live screen of what needs somebody", help_top, cmd_top, .is_live = true},
    {"settle", "say that what stands was undone, or never happened", help_settle, cmd_settle},
    {"debts", "list what stands although its saga ended", help_debts, cmd_debts, .has_namespaces = true},
    {"acts", "list who changed what, and what was refused", help_acts, cmd_acts, .can_watch = true,
     .has_namespaces = true},
    {"ready", "does the service take work? or wait until it does", help_ready, cmd_ready},
    {"doctor", "what is wrong with the service and its database, what to do", help_doctor, cmd_doctor},
    {"export", "copy definitions, ended sagas, cases and acts into a file", help_export, cmd_export},
    {"me", "whose token this is, and what it may do", help_me, cmd_me},
    {"events", "what people want to know of; --follow prints it as it comes", help_events, cmd_events,
     .has_namespaces = true},
    {"notifications", "what receivers have not confirmed; replay sends it again", help_notifications, cmd_notifications,
     .can_watch = true},
    {"engines", "engines on this database: shards, epochs, leases, lags", help_engines, cmd_engines, .can_watch = true},
    {"replay", "fold the durable log again and compare with the stored state", help_replay, cmd_replay},
    {"rekey", "put what is encrypted in a database under another key", help_rekey, cmd_rekey},
    {"time", "the clock of `sagad dev --clock virtual`: show it, move it ahead", help_time, cmd_time},
    {"console", "print a link that signs a browser in", help_console, cmd_console},
    {"browse", "print a link to one saga in the console", help_browse, cmd_browse},
    {"config", "keep servers under names", help_config, cmd_config},
    {"token", "make an access token", help_token, cmd_token},
    {"grants", "tokens for one agent and one run: list, make, revoke", help_grants, cmd_grants, .can_watch = true},
    {NULL, NULL, NULL, NULL},
};

static void print_help(void)
{
    (void)fputs("sagactl speaks to sagad, the engine that runs sagas.\n\n"
                "  sagactl COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands\n",
                stdout);
    for (const struct command *c = commands; c->name; c++) {
        (void)printf("  %-12s %s\n", c->name, c->summary);
    }
    (void)fputs("\nOptions everywhere\n"
                "  --server URL        where sagad is (SAGACTL_SERVER; " SERVER_DEFAULT ")\n"
                "  --context NAME      a server and its token, of `sagactl config`\n"
                "  --token TEXT        access token (SAGACTL_TOKEN); better in a file:\n"
                "  --token-file FILE   file that holds it (SAGACTL_TOKEN_FILE)\n"
                "  -n, --namespace NAME\n"
                "                      act in this namespace (SAGACTL_NAMESPACE); without it, in\n"
                "                      the first of the token\n"
                "  -A, --all-namespaces\n"
                "                      lists of all namespaces of the token\n"
                "  --ca-file FILE      PEM file of the authorities of an https server, instead of\n"
                "                      the system's (SAGACTL_CA_FILE)\n"
                "  --cert FILE, --key FILE\n"
                "                      PEM files of a client certificate and of its key\n"
                "                      (SAGACTL_CERT, SAGACTL_KEY)\n"
                "  -o table|wide|json|yaml|name\n"
                "                      how to print; data goes to stdout, talk to stderr\n"
                "  --jq PROGRAM        print what a jq program makes of the answer; texts bare\n"
                "  --watch, -w         of lists, show, stats, tools, engines: again every 2 s\n"
                "                      (--interval) until q; in a pipe each change is printed\n"
                "  --yes, -y           ask nothing before what cannot be taken back\n"
                "  --no-color          no colours, also by NO_COLOR\n"
                "  --help, --version\n"
                "\nSAGA is the id of a saga, 8 or more characters at the beginning of the id, or\n"
                "NAME/BUSINESS_ID: order/o-1. In a business id %2F is a slash and %25 a percent\n"
                "sign; an open saga has the name ~open, a run ~run.\n"
                "\nExit codes\n"
                "  0 ok   1 failed   2 usage   3 not found   4 conflict   5 not permitted\n"
                "  6 server unreachable   7 the wait is over   8 the saga ended compensated\n"
                "  9 the saga needs a person\n"
                "\nA first saga\n"
                "  sagactl check order.json\n"
                "  sagactl apply order.json\n"
                "  sagactl start order --input '{\"order_id\": \"o-1\"}' --wait 30s\n"
                "  sagactl show SAGA\n"
                "\n`sagactl COMMAND --help` tells more about each.\n",
                stdout);
}

static int no_command(const struct ctl *ctl, const char *name)
{
    const char *nearest = NULL;
    unsigned least = 3; /* edits from this number on mean another word */

    for (const struct command *c = commands; c->name; c++) {
        unsigned distance = word_distance(slice_of(name), slice_of(c->name));

        if (distance < least && distance < strlen(c->name)) {
            least = distance;
            nearest = c->name;
        }
    }
    return usage_error(ctl, "there is no command \"%s\"%s%s%s", name, nearest ? " (did you mean " : "",
                       nearest ? nearest : "", nearest ? "?)" : "");
}

static int run_command(struct ctl *ctl, int argc, char **argv)
{
    int64_t interval_ms = 0;
    int code = EXIT_OK;

    if ((ctl->command->can_watch || ctl->command->is_live) && watch_is_asked(ctl, &argc, argv, &interval_ms, &code)) {
        return watch(ctl, argc, argv, interval_ms);
    }
    return code == EXIT_OK ? ctl->command->run(ctl, argc, argv) : code;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
    bool help = false, version = false;
    int at = options_read_globals(ctl, argc, argv, &help, &version);

    if (at < 0) {
        return EXIT_USAGE;
    }
    if (version) {
        (void)puts("sagactl " SAGAD_VERSION);
        return EXIT_OK;
    }
    if (at < argc && strcmp(argv[at], "help") == 0) {
        help = true;
        at++;
    }
    if (at == argc) {
        if (help) {
            print_help();
            return EXIT_OK;
        }
        print_help();
        return EXIT_USAGE;
    }
    for (const struct command *c = commands; c->name; c++) {
        if (strcmp(argv[at], c->name) != 0) {
            continue;
        }
        if (help) {
            help_print(c->help);
            return EXIT_OK;
        }
        ctl->command = c;
        return run_command(ctl, argc - at - 1, argv + at + 1);
    }
    return no_command(ctl, argv[at]);
}

int main(int argc, char **argv)
{
    struct ctl ctl = {.program = "sagactl"};
    int code;

    (void)signal(SIGPIPE, SIG_IGN); /* fflush() below reports a reader that has left */
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    arena_init(&ctl.arena, 64 * 1024);
    code = run(&ctl, argc, argv);
    code = code == EXIT_OK && ctl.print_failed ? EXIT_FAILED : code;
    client_close(&ctl);
    arena_fini(&ctl.arena);
    if (fflush(stdout) != 0 && code == EXIT_OK) {
        code = EXIT_FAILED;
    }
    return code;
}
