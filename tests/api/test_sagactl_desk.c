/* What people on call ask of sagactl: other outputs, waiting, several sagas at once, questions. Tested against the API
 * over a fake engine; the first argument is the path of the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/json.h"
#include "tests/api/program_run.h"
#include "tests/lib/test.h"

static const struct program_case cases[] = {
    {"list -o toml", 2, "table, wide, json, yaml or name"},
    {"start quick --id y-1 --input {\"a\":12.50,\"zip\":\"01234\"} -o yaml", 0,
     "\ninput:\n  a: 12.50\n  zip: \"01234\"\n"},
    {"show quick/y-1 -o yaml", 0, "business_id: y-1\n"},
    {"show quick/y-1 --jq .input.a", 0, "12.50\n"},
    {"show quick/y-1 --jq .business_id", 0, "y-1\n"},
    {"show quick/y-1 --jq .input", 0, "{\"a\":12.50,\"zip\":\"01234\"}\n"},
    {"list --jq '.items[] | .id, .saga # all'", 0, "quick\n"},
    {"list --jq '.items[] | select(false)'", 0, ""},
    {"list --version 1,2 --id-prefix order- --group-by status", 0, "waiting  "},
    {"list --group-by saga", 1, "--group-by is status"},
    {"list --group-by status -o name", 2, "groups have no names"},
    {"list -A --group-by status", 2, "counts are of one namespace"},
    {"list --jq .items[", 2, "--jq"},
    {"list --jq '.items | keys'", 0, "[0"},
    {"list --jq '.items | .x'", 1, "--jq"},
    {"list --jq . -o name", 2, "leave -o name out"},
    {"ready now", 2, "no arguments"},
    {"ready --wait soon", 2, "60s"},
    {"ready --server http://127.0.0.1:1", 6, "cannot be reached"},
    {"doctor now", 2, "no arguments"},
    {"doctor --server http://127.0.0.1:1", 6, "nobody answers: "},
    {"doctor", 1, "nobody holds 1 of the shards"},
    {"doctor -o json --jq '.items[] | select(.check == \"settings\") | .state'", 1, "fine"},
    {"ready -o json", 0, "\"leases\":true"},
    {"wait", 2, "which saga"},
    {"wait x --timeout soon", 2, "30s"},
    {"wait x --for done", 2, "--for takes running"},
    {"wait x --for ''", 2, "--for takes running"},
    {"wait quick/y-1", 0, "completed"},
    {"wait quick/none", 3, "no such thing"},
    {"wait quick/y-1 --for completed,waiting", 0, "completed"},
    {"wait quick/y-1 --for escalated", 1, "completed"},
    {"start stuck --id w-1", 0, ""},
    {"wait stuck/w-1 --timeout 5s", 9, "needs a person"},
    {"wait stuck/w-1 --for escalated", 0, "escalated"},
    {"start slow --id w-2", 0, ""},
    {"wait slow/w-2 --timeout 200ms", 7, "running"},
    {"wait slow/w-2 --for running", 0, "running"},
    {"wait slow/w-2 --for completed --timeout 400ms", 7, "running"},
    {"wait quick/y-1 stuck/w-1 slow/w-2 --timeout 200ms", 9, "completed"},
    {"start quick --id 2026/w-3", 0, ""},
    {"wait quick/2026/w-3", 0, "completed"},
    {"wait quick/2026%2Fw-3 --for completed", 0, "completed"},
    {"wait quick/2026/w-4", 3, "no such thing"},
    {"start quick --id a%2Fb", 0, ""},
    {"wait quick/a%252Fb", 0, "completed"},
    {"wait quick/a/b", 3, "no such thing"},
    {"pause slow/w-2 quick/none stuck/w-1 --note x", 3, "that was pause quick/none"},
    {"resume slow/w-2 --note x", 0, "  "},
    {"abort slow/w-2 stuck/w-1", 2, "add --yes to mean it"},
    {"resolve 1 2 retry --note back", 2, "add --yes to mean it"},
    {"resolve 1 two retry --note back", 2, "no number of an escalation, and no saga"},
    {"resolve quick/y-1 --as happened --note x --yes", 4, "quick/y-1 is completed, and no person is asked about it"},
    {"resolve quick/none --as happened --note x --yes", 3, "no such thing"},
    {"resolve quick/y-1 stuck/none retry --note x", 4, "no person is asked"},
    {"resolve retry --note back", 2, "which escalation"},
    {"abort slow/w-2 --yes", 0, "compensating"},
};

/* Checks that no line is wider than `columns`. */
static void is_within(const char *text, size_t columns)
{
    size_t width = 0;

    for (const char *at = text, *line = text; *at; at++) {
        width = *at == '\n' ? 0 : width + (((unsigned char)*at & 0xc0) != 0x80);
        line = *at == '\n' ? at + 1 : line;
        if (width > columns) {
            fail_msg("wider than %zu: %.*s", columns, (int)strcspn(line, "\n"), line);
        }
    }
}

TEST(people_on_call_are_answered)
{
    program_cases(cases, COUNT_OF(cases));
}

TEST(ready_says_why_it_is_not_and_waits_until_it_is)
{
    api_host_tell(&host, SIGUSR2);
    while (run("ready") == 0) { /* until the service has heard that its database is away */
    }
    expect_printed(talk, "is not ready: the database does not answer");
    assert_int_equal(run("ready --wait 300ms"), 6);
    api_host_tell(&host, SIGUSR2);
    assert_int_equal(run("ready --wait 10m"), 0);
    assert_string_equal(out, "ready\n");
}

TEST(several_are_one_command)
{
    assert_int_equal(run("start slow --id s-1 -o name"), 0);
    assert_int_equal(run("start slow --id s-2 -o name"), 0);
    assert_int_equal(run("abort slow/s-1 slow/s-2 --yes"), 0);
    char *first = strstr(out, "  compensating\n");

    assert_non_null(first);
    assert_non_null(strstr(first + 1, "  compensating\n"));
    /* The first is answered, the second does not exist. */
    expect_out(run("resolve 1 99 retry --note back --yes"), 3, "escalation 1 is resolved: retry");
    expect_printed(talk, "that was escalation 99");
}

TEST(a_terminal_is_asked_first)
{
    assert_int_equal(run("start slow --id a-1 -o name"), 0);
    expect_out(run_at_terminal("abort slow/a-1", "n\n"), 1,
               "Abort slow/a-1 and undo what it did, on http://127.0.0.1:", "Nothing was done.");
    assert_int_equal(run("show slow/a-1 --jq .status"), 0);
    assert_string_equal(out, "running\n");
    assert_int_equal(run_at_terminal("pause slow/a-1 --note x", ""),
                     0); /* nothing to confirm, because a pause can be resumed */
    assert_int_equal(run_at_terminal("abort slow/a-1", "y\n"), 0);
    assert_int_equal(run("start slow --id a-2 -o name"), 0);
    assert_int_equal(run_at_terminal("abort slow/a-2 --yes", ""), 0);
    assert_null(strstr(out, "[y/N]"));
}

TEST(help_and_tables_fit_80_columns)
{
    static const char *const tables[] = {"list",
                                         "operations",
                                         "tools",
                                         "engines",
                                         "stats",
                                         "stats --since 20m",
                                         "stats --since 20m --by saga",
                                         "stats --by tool",
                                         "top",
                                         "approvals",
                                         "approvals 1",
                                         "cases",
                                         "cases 1",
                                         "cases --group-by tool,error",
                                         "acts",
                                         "holds",
                                         "schedules",
                                         "bulk",
                                         "me",
                                         "preview slow/t-1",
                                         "definitions",
                                         "show slow/t-1 --full",
                                         "log slow/t-1"};
    char commands[4096] = "", *at;

    assert_int_equal(run("--help"), 0);
    is_within(out, 80);
    at = strstr(out, "Commands\n");
    assert_non_null(at);
    (void)snprintf(commands, sizeof(commands), "%.*s", (int)(strstr(at, "\n\n") - at), at);
    for (at = strchr(commands, '\n'); at; at = strchr(at + 1, '\n')) {
        assert_int_equal(run(text_of("%.*s --help", (int)strcspn(at + 3, " "), at + 3)), 0);
        is_within(out, 80);
        expect_printed(out, "\n  "); /* the help has an example */
    }
    assert_int_equal(
        run("start slow --id t-1 --input {\"a\":\"a-rather-long-text-that-goes-on-and-on-and-on-for-long\"}"), 0);
    (void)setenv("COLUMNS", "80", 1);
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        assert_int_equal(run(tables[i]), 0);
        is_within(out, 80);
    }
    expect_out(run("operations"), 0, "7c0f1a44-0000-8000-8000-000000000001"); /* a key is never cut */
    expect_out(run("operations -o wide"), 0, "ATTEMPTS");
    (void)unsetenv("COLUMNS");
}

TEST(faults_name_the_flags_of_the_command)
{
    static const struct program_case said[] = {
        {"list --limit 1000", 1, "--limit is"},
        {"list --status nonsense", 1, "--status is not a status"},
        {"resolve 1 retry --as happened --note x", 1, "--as"},
    };

    program_cases(said, COUNT_OF(said));
    assert_null(strstr(talk, "\"as\""));
    assert_null(strstr(talk, "/as"));
}

#define ENTERED "\033[?1049h"
#define LEFT "\033[?25h\033[?1049l"

/* Checks that no painted line has more characters than `columns`. Colours and the like take no width. */
static void is_painted_within(const char *text, size_t columns)
{
    size_t width = 0;

    for (const char *at = text; *at; at++) {
        if (*at == '\033') {
            at += strcspn(at, "mhlHKJ");
        } else if (*at == '\n' || *at == '\r') {
            width = 0;
        } else if (((unsigned char)*at & 0xc0) != 0x80) {
            assert_true(++width <= columns);
        }
    }
}

TEST(top_is_a_live_screen_and_gives_the_terminal_back)
{
    struct terminal terminal = terminal_begin("top --interval 200ms", 80, 24);
    struct winsize narrow = {.ws_row = 20, .ws_col = 60};

    terminal_until(&terminal, ENTERED);
    terminal_until(&terminal, "Needs a person");
    terminal_until(&terminal, "host:1");
    terminal_until(&terminal, "Needs a person"); /* the text appears again, so the screen is live */
    is_painted_within(out, 80);
    assert_int_equal(ioctl(terminal.fd, TIOCSWINSZ, &narrow), 0);
    terminal_until(&terminal, "Engines"); /* this may be a part of the frame before */
    terminal_until(&terminal, "Engines");
    size_t resized = terminal.from;

    terminal_until(&terminal, "Engines");
    is_painted_within(out + resized, 60);
    terminal_type(&terminal, "q");
    assert_int_equal(terminal_end(&terminal), 0);
    assert_string_equal(out + strlen(out) - strlen(LEFT), LEFT);

    terminal = terminal_begin("top", 80, 24);
    terminal_until(&terminal, "Engines");
    terminal_type(&terminal, "\x03"); /* Ctrl-C */
    assert_int_equal(terminal_end(&terminal), 128);
    assert_string_equal(out + strlen(out) - strlen(LEFT), LEFT);
}

TEST(top_says_that_the_server_is_away)
{
    struct terminal terminal = terminal_begin("top --server http://127.0.0.1:1 --interval 200ms", 80, 24);

    terminal_until(&terminal, "cannot be reached");
    terminal_until(&terminal, "cannot be reached"); /* the command goes on asking */
    terminal_type(&terminal, "q");
    assert_int_equal(terminal_end(&terminal), 6);
}

TEST(a_list_is_watched)
{
    struct terminal terminal;

    assert_int_equal(run("start slow --id watched-1 -o name"), 0);
    terminal = terminal_begin("list --id watched-1 --watch --interval 200ms", 80, 24);
    terminal_until(&terminal, "running");
    assert_int_equal(run_beside("abort slow/watched-1 --yes"), 0);
    terminal_until(&terminal, "compensating");
    terminal_type(&terminal, "q");
    assert_int_equal(terminal_end(&terminal), 0);
    assert_int_equal(run("list --watch --interval soon"), 2);
    assert_int_equal(run("list --interval 2s"), 2);
    assert_int_equal(run("list --watch --status"), 2); /* a fault of usage ends the watch */
    expect_out(run("top"), 0, "Engines\n");            /* without a terminal the command prints one screen and ends */
    assert_null(strstr(out, "\033"));
}

TEST(a_command_names_its_namespace_and_lists_may_be_of_all)
{
    assert_int_equal(run("list -n default"), 0);
    assert_null(strstr(out, "NAMESPACE"));
    assert_int_equal(run("list -n other"), 5);
    expect_out(run("list -A"), 0, "NAMESPACE");
    expect_out(run("list -A -o json"), 0, "\"next_cursor\":null");
    expect_out(run("cases -A"), 0, "NAMESPACE", "default");
    static const char *const lists[] = {"debts -A", "approvals -A", "operations -A", "bulk -A",       "acts -A",
                                        "holds -A", "schedules -A", "tools -A",      "definitions -A"};
    static const char *const of_one[] = {"debts -A --csv",
                                         "debts -A --group-by tool",
                                         "approvals -A 1",
                                         "approvals -A --cursor x",
                                         "operations -A deadbeef",
                                         "bulk -A show x",
                                         "bulk -A --cursor x",
                                         "acts -A --cursor x",
                                         "holds -A 7",
                                         "holds -A --cursor x",
                                         "schedules -A show x",
                                         "schedules -A --cursor x",
                                         "tools -A x",
                                         "tools -A --cursor x",
                                         "definitions -A x",
                                         "definitions -A --cursor x",
                                         "events -A --cursor x"};

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        assert_int_equal(run(lists[i]), 0);
        if (!strstr(out, "NAMESPACE")) {
            fail_msg("%s: %s", lists[i], out);
        }
    }
    for (size_t i = 0; i < COUNT_OF(of_one); i++) {
        assert_int_equal(run(of_one[i]), 2);
        if (!strstr(talk, "-n")) {
            fail_msg("%s: %s", of_one[i], talk);
        }
    }
    assert_int_equal(run("approvals"), 0);
    assert_null(strstr(out, "NAMESPACE"));
    assert_int_equal(run("cases -A --group-by tool"), 2);
    assert_int_equal(run("list -A --cursor x"), 2);
    assert_int_equal(run("list -A -n default"), 2);
    expect_talk(run("engines -A"), 2, "-A is for lists");
    expect_out(run("events -A"), 0, "  default  order/o-1 charge");
    expect_out(run("tools -A -o json"), 0, "{\"namespace\":\"default\",");
    expect_out(run("holds -A -o json"), 0, "{\"namespace\":\"default\",");
    (void)setenv("SAGACTL_NAMESPACE", "other", 1);
    assert_int_equal(run("list"), 5);
    assert_int_equal(run("list -n default"), 0);
    (void)unsetenv("SAGACTL_NAMESPACE");
}

TEST(the_clock_of_a_desk_is_shown_and_moved)
{
    static const struct program_case clock[] = {
        {"time", 0, "nothing is due"},
        {"time advance 3d", 0, "(3d 0h ahead)"},
        {"time +3d -o json", 0, "\"ahead_ms\":259200000"},
        {"time next", 0, "next  2026-01-05"},
        {"time to 2026-01-04T00:00:00Z", 0, "now   2026-01-04"},
        {"time +3x", 1, "such as 3d"},
        {"time 3d", 2, "say `next`"},
    };

    program_cases(clock, COUNT_OF(clock));
}

TEST(a_context_is_a_server_and_its_token)
{
    char folder[] = "/tmp/sagactl-test-XXXXXX", path[128], *server = strdup(getenv("SAGACTL_SERVER"));
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)setenv("XDG_CONFIG_HOME", folder, 1);
    (void)unsetenv("SAGACTL_SERVER");
    assert_int_equal(run("config"), 0);
    assert_int_equal(run("config set shop"), 2);
    assert_int_equal(run("config set shop --server nowhere"), 2);
    assert_int_equal(run(text_of("config set shop --server %s/", server)), 0);
    assert_int_equal(run("config set away --server http://127.0.0.1:1"), 0);
    assert_int_equal(run("config -o name"), 0);
    assert_string_equal(out, "shop\naway\n");
    assert_int_equal(run("list --context shop"), 0);
    assert_int_equal(run("list --context away"), 6);
    expect_talk(run("list --context nobody"), 2, "there is no context \"nobody\"");
    assert_int_equal(run("list --context shop --server http://127.0.0.1:1"), 2);
    assert_int_equal(run("config use nobody"), 3);
    assert_int_equal(run("config use shop"), 0);
    expect_out(run("config"), 0, "*  shop  http://127.0.0.1:");
    assert_int_equal(run("list"), 0);
    (void)setenv("SAGACTL_CONTEXT", "away", 1);
    assert_int_equal(run("list"), 6);
    (void)unsetenv("SAGACTL_CONTEXT");
    (void)setenv("SAGACTL_SERVER", "http://127.0.0.1:1",
                 1); /* the variable has precedence over the context in use, but not over --context */
    assert_int_equal(run("list"), 6);
    assert_int_equal(run("list --context shop"), 0);
    (void)unsetenv("SAGACTL_SERVER");
    assert_int_equal(run("config remove shop"), 0);
    assert_int_equal(run("config -o name"), 0);
    assert_string_equal(out, "away\n");
    (void)snprintf(path, sizeof(path), "%s/sagactl/contexts.json", folder);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("{", file) >= 0);
    assert_int_equal(fclose(file), 0);
    expect_talk(run("config"), 1, "is no file of contexts");
    assert_int_equal(chmod(path, 0622), 0);
    expect_talk(run("config"), 1, "others may write");
    assert_int_equal(run("token new --name x"), 0); /* the command needs no server */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(text_of("%s/sagactl", folder)), 0);
    assert_int_equal(rmdir(folder), 0);
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)setenv("SAGACTL_SERVER", server, 1);
    free(server);
}

static struct slice file_text(const char *path, char (*text)[4096])
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    size_t bytes = fread(*text, 1, sizeof(*text), file);

    assert_int_equal(fclose(file), 0);
    return (struct slice){*text, bytes};
}

TEST(a_row_goes_into_the_file_of_tokens_and_the_rest_of_it_stays)
{
    char folder[] = "/tmp/sagactl-test-XXXXXX", path[64], link[64], text[4096];
    const char before[] = "{ \"tokens\": [ {\"name\": \"ci\", \"sha256\": \"00\"} ] }\n";
    struct stat status;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/tokens", folder);
    (void)snprintf(link, sizeof(link), "%s/link", folder);
    expect_talk(run(text_of("token new --name me --into %s", path)), 1, "No such file");
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(before, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(run(text_of("token new --name me --role admin --into %s", link)), 0);
    assert_int_equal(strncmp(out, "sagad_", 6), 0);
    assert_int_equal(strlen(out), 6 + 64 + 1);
    struct digest digest = digest_sha256((struct slice){out, strlen(out) - 1});
    char hex[65];

    digest_hex(&digest, hex);
    struct slice all = file_text(path, &text), rows = json_member(all, "tokens");

    assert_int_equal(json_check(all, &json_limits_default, NULL), ERR_OK);
    assert_int_equal(json_count(rows), 2);
    assert_int_equal(strncmp(text, before, strlen(before) - 5), 0);
    assert_non_null(memmem(rows.ptr, rows.len, hex, 64));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    expect_talk(run(text_of("token new --name ci --into %s", path)), 1, "a row of this name");
    assert_int_equal(chmod(path, 0666), 0);
    expect_talk(run(text_of("token new --name x --into %s", path)), 1, "tokens");
    assert_int_equal(chmod(path, 0600), 0);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("{\"tokens\": 1}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    expect_talk(run(text_of("token new --name x --into %s", path)), 1, "no file of tokens");
    all = file_text(path, &text);
    assert_true(slice_is(all, "{\"tokens\": 1}"));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left */
}

TEST(the_token_of_the_environment_never_goes_to_a_context)
{
    char folder[] = "/tmp/sagactl-test-XXXXXX", token[128], *server = strdup(getenv("SAGACTL_SERVER"));
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)setenv("XDG_CONFIG_HOME", folder, 1);
    (void)unsetenv("SAGACTL_SERVER");
    (void)setenv("SAGACTL_TOKEN_FILE", "/nonexistent-token", 1); /* reading this file would fail the command */
    (void)snprintf(token, sizeof(token), "%s/token", folder);
    file = fopen(token, "we");
    assert_non_null(file);
    assert_true(fputs("secret\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(run(text_of("config set shop --server %s", server)), 0);
    assert_int_equal(run("list --context shop"), 0);
    assert_int_equal(run("config set shop --server http://127.0.0.1:1 --token-file /nonexistent-token"), 1);
    assert_int_equal(run(text_of("config set shop --server %s --token-file %s", server, token)), 0);
    expect_out(run("config -o wide"), 0, token);
    assert_int_equal(run("list --context shop"), 0);
    assert_int_equal(unlink(token), 0);
    expect_talk(run("list --context shop"), 2, token); /* the command reads the token file of the context */
    (void)unsetenv("SAGACTL_TOKEN_FILE");
    assert_int_equal(unlink(text_of("%s/sagactl/contexts.json", folder)), 0);
    assert_int_equal(rmdir(text_of("%s/sagactl", folder)), 0);
    assert_int_equal(rmdir(folder), 0);
    (void)unsetenv("XDG_CONFIG_HOME");
    (void)setenv("SAGACTL_SERVER", server, 1);
    free(server);
}

TEST(what_asks_a_server_after_all_takes_its_token)
{
    (void)setenv("SAGACTL_TOKEN_FILE", "/nonexistent-token", 1); /* reading this file fails the command */
    expect_talk(run("prove --registered order"), 2, "/nonexistent-token");
    expect_talk(run("prove /nonexistent.json"), 1, "/nonexistent.json"); /* files need no server, and no token */
    (void)unsetenv("SAGACTL_TOKEN_FILE");
}

int main(int argc, char **argv)
{
    program = argc > 1 ? argv[1] : "sagactl";
    return tests_run(program_setup, api_host_teardown);
}
