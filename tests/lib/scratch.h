/*
 * A file and a folder of a test program's own. The first two of each are fixtures of cmocka, for the group: they have
 * no place for a name, so there is one of each in a program.
 */
#ifndef TESTS_LIB_SCRATCH_H
#define TESTS_LIB_SCRATCH_H

#include <stddef.h>

extern char scratch_file[], scratch_folder[]; /* their paths */

int scratch_make_file(void **state);
int scratch_remove_file(void **state);
void scratch_write(const char *text, size_t times); /* what is in it, instead of what was */

int scratch_make_folder(void **state); /* others may look into it: PostgreSQL runs as another user */
int scratch_remove_folder(void **state);

#endif
