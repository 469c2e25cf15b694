/* What the plays came to, as TAP, JSON or JUnit's XML. */
#ifndef SAGACTL_SCENARIO_REPORT_H
#define SAGACTL_SCENARIO_REPORT_H

#include "tools/sagactl/input_text.h"
#include "tools/sagactl/scenario/coverage.h"
#include "tools/sagactl/scenario/expect.h"

struct played { /* one scenario, after its stage is gone; in the arena of ctl */
    const struct input_text *file;
    const struct scenario *scenario;
    const struct difference *differences;
    size_t difference_count; /* 0: it went as expected */
    int64_t took_us;
};

struct report {
    const struct played *items;
    size_t count, failed;
    const struct coverage *coverage; /* one for each saga that has a scenario */
    size_t coverage_count;
    bool names_uncovered;
    int64_t took_us;
};

/* TAP 14, https://testanything.org/tap-version-14-specification.html */
void report_tap(struct ctl *ctl, const struct report *report);
void report_json(struct ctl *ctl, const struct report *report);
/* False: the file cannot be written, and it has printed a sentence. */
MUST_USE bool report_junit(struct ctl *ctl, const struct report *report, const char *path);

#endif
