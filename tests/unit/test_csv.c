/* How CSV is read: cells, quotes, line ends, and what is refused. */
#include "tests/lib/test.h"
#include "tools/sagactl/csv.h"

static struct arena arena;

static int open_arena(void **state __attribute__((unused)))
{
    arena_init(&arena, 65536);
    return 0;
}

static int close_arena(void **state __attribute__((unused)))
{
    arena_fini(&arena);
    return 0;
}

/* A text of a literal, NUL bytes included. */
#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

static const struct {
    const char *name;
    struct slice text;
    struct slice cells[2]; /* the first row behind the head "a,b" */
} rows[] = {
    {"cells are trimmed", TEXT("a,b\n x , y \n"), {TEXT("x"), TEXT("y")}},
    {"line ends of Windows", TEXT("a,b\r\nx,y\r\n"), {TEXT("x"), TEXT("y")}},
    {"a mark of the order of bytes",
     TEXT("\xef\xbb\xbf"
          "a,b\nx,y"),
     {TEXT("x"), TEXT("y")}},
    {"quotes keep commas, line ends and blanks", TEXT("a,b\n\"x,\n y\",\" z \""), {TEXT("x,\n y"), TEXT(" z ")}},
    {"two quotes are one", TEXT("a,b\n\"say \"\"x\"\"\",y\n"), {TEXT("say \"x\""), TEXT("y")}},
    {"what is missing is empty", TEXT("a,b\nx\n"), {TEXT("x"), TEXT("")}},
    {"empty lines are no rows", TEXT("a,b\n\n\nx,y\n"), {TEXT("x"), TEXT("y")}},
    {"a NUL byte separates no cells", TEXT("a,b\nx\0z,y\n"), {TEXT("x\0z"), TEXT("y")}},
    {"blanks behind a quote", TEXT("a,b\n\"x\" ,\"y\"\t\r\n"), {TEXT("x"), TEXT("y")}},
};

TEST(a_row_has_the_cells_that_the_text_says)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice cells[CSV_COLUMNS_MAX];
        struct csv csv;

        csv_begin(&csv, rows[i].text, &arena);
        assert_null(csv.fault);
        if (!csv_next(&csv, cells) || !slice_equal(cells[0], rows[i].cells[0]) ||
            !slice_equal(cells[1], rows[i].cells[1])) {
            fail_msg("%s: %s", rows[i].name, csv.fault ? csv.fault : "other cells");
        }
        assert_false(csv_next(&csv, cells));
        assert_null(csv.fault);
    }
}

static const struct {
    struct slice text;
    const char *fault;
} faults[] = {
    {TEXT("a,a\nx,y\n"), "a column stands there twice"},
    {TEXT("a,b\nx,y,z\n"), "it has more cells than the head"},
    {TEXT("a,b\n\"x\"z,y\n"), "something stands behind the quote that closes a cell"},
    {TEXT("a,b\n\"x\"\0,y\n"), "something stands behind the quote that closes a cell"},
    {TEXT("a,b\n\"x,y\n"), "a quote is opened and never closed"},
};

TEST(what_cannot_be_read_says_why)
{
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct slice cells[CSV_COLUMNS_MAX];
        struct csv csv;

        csv_begin(&csv, faults[i].text, &arena);
        assert_false(csv_next(&csv, cells));
        assert_string_equal(csv.fault, faults[i].fault);
    }
}

TEST_PROGRAM(open_arena, close_arena)
