/*
 * A terminal that is painted again and again: plain ANSI on the alternate screen, without a cursor, keys one by one.
 * A signal that ends the program, Ctrl-C among them, gives the terminal back first.
 */
#ifndef SAGACTL_SCREEN_H
#define SAGACTL_SCREEN_H

#include "base/text.h"

bool screen_open(void); /* false: standard input and output are no terminal, and nothing was changed */
void screen_close(void);
/* From the top; what is wider or longer than the terminal is cut. */
void screen_paint(struct slice text);
/* Until the time is over, the terminal has another size, or a key says so (r, blank). False: q, or nobody types there
 * any more. */
bool screen_pause(int64_t ms);

#endif
