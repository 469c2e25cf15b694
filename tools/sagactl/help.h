/* Help of commands, printed within 80 columns. */
#ifndef SAGACTL_HELP_H
#define SAGACTL_HELP_H

/*
 * Lines without indent are paragraphs and are filled, but for usage, which begins with the program's name. Indented
 * ones stay lines: what is too long goes on below its text, and an example with a backslash.
 */
void help_print(const char *text);

#endif
