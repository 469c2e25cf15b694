/* What the kernel says of our memory. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/resident.h"
#include "tests/lib/test.h"

TEST(memory_that_is_used_is_seen)
{
    enum { MORE = 64 << 20 };
    size_t before = resident_bytes();
    char *memory = malloc(MORE);

    assert_non_null(memory);
    memset(memory, 1, MORE);
    assert_true(before > 0);
    assert_true(resident_bytes() >= before + MORE / 2);
    assert_int_equal(memory[MORE / 2], 1);
    free(memory);
}

TEST(there_is_more_than_we_have)
{
    assert_true(resident_bytes_there() > resident_bytes());
}

static char folder[64];

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];

    assert_true(snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path));
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static size_t least_of(const char *groups)
{
    char path[PATH_MAX];

    put("groups", groups);
    assert_true(snprintf(path, sizeof(path), "%s/groups", folder) < (int)sizeof(path));
    return resident_group_bytes(path, folder);
}

TEST(the_least_limit_of_all_groups_above_counts)
{
    put("memory.max", "900\n");
    put("system.slice/memory.max", "max\n");
    put("system.slice/sagad.service/memory.max", "500\n");
    put("tight.slice/memory.max", "200\n");
    put("tight.slice/sagad.service/memory.max", "500\n");
    put("memory/memory.limit_in_bytes", "800\n");
    put("memory/old/memory.limit_in_bytes", "300\n");

    assert_int_equal(least_of("0::/\n"), 900);
    assert_int_equal(least_of("0::/system.slice\n"), 900);
    assert_int_equal(least_of("0::/system.slice/sagad.service\n"), 500);
    assert_int_equal(least_of("0::/tight.slice/sagad.service\n"), 200);
    assert_int_equal(least_of("0::/docker/of/another/namespace\n"), 900);
    assert_int_equal(least_of("12:pids:/old\n11:cpu,memory:/old\n10:memory_more:/\n"), 300);
    assert_int_equal(least_of("11:memory:/\n0::/system.slice/sagad.service\n"), 500);
    assert_int_equal(least_of("nonsense\n::\n"), 900);
    assert_int_equal(least_of(""), 0);
    assert_int_equal(resident_group_bytes("/nowhere", folder), 0);
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/sagad-test-groups-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *where)
{
    (void)what;
    (void)kind;
    (void)where;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_PROGRAM(begin, end)
