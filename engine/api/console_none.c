/* Replaces the console when node, npm or its packages are missing. */
#include "api/console_files.h"

const struct console_file console_files[] = {{NULL, NULL, NULL, NULL, NULL}};
const size_t console_file_count = 0;
