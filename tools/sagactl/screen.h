/*
 * A terminal that is painted again and again: plain ANSI on the alternate screen, without a cursor; keys are read one
 * by one. A signal that ends the program, Ctrl-C among them, first restores the terminal.
 */
#ifndef SAGACTL_SCREEN_H
#define SAGACTL_SCREEN_H

#include "base/text.h"

bool screen_open(void); /* false: standard input and output are no terminal, and nothing was changed */
void screen_close(void);
/* Paints from the top. Text that is wider or longer than the terminal is cut. */
void screen_paint(struct slice text);
/* Waits until the time is over, the terminal has another size, or a key asks for a repaint (r, blank). False: somebody
 * typed q, or nobody types there any more. */
bool screen_pause(int64_t ms);

#endif
