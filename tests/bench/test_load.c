/* bench-load against the API over a fake engine. The program's path is the first argument. */
#include <string.h>

#include "tests/api/program_run.h"
#include "tests/lib/test.h"

static const struct program_case cases[] = {
    {"", 2, "--saga NAME, or --calls TOOL"},
    {"--help", 0, "bench-load --saga w1"},
    {"--frob", 2, "`bench-load --help` tells more"},
    {"--saga quick --calls t.one", 2, "--saga NAME, or --calls TOOL"},
    {"--saga quick --sagas 1 --seconds 1", 2, "not both"},
    {"--saga quick --duplicates", 2, "for --calls"},
    {"--saga quick --mcp", 2, "for --calls"},
    {"--calls t.one --sagas 5", 2, "for --saga"},
    {"--calls t.one --rounds 100", 2, "from 1 to 99"},
    {"--calls t.one --batch 10", 2, "for --saga"},
    {"--saga quick --batch 1001", 2, "from 1 to 1000"},
    {"--saga quick --batch 100 --in-flight 50", 2, "no room for a batch"},
    {"--saga quick --sagas 500 --concurrency 8", 0, "transitions"},
    {"--saga quick --sagas 200 --rate 1000 -o json", 0, "\"sagas\":200"},
    {"--saga quick --sagas 100 --no-wait -o json", 0, "\"wait\":false"},
    {"--saga quick --sagas 100 --no-wait --concurrency 4", 0, "acknowledged 100; errors 0"},
    {"--saga quick --sagas 100 --batch 50 -o json", 0, "\"batch\":50"},
    {"--saga nothing --sagas 5", 3, "no such thing"},
    {"--calls t.one --number 300 --concurrency 4 --duplicates --rounds 2", 0, "ratio"},
    {"--calls t.one --number 100 --concurrency 4 --per-run 10 -o json", 0, "\"per_run\":10,\"rounds\":1"},
    {"--calls t.one --number 100 --concurrency 4 --mcp --rounds 2", 0, "through /mcp"},
    {"--calls t.one --number 100 --mcp --rounds 1 -o json", 0, "\"mcp_ratio\":"},
    {"--calls t.one --number 50 --only new --run-prefix p --warmup 0 -o json", 0, "\"new\":"},
    {"--calls t.one --number 50 --only mcp --warmup 0 -o json", 0, "\"mcp\":"},
    {"--calls t.one --number 50 --only repeated --made 50", 2, "takes --run-prefix"},
    {"--calls t.one --number 50 --only other --warmup 0", 1, "no kind of calls"},
    {"--calls t.one --only new --duplicates", 2, "one round of one kind"},
    {"--saga quick --only new", 2, "for --calls"},
    {"--calls t.nothing --number 5", 1, "404"},
};

TEST(the_driver_counts_what_it_drives)
{
    program_cases(cases, COUNT_OF(cases));
}

int main(int argc, char **argv)
{
    program = argc > 1 ? argv[1] : "bench-load";
    return tests_run(program_setup, api_host_teardown);
}
