/* Looks at a database as sagad would, without a sagad: with the store's own connections and checks. */
#ifndef SAGACTL_DOCTOR_LOOK_H
#define SAGACTL_DOCTOR_LOOK_H

#include "tools/sagactl/doctor/diagnosis.h"

/* Adds what is found. It waits for 20 s at most for an answer. */
void look_at_database(struct diagnosis *d, const char *dsn);

#endif
