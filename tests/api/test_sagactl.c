/* sagactl against the API over a fake engine: usage, output and exit codes. The first argument is the path of the
 * program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/program_run.h"
#include "tests/lib/test.h"

static const struct program_case cases[] = {
    {"", 2, "Exit codes"},
    {"--help", 0, "Exit codes"},
    {"help", 0, "Exit codes"},
    {"--version", 0, "sagactl "},
    {"frobnicate", 2, "no command \"frobnicate\""},
    {"lits", 2, "did you mean list?"},
    {"--frob list", 2, "unknown option --frob"},
    {"list --frob", 2, "unknown option --frob"},
    {"list --statsu x", 2, "unknown option --statsu (did you mean --status?)"},
    {"grants new --run r --tools x", 2, "unknown option --tools (did you mean --tool?)"},
    {"list --sever http://127.0.0.1:1", 2, "did you mean --server?"},
    {"list --limit", 2, "needs a value"},
    {"list --server localhost", 2, "is a URL"},
    {"help start", 0, "--wait"},
    {"start --help", 0, "--wait"},
    {"start", 2, "which saga"},
    {"start quick --input {", 2, "is not JSON"},
    {"start quick --wait soon", 2, "30s"},
    {"start quick --tag a", 2, "NAME=VALUE"},
    {"start quick --version x", 2, "whole number"},
    {"start quick --batch x.jsonl", 2, "lines of the file"},
    {"start --batch x.jsonl --wait 5s", 2, "lines of the file"},
    {"start --batch x.jsonl --patience soon", 2, "60s"},
    {"start quick --patience 5s", 2, "for --batch"},
    {"start --batch /nonexistent.jsonl", 1, "cannot be read"},
    {"check", 2, "which files"},
    {"check /nonexistent.json", 1, "cannot be read"},
    {"prove", 2, "which files"},
    {"prove x.json --registered quick", 2, "either files, or --registered"},
    {"prove /nonexistent.json", 1, "cannot be read"},
    {"prove x.json --states many", 2, "--states is a number"},
    {"help prove", 0, "invariant"},
    {"graph", 2, "which files"},
    {"graph x.json --format svg", 2, "dot or mermaid"},
    {"apply", 2, "which files"},
    {"show", 2, "which saga"},
    {"resolve 1", 2, "which action"},
    {"resolve 1 forget --note x", 2, "no action"},
    {"resolve 1 retry", 2, "--note"},
    {"resolve 1 resolve --note x", 2, "--as happened"},
    {"resolve 1 --note x", 2, "which action"},
    {"replay", 2, "--all"},
    {"token", 2, "token new"},
    {"token new --name a --role king", 2, "reader, agent, operator or admin"},
    {"bench", 2, "there is no command \"bench\""},
    {"call", 2, "which tool"},
    {"call t.one t.two --run r", 2, "one tool at a time"},
    {"call t.one", 2, "--run NAME, or --saga ID"},
    {"call t.one --run r --saga 019b3c52-0000-7000-8000-00000000ffff", 2, "one of them"},
    {"call t.one --run r --args {", 2, "is not JSON"},
    {"call t.one --run r --wait soon", 2, "30s"},
    {"call --help", 0, "--scope"},
    {"open extra", 2, "sagactl start extra"},
    {"open --calls many", 2, "--calls is a whole number"},
    {"open --micros -1", 2, "--micros is a whole number"},
    {"complete", 2, "which saga"},
    {"complete x --wait soon", 2, "30s"},
    {"complete x --output-json {", 2, "is not JSON"},
    {"bypass", 2, "which operation"},
    {"bypass 7c0f1a44-0000-8000-8000-000000000001", 2, "--reason"},
    {"cost 7c0f1a44-0000-8000-8000-000000000001", 2, "how much"},
    {"cost 7c0f1a44-0000-8000-8000-000000000001 2.01 --note x", 2, "whole number"},
    {"cost 7c0f1a44-0000-8000-8000-000000000001 2", 2, "--note"},
    {"bypass 7c0f1a44-0000-8000-8000-000000000001 --reason ' '", 2, "--reason"},
    {"resume", 2, "which saga"},
    {"resume 019b3c52-0000-7000-8000-00000000ffff", 2, "--note"},
    {"diff", 2, "which files"},
    {"retire", 2, "which definition"},
    {"retire a b --note x", 2, "one definition at a time"},
    {"retire quick", 2, "--note"},
    {"retire quick --note x --undo", 2, "--note"},
    {"retire none --note x", 3, "no such thing"},
    {"retire quick --note x", 0, "created"},
    {"retire quick --undo", 0, "created"},
    {"rerun", 2, "which saga"},
    {"rerun x y --note x", 2, "one saga at a time"},
    {"rerun x --version 0 --note x", 2, "whole number"},
    {"rerun x", 2, "--note"},
    {"mend", 2, "which saga"},
    {"mend x --tool quick --version many --note x", 2, "--version"},
    {"mend x --tool quick --version 1", 2, "--note"},
    {"signal", 2, "which saga, and which signal"},
    {"signal 019b3c52-0000-7000-8000-00000000ffff", 2, "which signal"},
    {"signal x paid --payload {", 2, "is not JSON"},
    {"signal x paid --payload 1 --payload-file y", 2, "not both"},
    {"signal x paid --payload-file /nonexistent.json", 2, "cannot be read"},
    {"help signal", 0, "--key"},
    {"pause", 2, "which saga"},
    {"pause 019b3c52-0000-7000-8000-00000000ffff", 2, "--note"},
    {"approvals 1 2", 2, "one number at most"},
    {"approvals --open --all", 2, "not both"},
    {"approve", 2, "which approval"},
    {"approve 1", 2, "--note"},
    {"approve 1 --note ' '", 2, "--note"},
    {"help approve", 0, "The first answer"},
    {"list --server http://127.0.0.1:1", 6, "cannot be reached"},
    {"show 019b3c52-0000-7000-8000-00000000ffff", 3, "no such thing"},
    {"show o-1", 3, "NAME/BUSINESS_ID"},
    {"show quick/none", 3, "no such thing"},
    {"show 00000000", 3, "there is no saga with the id"},
    {"show 0000000", 3, "names no saga"},
    {"start nothing", 3, "no such thing"},
    {"start quick --input {\"a\":1}", 0, "  "},
    {"start quick --wait 5s", 0, "completed"},
    {"start stuck --wait 5s", 9, "needs a person"},
    {"start slow --wait 200ms", 7, "running"},
    {"start quick --id same-1 --input {\"a\":1}", 0, "  "},
    {"start quick --id same-1 --input {\"a\":1}", 0, "started before"},
    {"start quick --id same-1 --input {\"a\":2}", 4, "other input"},
    {"show quick/same-1 -o json", 0, "\"business_id\":\"same-1\""},
    {"start slow --id a/b%2F", 0, "  "},
    {"show slow/a%2Fb%252F -o json", 0, "\"business_id\":\"a/b%2F\""},
    {"show slow/a/b%252F -o json", 0, "\"business_id\":\"a/b%2F\""},
    {"show slow/a%2Fb%2F", 3, "no such thing"},
    {"log slow/a/b%252F", 0, ""},
    {"start quick --id a\xe2\x80\xae"
     "b",
     1, "none that turn the direction"},
    {"start quick --id a\xc2\x9b"
     "31mb",
     1, "none that turn the direction"},
    {"signal slow/a/b%252F paid", 0, "paid"},
    {"pause slow/a/b%252F --note x", 0, "  "},
    {"resume slow/a/b%252F --note x", 0, "  "},
    {"rerun quick/same-1 --note x", 0, "  "},
    {"rerun quick/same-1 --note x --key taken", 4, "belongs to another saga"},
    {"rerun slow/a/b%252F --note x", 4, "has not ended"},
    {"mend slow/a/b%252F --tool quick --version 1 --note x", 0, "  "},
    {"mend slow/a/b%252F --tool quick --version 2 --note x", 7, "under way"},
    {"mend slow/a/b%252F --tool quick --version 2 --accept-double --note x", 0, "  "},
    {"mend slow/a/b%252F --tool quick --accept-double --note x", 0, "  "},
    {"mend slow/a/b%252F --tool other --version 2 --note x", 1, "calls no such tool"},
    {"abort slow/a/b%252F", 0, "  compensating\n"},
    {"list", 0, "BUSINESS ID"},
    {"list --status nonsense", 1, "is not a status"},
    {"list --since 1h --tag 'a=b c'", 0, "ID"},
    {"list --since yesterday", 2, "an age such as 2h"},
    {"tools", 0, "once, keyed  7    3 (30 %)    3 (30 %)  2, 20m 0s  open     drifted 1, loops 4"},
    {"tools", 0, "t.read  2        read         0    0"},
    {"tools -o json", 0, "\"unknown_open\":2"},
    {"tools -o json", 0, "\"health\":null"},
    {"tools -o name", 0, "t.one\nt.read\n"},
    {"tools t.read", 0, "{\"name\":\"t.read\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\"}"},
    {"tools nothing", 3, "no such thing"},
    {"definitions", 0, "b     2        "},
    {"definitions", 0, "h ago  3\n"}, /* the age depends on the day */
    {"definitions", 0, "UNFINISHED"},
    {"definitions b --versions", 0, "b     1        "},
    {"definitions b --versions -o name", 0, "b\n"},
    {"definitions b --versions -o json", 0, "{\"items\":[{\"kind\":\"saga\",\"name\":\"b\",\"version\":2"},
    {"definitions x --versions", 3, "no definition"},
    {"definitions b --versions --version 1", 2, "not both"},
    {"definitions -o name", 0, "a\nb\nc\n"},
    {"definitions quick", 0, "\"steps\""},
    {"definitions nothing", 3, "no such thing"},
    {"operations", 0, "t.one"},
    {"operations 7c0f1a44-0000-8000-8000-000000000001", 0, "took_effect"},
    {"operations 8c0f1a44-0000-8000-8000-000000000001", 3, "no such thing"},
    {"call t.one --run r1 --step s --args {\"n\":1}", 0, "{\"n\":1}"},
    {"call t.one --run r1 --step s --args {\"n\":1}", 0, "done before"},
    {"call t.one --run r1 --step s --args {\"n\":2}", 4, "differs: /amount"},
    {"call t.one --run r1 --scope a -o json", 0, "\"scope\":\"a\""},
    {"call t.slow --run r1 --wait 100ms", 7, "It goes on"},
    {"call t.slow --run r1 --wait 100ms", 7, "under way"},
    {"call t.nothing --run r1", 3, "no such thing"},
    {"call as.loop-detected --run r1", 4, "refused as"},
    {"call as.duplicate-call --run r1", 4, "sagactl operations "},
    {"call as.outcome-unknown --run r1", 4, "refused as"},
    {"call as.awaiting-operator --run r1", 9, "refused as"},
    {"call as.tool-failed --run r1", 1, "refused as"},
    {"call as.budget-exhausted --run r1", 5, "refused as"},
    {"call as.breaker-open --run r1", 6, "refused as"},
    {"call as.paused --run r1", 9, "refused as"},
    {"operations --run r1", 0, "t.slow"},
    {"call t.one --run r\xc2\x9b"
     "31m\xe2\x80\xae --step s",
     0, ""},
    {"operations", 0, "r\\u009b31m\\u202e"},
    {"bypass 8c0f1a44-0000-8000-8000-000000000001 --reason again", 3, "no such thing"},
    {"open --id trip-1 --calls 5 --deadline 15m", 0, "running"},
    {"open --id trip-1 --calls 5 --deadline 15m", 0, "opened before"},
    {"call t.one --saga 019b3c52-0000-7000-8000-00000000ffff", 3, "no such thing"},
    {"complete 019b3c52-0000-7000-8000-00000000ffff", 3, "no such thing"},
    {"resume 019b3c52-0000-7000-8000-00000000ffff --note x", 3, "no such thing"},
    {"signal 019b3c52-0000-7000-8000-00000000ffff paid", 3, "no such thing"},
    {"pause 019b3c52-0000-7000-8000-00000000ffff --note x", 3, "no such thing"},
    {"approvals", 0, "{\"amount\":250}"},
    {"approvals -o name", 0, "1\n"},
    {"approvals --all", 0, "approved"},
    {"approvals --all --saga 019b3c52-0000-7000-8000-000000000001 -o name", 0, "2\n1\n"},
    {"approvals --saga 019b3c52-0000-7000-8000-000000000002", 0, "STATUS"},
    {"approve 1 --note x --hash 0000000000000000000000000000000000000000000000000000000000000000", 4, "something else"},
    {"approve 1 --note x --hash 00", 1, "64 hexadecimal digits"},
    {"approvals 1", 0, "amount           250"},
    {"approvals 1 -o json", 0, "\"hash\":\"44136fa3"},
    {"approvals 99", 3, "no such thing"},
    {"approve 99 --note x", 3, "no such thing"},
    {"approve 2 --note late", 4, "decided before"},
    {"approve 1 --note 'as agreed'", 0, "approval 1 approved"},
    {"approve 1 --refuse --note changed", 4, "decided before"},
    {"approve 3 --refuse --note no -o json", 0, "\"n\":3"},
    {"list --status waiting", 0, "BUSINESS ID"},
    {"escalations", 0, "N  SAGA      BUSINESS ID        STEP  TOOL             REASON   ERROR    COST   OPENED  "},
    {"escalations", 0, "1  checkout  order-2026-000042  one   payments.charge  unknown  timeout  12.50  "},
    {"escalations --all", 0, "  STATUS\n"},
    {"acknowledge 1 --until 2h --note looking", 0, "escalation 1 open"},
    {"acknowledge 1 --until soon --note looking", 2, "--until is an instant"},
    {"assign 1 --to ada --note hers", 0, "escalation 1 open"},
    {"assign 1 --note hers", 2, "--to NAME"},
    {"comment 1 --note text", 0, "escalation 1 open"},
    {"comment 1", 2, "--note TEXT"},
    {"comment 1 --until 2h --note text", 2, "--until"},
    {"comment --note text", 2, "by their numbers"},
    {"comment 77 --note text", 3, "there is no such"},
    {"cases --tool payments.charge --error timeout,http-500 --step '' --opened-since 1h --cost-above 5", 0, "checkout"},
    {"cases --tag customer=ada --tag customer=bob --tag region=eu -o name", 0, "1\n"},
    {"cases --tag ada", 2, "NAME=VALUE"},
    {"cases --cost-above some", 1, "whole number"},
    {"cases --opened-since yesterday", 2, "an age such as 2h"},
    {"cases --group-by tool,error", 0, "\npayments.charge  timeout  312    4.13 EUR   2 "},
    {"cases --group-by tool,error", 0, "\n                                 0.00007 ?\n"},
    {"cases --group-by tool,error -o csv", 0,
     "\"tool\",\"error\",\"count\",\"cost\",\"without cost\",\"oldest\",\"newest\"\n"
     "\"payments.charge\",\"timeout\",\"312\",\"4130000 EUR, 70 ?\",\"2\",\"2026-01-31T02:14:00.000Z\","},
    {"cases --group-by tool,error --cost-above 3", 0, "Looked at 20000, back to 2026-01-31T09:00:00.000Z"},
    {"cases --group-by tool -o name", 2, "groups have no names"},
    {"cases -o csv", 0, "\"n\",\"status\",\"saga_name\",\"business_id\""},
    {"cases -o csv", 0, "\n\"1\",\"open\",\"checkout\",\"order-2026-000042\""},
    {"approvals -o csv", 2, "yaml or name"},
    {"cases 1", 0, "tries again"},
    {"escalations 1", 0, "open             one: unknown, took effect: unknown; a person has to say"},
    {"resolve 1 retry --note back", 0, "resolved"},
    {"resolve 1 retry --note back", 4, "resolved before"},
    {"resolve 1 --as happened --note back", 4, "resolved before"},
    {"stats", 0, "running"},
    {"stats", 0,
     "  TOOL   UNKNOWN NOW  UNKNOWN  FAILED  COMPLETED  RETRIES  CALLS  BREAKER\n  t.one  2            3        1      "
     " 6          3        10     open\n"},
    {"events --cursor 7", 0, "2026-01-02T03:04:05.000Z  case.opened         order/o-1 charge #64 unknown\n"},
    {"events --type saga.* -o json", 0, "\"specversion\":\"1.0\""},
    {"events -o name", 0, "01920000-0000-7000-8000-000000000002/7"},
    {"events --cursor 1", 4, ""},
    {"events --type case.eaten", 1, ""},
    {"events x", 2, ""},
    {"stats -o json", 0, "{\"sagas\""},
    {"stats --since 2026-01-02T03:00:00Z", 0, "01-02 03:14  3        2          1            4      9      2        2"},
    {"stats --since 20m --by saga", 0, "order  6        4          2            0          8\n"},
    {"stats --by tool", 0, "card.pay  18     4        12         2       4        10   0\n"},
    {"stats --since 20m -o json", 0, "\"next_from\":null"},
    {"stats --since yesterday", 2, "an instant such as"},
    {"stats --since 1h --by colour", 2, "saga or tool"},
    {"engines", 0, "0-2 5 7-8"},
    {"engines", 0, "nobody holds the shards 63"},
    {"engines -o name", 0, "host:1"},
    {"engines -o json", 0, "\"unowned\":[63]"},
    {"engines x", 2, ""},
    {"hold --tool card.pay --note down", 0, "hold 1: tag customer=ada"},
    {"hold --tag customer=ada --note down --for 2h --starts refuse --undo --pace 2 -o name", 0, "1"},
    {"hold --saga order --note down --until 2027-01-01T00:00:00Z", 0, "hold 1"},
    {"hold --tool nothing --note down", 1, ""},
    {"hold --tool card.pay", 2, ""},
    {"hold --note down", 2, ""},
    {"hold --tool card.pay --saga order --note down", 2, ""},
    {"hold --tag customer --note down", 2, ""},
    {"hold --tool card.pay --note down --for never", 2, ""},
    {"hold --tool card.pay --note down --pace fast", 2, ""},
    {"acts", 0, "quick/q-1"},
    {"acts --actor rob --verb abort --verb pause --saga quick --tool t.one --since 2h", 0, "forbidden x3"},
    {"acts -o wide", 0, "operator"},
    {"acts -o name", 0, "019b3c52-0000-7000-8000-00000000000a"},
    {"acts -o json", 0, "\"note\":\"the customer called\""},
    {"acts --since yesterday", 2, "an instant such as"},
    {"acts --outcome maybe", 1, "done or refused"},
    {"acts ann", 2, "options only"},
    {"holds", 0, "tool card.pay"},
    {"holds --all -o name", 0, "1"},
    {"holds 1", 0, "the bank is down"},
    {"holds 7", 3, ""},
    {"holds one", 2, ""},
    {"holds 1 2", 2, ""},
    {"release 1 --note up", 0, "hold 1"},
    {"breaker card.pay open --note down", 0, "card.pay  breaker open"},
    {"breaker card.pay closed --note up -o json", 0, "\"breaker\":\"closed\""},
    {"breaker nothing closed --note up", 3, ""},
    {"breaker card.pay ajar --note up", 2, "open or closed"},
    {"breaker card.pay closed", 2, "--note"},
    {"release 7 --note up", 3, ""},
    {"release 1", 2, ""},
    {"release --note up", 2, ""},
    {"bulk", 0, "by the bank"},
    {"bulk list -o name", 0, "01890a5d-ac96-774b-bcce-b302099a0007"},
    {"bulk show 01890a5d-ac96-774b-bcce-b302099a0007", 0, "done 1, changed 1, refused 1, open 0"},
    {"bulk show 01890a5d-ac96-774b-bcce-b302099a0008", 3, ""},
    {"bulk items 01890a5d-ac96-774b-bcce-b302099a0007 --outcome changed", 0, "o-1"},
    {"bulk stop 01890a5d-ac96-774b-bcce-b302099a0007 --note enough", 0, "bulk 01890a5d"},
    {"bulk stop 01890a5d-ac96-774b-bcce-b302099a0007", 2, ""},
    {"bulk shake 01890a5d-ac96-774b-bcce-b302099a0007", 2, ""},
    {"bulk show", 2, ""},
    {"resolve --tool card.pay --as happened --note x --yes", 4, "leads to        2  completed"},
    {"resolve --tool card.pay --as happened --note x", 2, "applies         2"},
    {"resolve retry --tag customer=ada --opened-since 1h --cost-above 5 --note x --yes", 4, "left out        1"},
    {"resolve --tool card.pay --as happened", 2, ""},
    {"resolve --tool card.pay --tag ada --note x", 2, ""},
    {"resolve --tool card.pay --opened-since today --note x", 2, ""},
    {"abort o-1 --saga order --note x", 2, ""},
    {"pause --saga order --note x --yes -o name", 4, "01890a5d-ac96-774b-bcce-b302099a0007"},
    {"schedules", 0, "nightly  held"},
    {"schedules list -o name", 0, "nightly"},
    {"schedules show nightly", 0, "Europe/Berlin"},
    {"schedules show nothing", 3, ""},
    {"schedules next nightly --count 1", 0, "2026-01-03T01:30:00.000Z"},
    {"schedules create nightly --saga order --every 1m --input {} --overlap all --catch-up last", 0,
     "schedule nightly"},
    {"schedules create other --saga order --every 1m", 1, ""},
    {"schedules create nightly --every 1m", 2, ""},
    {"schedules create nightly --saga order --every 1m --cron x", 2, ""},
    {"schedules create nightly --saga order --every 1m --input {", 2, ""},
    {"schedules hold nightly", 2, ""},
    {"schedules hold nightly --note moving", 0, "held"},
    {"schedules release nightly --note moved", 0, "schedule nightly"},
    {"schedules delete nightly", 0, "deleted the schedule nightly"},
    {"schedules delete nightly -o json", 0, "\"deleted\":true"},
    {"schedules shake nightly", 2, ""},
    {"schedules show", 2, ""},
    {"grants new --run chat-1 --tool t.one --tool saga_open --expires 1h", 0, "/mcp/g/sagadg_"},
    {"grants new --run chat-1 --scope kettle --turn t-1 --expires 9h -o json", 0, "\"turn\":\"t-1\""},
    {"grants new --run chat-1 --tool nothing", 1, ""},
    {"grants new", 2, "--run or --saga"},
    {"grants new --run a --expires soon", 2, "a duration such as 1h"},
    {"grants", 0, "run chat-1"},
    {"grants revoke 019b3c52-0000-7000-8000-00000000ffff", 3, ""},
    {"grants revoke", 2, "which grant?"},
    {"token new --name ci --role agent --tools card.pay,mail.*", 0, "\"tools\":[\"card.pay\",\"mail.*\"]"},
};

TEST(every_command_has_its_exit_code)
{
    program_cases(cases, COUNT_OF(cases));
}

/* Checks that no line is wider than `columns`, and that cut text ends with an ellipsis. */
static void fits(const char *arguments, size_t columns)
{
    (void)setenv("COLUMNS", text_of("%zu", columns), 1);
    assert_int_equal(run(arguments), 0);
    (void)unsetenv("COLUMNS");
    size_t width = 0;

    for (const char *at = out; *at; at++) {
        width = *at == '\n' ? 0 : width + ((*at & 0xc0) != 0x80);
        if (width > columns) {
            fail_msg("sagactl %s: a line has more than %zu columns:\n%s", arguments, columns, out);
        }
    }
}

TEST(tables_fit_a_terminal_of_80_columns)
{
    static const char *const commands[] = {"escalations", "cases --group-by tool,error", "escalations --all",
                                           "approvals --all", "stats"};

    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        fits(commands[i], 80);
    }
}

TEST(a_saga_is_named_by_the_beginning_of_its_id)
{
    char id[64], arguments[128];

    assert_int_equal(run("start quick -o name"), 0);
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "show %.30s -o name", id);
    assert_int_equal(run(arguments), 0);
    assert_memory_equal(out, id, 36);
    assert_int_equal(run("start quick -o name"), 0);
    expect_talk(run(text_of("abort %.8s", id)), 4, "ambiguous");
}

TEST(a_registered_saga_is_proved_by_the_service)
{
    expect_out(run("prove --registered quick"), 0, "quick: 1 failure points, all end well", "fails for certain");
    assert_int_equal(run("prove --registered nothing --version 2"), 3);
}

TEST(names_are_for_pipes)
{
    char id[64], arguments[128];

    assert_int_equal(run("start slow -o name"), 0);
    assert_int_equal(strlen(out), 37); /* the id and a line end, nothing else */
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "show %s", id);
    expect_out(run(arguments), 0, "t.one");
    assert_null(strchr(out, '\033')); /* colours only on a terminal */
    expect_out(run(text_of("log %s", id)), 0, "saga.started");
    expect_out(run(text_of("abort %s --note 'no longer wanted'", id)), 0, "compensating");
    api_host_tell(&host, SIGUSR1);
    expect_out(run(text_of("log --follow %s -o json", id)), 0, "\"type\":\"saga.completed\"");
    assert_int_equal(run(text_of("abort %s", id)), 4);
}

/* An open saga from beginning to end, and one more execution that an operator signs. */
TEST(an_agents_calls_go_through_pipes)
{
    char id[64], key[64], arguments[160];

    assert_int_equal(run("open -o name"), 0);
    assert_int_equal(strlen(out), 37);
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "call t.one --saga %s --step pay -o name", id);
    assert_int_equal(run(arguments), 0);
    assert_int_equal(strlen(out), 37); /* the key and a line end, nothing else */
    (void)snprintf(key, sizeof(key), "%.36s", out);
    assert_int_equal(run(arguments), 0);
    assert_memory_equal(out, key, 36);
    expect_out(run(text_of("show %s", id)), 0, "open saga");
    (void)snprintf(arguments, sizeof(arguments), "bypass %s --reason 'a second copy'", key);
    expect_out(run(arguments), 0, "one more execution, until ");
    assert_int_equal(run(arguments), 4);
    assert_int_equal(run(text_of("call as.paused --saga %s", id)), 9);
    expect_out(run(text_of("resume %s --note 'told it to stop'", id)), 0, "running");
    expect_out(run(text_of("complete %s --output-json {\"fine\":true}", id)), 0, "completed");
    expect_talk(run(text_of("call t.one --saga %s --step more", id)), 4, "has ended");
}

TEST(a_saga_is_signalled_paused_and_resumed)
{
    char id[64], arguments[160];

    assert_int_equal(run("start tree -o name"), 0);
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "signal %s paid --payload {\"amount\":1} --key bank-1", id);
    expect_out(run(arguments), 0, "taken by a step");
    expect_talk(run(arguments), 0, "used before");
    assert_int_equal(run(text_of("signal %s paid --payload {\"amount\":2} --key bank-1", id)), 4);
    expect_talk(run(text_of("signal %s payed", id)), 1, "one waits for paid");
    (void)snprintf(arguments, sizeof(arguments), "pause %s --note 'the bank asked'", id);
    expect_out(run(arguments), 0, "paused");
    assert_int_equal(run(arguments), 0); /* the state is already as wanted */
    expect_out(run(text_of("resume %s --note 'they are done'", id)), 0, "running");
}

/* --- many starts --- */

static char lines_path[] = "/tmp/sagactl-lines-XXXXXX";

static FILE *lines_begin(void)
{
    (void)memcpy(lines_path + sizeof(lines_path) - 7, "XXXXXX", 6);
    int fd = mkstemp(lines_path);

    assert_true(fd >= 0);
    return fdopen(fd, "w");
}

static int run_lines(FILE *lines, const char *options)
{
    char arguments[160];

    if (lines) {
        assert_int_equal(fclose(lines), 0);
    }
    (void)snprintf(arguments, sizeof(arguments), "start --batch %s %s", lines_path, options);
    return run(arguments);
}

static size_t line_count(const char *text)
{
    size_t count = 0;

    for (; *text; text++) {
        count += *text == '\n';
    }
    return count;
}

TEST(the_lines_of_a_file_are_started_in_batches)
{
    FILE *lines = lines_begin();

    for (size_t i = 0; i < 2500; i++) {
        (void)fprintf(lines, "{\"saga\":\"quick\",\"id\":\"line-%zu\",\"input\":{\"n\":%zu}}\n", i, i);
    }
    assert_int_equal(run_lines(lines, ""), 0);
    assert_int_equal(line_count(out), 2500);
    assert_memory_equal(out, "1       started  0", 18);
    expect_printed(out, "\n2500    started  0");
    expect_printed(talk, "2500 started, 0 there already, 0 refused\n");
    assert_null(strchr(talk, '\r')); /* progress only on a terminal */
    /* The same file again starts the same sagas. */
    expect_talk(run_lines(NULL, "-o name"), 0, "0 started, 2500 there already, 0 refused\n");
    assert_int_equal(strlen(out), 2500 * 37);
    assert_int_equal(unlink(lines_path), 0);
}

TEST(a_line_that_is_refused_is_told_and_the_others_are_started)
{
    FILE *lines = lines_begin();

    (void)fputs("{\"saga\":\"quick\"}\n\n{\"saga\":\n{\"saga\":\"nothing\"}\r\n[]\n {\"open\":true} \n{}\n"
                "{\"saga\":\"quick\",\"colour\":1}\n{\"saga\":\"quick\",\"input\":7}",
                lines);
    expect_out(run_lines(lines, ""), 1, "1       started  0", "3       refused  this is not the JSON",
               "4       refused  there is no such thing", "5       refused  ", "6       started  0");
    assert_non_null(
        strstr(out, "8       refused  the body is wrong in 1 place, each named in \"errors\": /colour: unknown"));
    expect_printed(out, "9       started  0");
    expect_printed(talk, "3 started, 0 there already, 5 refused\n");
    assert_int_equal(run_lines(NULL, "-o json"), 1);
    assert_int_equal(line_count(out), 8);
    expect_printed(out, "{\"line\":1,\"status\":201,\"location\":\"/v1/sagas/",
                   "{\"line\":3,\"body\":{\"type\":\"not-json\"",
                   "{\"line\":4,\"status\":404,\"body\":{\"type\":\"urn:sagad:problem:not-found\"");
    assert_int_equal(unlink(lines_path), 0);
}

TEST(large_lines_go_in_requests_that_the_service_takes)
{
    FILE *lines = lines_begin();

    for (int i = 0; i < 12; i++) {
        (void)fprintf(lines, "{\"saga\":\"quick\",\"input\":\"%0300000d\"}\n", i);
    }
    assert_int_equal(run_lines(lines, "-o name"), 0);
    assert_int_equal(line_count(out), 12);
    assert_int_equal(unlink(lines_path), 0);
}

TEST(patience_ends_where_nothing_is_taken_in)
{
    FILE *lines = lines_begin();

    (void)fputs("{\"saga\":\"quick\"}\n", lines);
    api_host_tell(&host, SIGHUP);
    expect_out(run_lines(lines, "--patience 1s"), 6, "1       refused  not taken in");
    expect_printed(talk, "took nothing in for 1 s");
    api_host_tell(&host, SIGHUP);
    assert_int_equal(run_lines(NULL, "--server http://127.0.0.1:1 --patience 100ms"), 6);
    assert_int_equal(unlink(lines_path), 0);
}

static size_t widest_line(const char *text)
{
    size_t most = 0, width = 0;

    for (; *text; text++) {
        width = *text == '\n' ? 0 : width + (((unsigned char)*text & 0xc0) != 0x80);
        most = width > most ? width : most;
    }
    return most;
}

TEST(show_draws_groups_waits_and_the_lane_of_undoing)
{
    static const char *const says[] = {
        "└─ ✗ capture",
        "│  child-failed: capture failed",
        "http-402: no money",
        "… 990 more, all completed",
        "? #700",
        "2. undone, 3 tries, 100 ms",
        "1. undone, 100 ms",
        "▒",
        "━",
        "─",
        "█",
        "for each of 1000",
        "child saga",
        "waits for the signal paid, until ",
        "waits for approval 1, until ",
        "  sagactl approve 1 --note TEXT",
        "sleeps until ",
        "held back since 09:05:00, before anything is sent: its breaker is open, asked again now",
        "tried 2 times since 09:05:00, and held back now: its rate is used up, asked again now",
        "order:7 held, stock:9 waits in line",
        "then      starts quick",
        "2 kept"};
    char id[64], arguments[160];

    assert_int_equal(run("start tree -o name"), 0);
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "show %s", id);
    (void)setenv("COLUMNS", "140", 1);
    (void)usleep(1100000); /* long enough for the bars to have a length */
    assert_int_equal(run(arguments), 0);
    for (size_t i = 0; i < COUNT_OF(says); i++) {
        if (!strstr(out, says[i])) {
            fail_msg("it does not say \"%s\":\n%s", says[i], out);
        }
    }
    assert_null(strchr(out, '\033'));
    assert_null(strstr(out, "#9 ")); /* summed up */
    expect_out(run(text_of("show %s --all", id)), 0, "#99");
    assert_null(strstr(out, "more, all completed"));

    (void)setenv("COLUMNS", "72", 1); /* lines with commands are the longest, and are not broken */
    expect_out(run(text_of("show %s", id)), 0, "? #700");
    assert_null(strstr(out, "hotel.book"));
    assert_true(widest_line(out) <= 7 + strlen("sagactl signal  paid --payload JSON") + 36);
    (void)unsetenv("COLUMNS");
}

/* `show` prints the input up to its third line, all of it on request, and what was sent. */
TEST(show_tells_what_the_saga_was_given_and_what_it_sent)
{
    static const char *const says[] = {
        "\n  sent\n    one  t.one\n      key   7c0f1a44-0000-8000-8000-000000000001, not sent\n",
        "\n      args  {\"n\":1.0}\n"};
    char id[64], arguments[512], large[300];

    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    (void)setenv("COLUMNS", "80", 1);
    assert_int_equal(
        run(text_of("start slow --input '{\"text\":\"%s\",\"end\":1}' --tag team=x --tag who=y -o name", large)), 0);
    (void)snprintf(id, sizeof(id), "%.36s", out);
    (void)snprintf(arguments, sizeof(arguments), "show %s", id);
    expect_out(run(arguments), 0, "\n  tags      team=x  who=y\n");
    expect_out(run(arguments), 0, "  input     {\"text\":\"xxx", "x\xe2\x80\xa6\n            sagactl show ");
    assert_null(strstr(out, "\"end\""));
    assert_null(strstr(out, "sent"));
    assert_true(widest_line(out) <= 80);
    expect_out(run(text_of("show %s --full", id)), 0, "\"end\":1}");
    for (size_t i = 0; i < COUNT_OF(says); i++) {
        if (!strstr(out, says[i])) {
            fail_msg("it does not say \"%s\":\n%s", says[i], out);
        }
    }
    (void)unsetenv("COLUMNS");
}

/* Writes `text` into a new file whose name ends with `suffix`. The test removes the file with unlink(). */
static void write_scratch(char *path, size_t suffix, const char *text)
{
    int fd = mkstemps(path, (int)suffix);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

TEST(a_definition_with_faults_is_told_all_of_them)
{
    char path[] = "/tmp/sagactl-test-XXXXXX";
    static const char text[] = "{\"tools\":[{\"name\":\"Bad "
                               "Name\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"maybe\",\"colour\":1}],\"sagas\":7}";

    write_scratch(path, 0, text);
    expect_talk(run(text_of("check %s", path)), 1,
                "/tools/0/name: ", "/tools/0/effect: ", "/tools/0/colour: ", "/sagas: ");
    (void)unlink(path);
}

/* Columns count characters, in the first line of `talk` and of the file. An umlaut is one character. */
TEST(a_fault_says_its_line_and_whether_the_service_was_asked)
{
    char path[] = "/tmp/sagactl-test-XXXXXX";
    static const char text[] =
        "{\"sagas\":[\n {\"name\":\"s\",\"description\":\"\xc3\xa4\",\"steps\":[{\"id\":\"a\",\"call\":\"t.reed\"},\n"
        "  {\"id\":\"b\",\"call\":\"t.read\"}]}]}";

    write_scratch(path, 0, text);
    expect_talk(
        run(text_of("check %s", path)), 1,
        ":2:58: /sagas/0/steps/0/call: there is no tool `t.reed` in this document, and what is registered was not "
        "looked at: add --server",
        ":3:20: /sagas/0/steps/1/call: there is no tool `t.read`");
    expect_out(run(text_of("check -o json %s", path)), 1,
               "\"line\":3,\"column\":20,\"pointer\":\"/sagas/0/steps/1/call\"");
    expect_talk(run(text_of("check --server %s %s", getenv("SAGACTL_SERVER"), path)), 1,
                "there is no tool `t.reed` in this document and none is registered under this name");
    assert_null(strstr(talk, "there is no tool `t.read`"));
    assert_int_equal(run(text_of("check --server http://127.0.0.1:1 %s", path)), 6);
    (void)unlink(path);
}

TEST(yaml_is_read_wherever_json_is)
{
    char path[] = "/tmp/sagactl-test-XXXXXX.yaml", broken[] = "/tmp/sagactl-test-XXXXXX.yml";

    write_scratch(path, 5,
                  "# a remark\n"
                  "tools:\n"
                  "- name: undo\n  builtin: {do: echo}\n  effect: idempotent\n"
                  "sagas:\n"
                  "- name: s\n"
                  "  steps:\n"
                  "  - {id: a, call: undo}\n"
                  "  - id: b\n"
                  "    call: t.reed\n");
    write_scratch(broken, 4, "sagas:\n- name: s\n  name: t\n");
    expect_talk(run(text_of("check %s", path)), 1, ".yaml:11:11: /sagas/0/steps/1/call: there is no tool `t.reed`");
    expect_out(run(text_of("check %s -o json", broken)), 1,
               "\"line\":3,\"column\":3,\"pointer\":\"\",\"detail\":\"this member stands twice");
    expect_talk(run(text_of("apply %s", broken)), 1, ".yml:3:3: (document): this member stands twice, first in line 2");
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "/tmp/sagactl-test-XXXXXX.yaml");
    write_scratch(path, 5, "amount: 12.50\nzip: \"01234\"\n");
    expect_out(run(text_of("start quick --input @%s -o json", path)), 0,
               "\"input\":{\"amount\":12.50,\"zip\":\"01234\"}");
    expect_out(run("start quick --input 'amount: 5' -o json"), 0, "\"input\":{\"amount\":5}");
    expect_talk(run("start quick --input order.json"), 2, "neither JSON nor a mapping or sequence of YAML");
    (void)unlink(path);
    (void)unlink(broken);
}

TEST(files_are_proven_and_drawn_without_a_service)
{
    char path[] = "/tmp/sagactl-test-XXXXXX";
    static const char text[] =
        "{\"tools\":[{\"name\":\"undo\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"idempotent\"},"
        "{\"name\":\"book\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"idempotent\",\"compensate\":{\"tool\":\"undo\"}}"
        ","
        "{\"name\":\"mail\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"once\",\"terminal\":true}],"
        "\"sagas\":[{\"name\":\"trip\",\"steps\":[{\"id\":\"room\",\"call\":\"book\"},{\"id\":\"tell\",\"call\":"
        "\"mail\","
        "\"when\":\"${ .input.say == \\\"yes\\\" "
        "}\"}]},{\"name\":\"other\",\"steps\":[{\"id\":\"one\",\"call\":\"book\"}]}]}";
    static const struct {
        const char *arguments; /* the arguments behind the path */
        const char *command;
        int code;
        const char *says, *says_not;
    } asked[] = {
        {"", "prove", 0, "other: ", "VIOLATED"},
        {"--saga trip", "prove", 0, "tell  fails for certain", "other: "},
        {"--saga trip", "prove", 0, "all end well", "  one  "},
        {"--saga trip -o json", "prove", 0,
         "{\"step\":\"tell\",\"direction\":\"do\",\"effect\":\"once\",\"happens\":\"fails\",\"then\":\"none\","
         "\"what\":\"fails for certain\",\"settled\":\"\",\"place\":null,"
         "\"end\":\"compensated\",\"waits_for\":null,\"undone\":[\"room\"],\"standing\":[],\"violation\":null}",
         NULL},
        {"-o json", "prove", 0, "\"saga\":\"trip\",\"ok\":true,\"violations\":0,\"covered\":{\"points\":", NULL},
        {"--saga none", "prove", 3, "no saga none", NULL},
        {"--saga trip", "graph", 0, "\"room\" -> \"tell\";", "digraph \"other\""},
        {"--saga trip", "graph", 0, "when ${ .input.say == \\\"yes\\\" }\", style=bold", NULL},
        {"", "graph", 0, "\"one\" -> \"undo one\" [style=dashed", NULL},
        {"--saga trip --format mermaid", "graph", 0, "when ${ .input.say == #quot;yes#quot; }", "digraph"},
        {"--saga trip --format mermaid", "graph", 0, "s0 --> s1", NULL},
        {"--saga none", "graph", 3, "no saga none", NULL},
    };

    write_scratch(path, 0, text);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        char arguments[256];

        (void)snprintf(arguments, sizeof(arguments), "%s %s %s", asked[i].command, path, asked[i].arguments);
        if (run(arguments) != asked[i].code || !(strstr(out, asked[i].says) || strstr(talk, asked[i].says)) ||
            (asked[i].says_not && strstr(out, asked[i].says_not))) {
            fail_msg("sagactl %s\n--- stdout\n%s\n--- stderr\n%s", arguments, out, talk);
        }
    }
    (void)unlink(path);
}

TEST(children_elements_and_waits_are_drawn_as_what_they_are)
{
    char path[] = "/tmp/sagactl-test-XXXXXX", other[] = "/tmp/sagactl-test-XXXXXX";
    static const char child[] =
        "{\"tools\":[{\"name\":\"undo\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"idempotent\"},"
        "{\"name\":\"book\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"idempotent\",\"compensate\":{\"tool\":\"undo\"}}"
        "],"
        "\"sagas\":[{\"name\":\"child\",\"steps\":[{\"id\":\"a\",\"call\":\"book\"},{\"id\":\"b\",\"sleep\":\"1h\"}]}]"
        "}";
    static const char parent[] =
        "{\"sagas\":[{\"name\":\"parent\",\"steps\":[{\"id\":\"each\",\"saga\":\"child\",\"for_each\":\"${ .input.list "
        "}\"},"
        "{\"id\":\"seats\",\"call\":\"book\",\"for_each\":\"${ .input.list }\",\"concurrency\":3},"
        "{\"id\":\"paid\",\"signal\":{\"name\":\"money\",\"timeout\":\"5m\"}},{\"id\":\"ok\",\"approve\":{}}]}]}";
    static const struct {
        const char *format, *says;
    } asked[] = {
        {"dot",
         "subgraph \"cluster each\" {\n  label=\"each\\nsaga child\\nfor each of ${ .input.list }, 1 at once\";"},
        {"dot", "\"each/a\" -> \"each/b\";"},
        {"dot", "\"each/b\" -> \"each end\";"},
        {"dot", "\"each end\" -> \"seats\";"},
        {"dot", "label=\"seats\\nfor each of ${ .input.list }, 3 at once\""},
        {"dot", "[label=\"b\\nsleeps 1h\", shape=octagon]"},
        {"dot", "[label=\"paid\\nwaits for signal money, for 5m 0s at most\", shape=cds]"},
        {"dot", "[label=\"ok\\nwaits for operator\", shape=invtrapezium]"},
        {"mermaid", "subgraph s0[\"each<br>saga child<br>for each of ${ .input.list }, 1 at once\"]"},
        {"mermaid", "s0_0 --> s0_1"},
        {"mermaid", "s0_1>\"b<br>sleeps 1h\"]"},
        {"mermaid", "s1_each -. undo .- u1"},
        {"mermaid", "s0 --> s1\n"},
        {"mermaid", "s2[/\"paid<br>waits for signal money"},
        {"mermaid", "s3[\\\"ok<br>waits for operator\"/]"},
    };

    write_scratch(path, 0, parent);
    write_scratch(other, 0, child);
    for (size_t i = 0; i < COUNT_OF(asked); i++) { /* the child is in another file, which comes later */
        assert_int_equal(run(text_of("graph %s %s --saga parent --format %s", path, other, asked[i].format)), 0);
        if (!strstr(out, asked[i].says)) {
            fail_msg("no %s in\n%s", asked[i].says, out);
        }
    }
    assert_int_equal(run(text_of("check %s %s", other, path)), 0);
    expect_talk(run(text_of("check %s", path)), 1, "/sagas/0/steps/0/saga: there is no saga `child`");
    (void)unlink(path);
    (void)unlink(other);
}

int main(int argc, char **argv)
{
    program = argc > 1 ? argv[1] : "sagactl";
    return tests_run(program_setup, api_host_teardown);
}
