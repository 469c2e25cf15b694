/*
 * A file and a folder for one test program. The first two functions of each are fixtures of cmocka for a group. A
 * fixture has no place for a name, so a program has only one file and one folder.
 */
#ifndef TESTS_LIB_SCRATCH_H
#define TESTS_LIB_SCRATCH_H

#include <stddef.h>

extern char scratch_file[], scratch_folder[]; /* their paths */

int scratch_make_file(void **state);
int scratch_remove_file(void **state);
void scratch_write(const char *text, size_t times); /* replaces the content of the file */

int scratch_make_folder(void **state); /* makes a folder that others can read: PostgreSQL runs as another user */
int scratch_remove_folder(void **state);

#endif
