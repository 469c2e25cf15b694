/* Prints the help of commands within 80 columns. */
#ifndef SAGACTL_HELP_H
#define SAGACTL_HELP_H

/*
 * Lines without indent are paragraphs and are filled, except usage, which begins with the program's name. Indented
 * lines stay lines. The rest of an indented line that is too long goes below its text, in an example after a backslash.
 */
void help_print(const char *text);

#endif
