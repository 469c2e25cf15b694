/* See notifier.h: the receivers of this engine. */
#include "run/notify/notifier.h"

#include <stdlib.h>

#include "run/notify/receiver.h"

struct notifier {
    struct notify_targets targets;
    struct receiver *receivers; /* one of each target */
};

struct notifier *notifier_new(struct engine *engine, const char *path, struct err *err)
{
    struct notifier *notifier = memory_alloc(sizeof(*notifier));

    if (notify_targets_load(&notifier->targets, path, err) != ERR_OK ||
        notify_targets_check(&notifier->targets, &engine->secrets, err) != ERR_OK) {
        notifier_free(notifier);
        return NULL;
    }
    notifier->receivers = memory_alloc((notifier->targets.count + 1) * sizeof(*notifier->receivers));
    for (size_t i = 0; i < notifier->targets.count; i++) {
        receiver_init(&notifier->receivers[i], engine, &notifier->targets.items[i]);
    }
    return notifier;
}

void notifier_look(struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->targets.count; i++) {
        receiver_look(&notifier->receivers[i]);
    }
}

void notifier_step(struct notifier *notifier, int64_t ms)
{
    for (size_t i = 0; i < notifier->targets.count; i++) {
        notifier->receivers[i].rests_until_boot_ms -= ms;
    }
}

int64_t notifier_rests_until_ms(const struct notifier *notifier)
{
    int64_t first_ms = 0;

    for (size_t i = 0; i < notifier->targets.count; i++) {
        const struct receiver *receiver = &notifier->receivers[i];
        const struct loop *loop = receiver->engine->loop;
        int64_t left_ms = receiver->rests_until_boot_ms - loop_boot_ms(loop);

        if (left_ms > 0 && (first_ms == 0 || loop_wall_ms(loop) + left_ms < first_ms)) {
            first_ms = loop_wall_ms(loop) + left_ms;
        }
    }
    return first_ms;
}

void notifier_stop(struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->targets.count; i++) {
        receiver_stop(&notifier->receivers[i]);
    }
}

bool notifier_sends(const struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->targets.count; i++) {
        if (receiver_sends(&notifier->receivers[i])) {
            return true;
        }
    }
    return false;
}

void notifier_free(struct notifier *notifier)
{
    if (!notifier) {
        return;
    }
    for (size_t i = 0; notifier->receivers && i < notifier->targets.count; i++) {
        receiver_fini(&notifier->receivers[i]);
    }
    free(notifier->receivers);
    notify_targets_fini(&notifier->targets);
    free(notifier);
}
