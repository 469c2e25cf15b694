/* Whether new work is accepted: by tables of measures, and with a model of a service that has a queue. */
#include <string.h>

#include "base/check.h"
#include "run/intake/intake.h"
#include "tests/lib/test.h"

static struct intake_measures quiet(void)
{
    return (struct intake_measures){.queues = {[INTAKE_SAGAS] = {10, 1000}, [INTAKE_MEMORY] = {1 << 20, 1 << 30}},
                                    .delays = {[INTAKE_COMMIT_DELAY] = {5, 250}, [INTAKE_CALL_DELAY] = {0, 2000}}};
}

/* --- queues --- */

TEST(a_full_queue_takes_nothing_in_until_an_eighth_of_it_is_gone)
{
    static const struct {
        size_t now, max;
        enum intake_verdict verdict;
    } table[] = {
        {999, 1000, INTAKE_TAKEN}, {1000, 1000, INTAKE_FULL}, {999, 1000, INTAKE_FULL},
        {876, 1000, INTAKE_FULL},  {875, 1000, INTAKE_TAKEN}, {999, 1000, INTAKE_TAKEN},
        {5000, 1000, INTAKE_FULL}, {0, 1000, INTAKE_TAKEN},   {5000, 0, INTAKE_TAKEN}, /* not bounded */
        {1, 1, INTAKE_FULL},       {0, 1, INTAKE_TAKEN},
    };

    for (enum intake_queue queue = 0; queue < INTAKE_QUEUE_COUNT; queue++) {
        struct intake intake;
        int64_t now_ms = 1000;

        intake_init(&intake, now_ms);
        for (size_t i = 0; i < COUNT_OF(table); i++) {
            struct intake_measures measures = quiet();
            int64_t retry_after_ms = -1;

            measures.queues[queue].now = table[i].now;
            measures.queues[queue].max = table[i].max;
            now_ms += INTAKE_LOOK_MS;
            assert_true(intake_is_due(&intake, now_ms));
            intake_look(&intake, &measures, now_ms);
            assert_false(intake_is_due(&intake, now_ms));
            assert_int_equal(intake_take(&intake, now_ms, &retry_after_ms), table[i].verdict);
            assert_int_equal(intake_full(&intake), table[i].verdict == INTAKE_TAKEN ? INTAKE_QUEUE_COUNT : queue);
            assert_int_equal(retry_after_ms > 0, table[i].verdict != INTAKE_TAKEN);
        }
    }
}

TEST(a_queue_that_fills_within_a_millisecond_is_full)
{
    struct intake intake;
    struct intake_measures measures = quiet();
    int64_t retry_after_ms = 0;

    intake_init(&intake, 0);
    intake_look(&intake, &measures, 100);
    assert_int_equal(intake_take(&intake, 100, &retry_after_ms), INTAKE_TAKEN);
    measures.queues[INTAKE_SAGAS].now = measures.queues[INTAKE_SAGAS].max;
    intake_look(&intake, &measures, 100);
    assert_int_equal(intake_take(&intake, 100, &retry_after_ms), INTAKE_FULL);
}

TEST(a_refused_client_is_told_the_time_that_the_queue_needs_to_sink)
{
    struct intake intake;
    int64_t now_ms = 0, least = INT64_MAX, most = 0, sum = 0;

    intake_init(&intake, now_ms);
    for (int look = 0; look < 100; look++) { /* 100 sagas end in a second */
        struct intake_measures measures = quiet();

        for (int i = 0; i < 10; i++) {
            intake_ended(&intake);
        }
        measures.queues[INTAKE_SAGAS].now = look == 99 ? 1375 : 10; /* 500 above the mark */
        now_ms += INTAKE_LOOK_MS;
        intake_look(&intake, &measures, now_ms);
    }
    for (int i = 0; i < 1000; i++) {
        int64_t retry_after_ms = 0;

        assert_int_equal(intake_take(&intake, now_ms, &retry_after_ms), INTAKE_FULL);
        least = retry_after_ms < least ? retry_after_ms : least;
        most = retry_after_ms > most ? retry_after_ms : most;
        sum += retry_after_ms;
    }
    /* The pauses spread evenly around 5 s, from half of that to one and a half. */
    assert_in_range(least, 2400, 2600);
    assert_in_range(most, 7400, 7600);
    assert_in_range(sum / 1000, 4900, 5100);
}

/* --- delays --- */

TEST(a_delay_that_passes_is_borne)
{
    struct intake intake;
    int64_t now_ms = 0, retry_after_ms;

    intake_init(&intake, now_ms);
    for (int look = 0; look < 100; look++) {
        struct intake_measures measures = quiet();

        measures.delays[INTAKE_COMMIT_DELAY].ms = look % 3 < 2 ? 10000 : 0; /* in two looks out of three */
        now_ms += INTAKE_LOOK_MS;
        intake_look(&intake, &measures, now_ms);
        for (int i = 0; i < 1000; i++) {
            assert_int_equal(intake_take(&intake, now_ms, &retry_after_ms), INTAKE_TAKEN);
        }
    }
}

TEST(under_whatever_delay_a_few_a_second_are_taken_in)
{
    struct intake intake;
    int64_t now_ms = 0, retry_after_ms = 0;
    int taken = 0;

    intake_init(&intake, now_ms);
    for (int ms = 1; ms <= 60000; ms++) {
        struct intake_measures measures = quiet();

        measures.delays[INTAKE_CALL_DELAY].ms = INT64_MAX;
        now_ms++;
        if (intake_is_due(&intake, now_ms)) {
            intake_look(&intake, &measures, now_ms);
        }
        if (ms > 10000) {
            taken += intake_take(&intake, now_ms, &retry_after_ms) == INTAKE_TAKEN;
        }
    }
    assert_true(intake.paced);
    assert_int_equal(intake.worst, INTAKE_CALL_DELAY);
    assert_in_range(taken, 50 * INTAKE_PACE_MIN - 2, 50 * INTAKE_PACE_MIN + 2);
}

TEST(a_look_before_does_not_use_the_room_up)
{
    struct intake intake;
    struct intake_measures measures = quiet();
    int64_t now_ms = 0, retry_after_ms = 0;

    intake_init(&intake, now_ms);
    measures.delays[INTAKE_COMMIT_DELAY].ms = 1000;
    for (int look = 0; look < 5; look++) {
        now_ms += INTAKE_LOOK_MS;
        intake_look(&intake, &measures, now_ms);
    }
    for (int i = 0; i < 10; i++) {
        assert_false(intake_refuses(&intake, now_ms, &retry_after_ms));
    }
    assert_int_equal(intake_take(&intake, now_ms, &retry_after_ms), INTAKE_TAKEN);
    while (intake_take(&intake, now_ms, &retry_after_ms) == INTAKE_TAKEN) {
    }
    assert_true(intake_refuses(&intake, now_ms, &retry_after_ms));
}

/* --- a service --- */

/* The service finishes `capacity` sagas in a second; accepted work waits in one queue. */
struct service {
    struct intake intake;
    double capacity, queue, done, credit;
    int64_t now_ms, longest_ms;
    uint64_t offered, taken, refused;
};

static void service_run(struct service *service, double offered_per_second, int seconds)
{
    double due = 0;

    service->done = 0;
    service->longest_ms = 0;
    service->offered = service->taken = service->refused = 0;
    for (int ms = 0; ms < seconds * 1000; ms++) {
        service->now_ms++;
        service->credit = service->queue > 0 ? service->credit + service->capacity / 1000 : 0;
        for (; service->credit >= 1 && service->queue >= 1; service->credit--) {
            service->queue--;
            service->done++;
            intake_ended(&service->intake);
        }
        int64_t delay_ms = (int64_t)(service->queue * 1000 / service->capacity);

        service->longest_ms = delay_ms > service->longest_ms ? delay_ms : service->longest_ms;
        if (intake_is_due(&service->intake, service->now_ms)) {
            struct intake_measures measures = quiet();

            measures.delays[INTAKE_COMMIT_DELAY].ms = delay_ms;
            intake_look(&service->intake, &measures, service->now_ms);
        }
        for (due += offered_per_second / 1000; due >= 1; due--) {
            int64_t retry_after_ms = 0;
            bool taken = intake_take(&service->intake, service->now_ms, &retry_after_ms) == INTAKE_TAKEN;

            service->offered++;
            service->taken += taken;
            service->refused += !taken;
            service->queue += taken;
        }
    }
}

TEST(ten_times_the_load_leaves_the_goodput_and_bounds_the_delay)
{
    static const double capacities[] = {100, 1000, 20000};

    for (size_t i = 0; i < COUNT_OF(capacities); i++) {
        struct service service = {.capacity = capacities[i]};

        intake_init(&service.intake, 0);
        service_run(&service, capacities[i] * 0.8, 20);
        assert_int_equal(service.refused, 0);
        service_run(&service, capacities[i] * 10, 120);
        assert_true(service.done >= 0.9 * capacities[i] * 120);
        assert_true(service.longest_ms < 5000); /* sagas that came in before the first look */
        service_run(&service, capacities[i] * 10, 20);
        assert_true(service.longest_ms < 1000); /* and after it has settled */
        service_run(&service, capacities[i] * 0.8, 10);
        service_run(&service, capacities[i] * 0.8, 20);
        assert_int_equal(service.refused, 0);
        assert_false(service.intake.paced);
    }
}

/* Sagas that wait for people do not end. Then only the absence of delays can say that more work may come. */
TEST(a_pace_is_left_when_no_delay_is_left_although_nothing_ends)
{
    struct intake intake;
    int64_t now_ms = 0, retry_after_ms = 0;
    int taken = 0;

    intake_init(&intake, now_ms);
    for (int ms = 1; ms <= 6000; ms++) {
        struct intake_measures measures = quiet();

        measures.delays[INTAKE_COMMIT_DELAY].ms = ms > 1000 && ms < 2000 ? 1000 : 5;
        now_ms++;
        if (intake_is_due(&intake, now_ms)) {
            intake_look(&intake, &measures, now_ms);
        }
        for (int i = 0; i < 3; i++) {
            bool in = intake_take(&intake, now_ms, &retry_after_ms) == INTAKE_TAKEN;

            taken += in && ms > 4000;
        }
        if (ms == 2000) {
            assert_true(intake.paced);
        }
    }
    assert_false(intake.paced);
    assert_int_equal(taken, 3 * 2000);
}

TEST(a_service_that_becomes_slower_is_followed)
{
    struct service service = {.capacity = 10000};

    intake_init(&service.intake, 0);
    service_run(&service, 8000, 10);
    service.capacity = 500;
    service_run(&service, 8000, 30);
    service_run(&service, 8000, 30);
    assert_true(service.done >= 0.9 * 500 * 30);
    assert_true(service.longest_ms < 2000);
    service.capacity = 10000;
    service_run(&service, 8000, 10);
    service_run(&service, 8000, 20);
    assert_int_equal(service.refused, 0);
}

TEST_PROGRAM(NULL, NULL)
