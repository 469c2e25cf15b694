/* Makes paths that no other program has, so that test programs can run side by side. */
#include "tests/lib/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

char scratch_file[] = "/tmp/sagad-test-file-XXXXXX", scratch_folder[] = "/tmp/sagad-test-folder-XXXXXX";

int scratch_make_file(void **state)
{
    int file = mkstemp(scratch_file);

    (void)state;
    return file >= 0 ? close(file) : -1;
}

int scratch_remove_file(void **state)
{
    (void)state;
    return unlink(scratch_file);
}

void scratch_write(const char *text, size_t times)
{
    FILE *file = fopen(scratch_file, "we");

    CHECK(file);
    for (size_t i = 0; i < times; i++) {
        CHECK(fputs(text, file) >= 0);
    }
    CHECK(fclose(file) == 0);
}

int scratch_make_folder(void **state)
{
    (void)state;
    return mkdtemp(scratch_folder) && chmod(scratch_folder, 0755) == 0 ? 0 : -1;
}

int scratch_remove_folder(void **state)
{
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", scratch_folder,
              (char *)NULL); /* an absolute path, because a test may have changed PATH */
        _exit(1);
    }
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}
