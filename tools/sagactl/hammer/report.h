/* Reports the trials and the verdict, to people and to programs. */
#ifndef SAGACTL_HAMMER_REPORT_H
#define SAGACTL_HAMMER_REPORT_H

#include "tools/sagactl/hammer/hammer.h"

void report_print(struct hammer *hammer, const struct declared *declared, const struct verdict *verdict);

#endif
