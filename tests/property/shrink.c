/* See run.h. Leaves out events, steps, members and troubles of calls, as long as the run still fails. */
#include "tests/property/run.h"

#include <string.h>

#define TRIES_MAX 6000

struct shrinker {
    struct run *run;
    struct script *best;
    struct script trial;
    bool (*fails)(struct run *run, struct script *script);
    uint32_t tries;
};

static bool take_if_it_fails(struct shrinker *s)
{
    if (s->tries++ >= TRIES_MAX || !s->fails(s->run, &s->trial)) {
        return false;
    }
    *s->best = s->trial;
    return true;
}

static bool drop_events(struct shrinker *s)
{
    bool any = false;

    for (uint32_t size = s->best->event_count; size > 0; size /= 2) {
        for (uint32_t at = 0; at < s->best->event_count;) {
            uint32_t count = at + size > s->best->event_count ? s->best->event_count - at : size;

            s->trial = *s->best;
            memmove(&s->trial.events[at], &s->trial.events[at + count],
                    (s->trial.event_count - at - count) * sizeof(struct event));
            s->trial.event_count -= count;
            if (take_if_it_fails(s)) {
                any = true;
            } else {
                at += count;
            }
        }
    }
    return any;
}

static bool simplify_sketch(struct shrinker *s)
{
    bool any = false;

    for (uint32_t n = 0;;) {
        s->trial = *s->best;
        if (!sketch_simplify(&s->trial.sketch, n)) {
            return any;
        }
        if (take_if_it_fails(s)) {
            any = true;
        } else {
            n++;
        }
    }
}

static bool calm_down(struct shrinker *s)
{
    uint64_t names[NODES_MAX];
    uint32_t count;
    bool any = false;

    if (!s->fails(s->run, s->best)) { /* runs the script with the remaining steps */
        return false;
    }
    count = s->run->judge.count;
    for (uint32_t i = 0; i < count; i++) {
        names[i] = s->run->judge.nodes[i].name;
    }
    for (uint32_t i = 0; i < count && s->best->calm_count < CALM_MAX; i++) {
        bool known = false;

        for (uint32_t k = 0; k < s->best->calm_count; k++) {
            known = known || s->best->calm[k] == names[i];
        }
        s->trial = *s->best;
        s->trial.calm[s->trial.calm_count++] = names[i];
        any = (!known && take_if_it_fails(s)) || any;
    }
    return any;
}

void shrink(struct run *run, struct script *script, bool (*fails)(struct run *run, struct script *script))
{
    static struct shrinker s;
    bool any = true;

    s = (struct shrinker){.run = run, .best = script, .fails = fails};
    script->is_fixed = true;
    while (any && s.tries < TRIES_MAX) {
        any = drop_events(&s);
        any = simplify_sketch(&s) || any;
        any = calm_down(&s) || any;
    }
}
