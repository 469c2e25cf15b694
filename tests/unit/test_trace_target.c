/* Where traces go: the settings, the sentence for each fault, and what each request says about its origin. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "run/trace/target.h"
#include "tests/lib/test.h"

static const struct {
    const char *name;
    struct trace_settings settings;
    const char *url, *resource; /* NULL: refused; part of the JSON */
    const char *why;
} cases[] = {
    {"nothing is said, and nothing is sent", {0}, "", NULL, NULL},
    {"the path is added to the endpoint",
     {.endpoint = "http://127.0.0.1:4318"},
     "http://127.0.0.1:4318/v1/traces",
     "\"key\":\"service.name\",\"value\":{\"stringValue\":\"sagad\"}",
     NULL},
    {"also behind a path", {.endpoint = "https://c.example/otlp/"}, "https://c.example/otlp/v1/traces", NULL, NULL},
    {"the URL of traces is taken as it is",
     {.endpoint = "http://a.example", .traces_endpoint = "http://b.example/x"},
     "http://b.example/x",
     NULL,
     NULL},
    {"attributes are decoded",
     {.endpoint = "http://a.example", .resource = "team=a%20b, region=eu"},
     "http://a.example/v1/traces",
     "{\"key\":\"team\",\"value\":{\"stringValue\":\"a b\"}},{\"key\":\"region\"",
     NULL},
    {"service.name may be an attribute",
     {.endpoint = "http://a.example", .resource = "service.name=shop"},
     "http://a.example/v1/traces",
     "[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}},{\"key\":\"service.version\"",
     NULL},
    {"and the name of the service beats it",
     {.endpoint = "http://a.example", .resource = "service.name=shop", .service = "till"},
     "http://a.example/v1/traces",
     "[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"till\"}},{\"key\":\"service.version\"",
     NULL},
    {"another scheme", {.endpoint = "grpc://a.example:4317"}, NULL, NULL, "--otlp-endpoint is not the URL"},
    {"no host", {.traces_endpoint = "http://"}, NULL, NULL, "--otlp-traces-endpoint is not the URL"},
    {"a header without a value",
     {.endpoint = "http://a.example", .headers = "a=b,secret"},
     NULL,
     NULL,
     "element 2 of --otlp-headers is not NAME=VALUE"},
    {"a header that would begin another one",
     {.endpoint = "http://a.example", .headers = "a=b%0d%0ac"},
     NULL,
     NULL,
     "element 1 of --otlp-headers is no header"},
    {"a percent sign alone",
     {.endpoint = "http://a.example", .resource = "a=100%"},
     NULL,
     NULL,
     "element 1 of --otlp-resource is not NAME=VALUE"},
};

TEST(a_target_is_read_or_refused_with_a_sentence)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trace_target target;
        struct err err = {0};
        enum err_code code = trace_target_read(&target, &cases[i].settings, "one", "1.2", &err);

        if (!cases[i].url) {
            if (code != ERR_CONFIG || !strstr(err.message, cases[i].why)) {
                fail_msg("%s: %s", cases[i].name, err.message);
            }
            assert_null(strstr(err.message, "secret"));
        } else if (code != ERR_OK || !slice_is(target.url.ptr ? target.url : SLICE(""), cases[i].url)) {
            fail_msg("%s: \"%.*s\" %s", cases[i].name, SLICE_ARG(target.url), err.message);
        } else if (cases[i].resource) {
            assert_non_null(strstr(arena_text(&target.arena, target.resource), cases[i].resource));
        }
        trace_target_fini(&target);
        assert_int_equal(trace_target_check(&cases[i].settings, &err), cases[i].url ? ERR_OK : ERR_CONFIG);
    }
}

TEST(a_sampler_is_read_as_opentelemetry_names_it)
{
    static const struct {
        const char *name, *arg;
        bool asks_parent;
        uint64_t below;
        const char *why; /* NULL: it is good */
    } samplers[] = {
        {NULL, NULL, true, TRACE_SAMPLE_ALL, NULL},
        {"always_on", NULL, false, TRACE_SAMPLE_ALL, NULL},
        {"always_off", NULL, false, 0, NULL},
        {"traceidratio", "0.5", false, TRACE_SAMPLE_ALL / 2, NULL},
        {"traceidratio", "0", false, 0, NULL},
        {"traceidratio", NULL, false, TRACE_SAMPLE_ALL, NULL},
        {"parentbased_always_on", NULL, true, TRACE_SAMPLE_ALL, NULL},
        {"parentbased_always_off", NULL, true, 0, NULL},
        {"parentbased_traceidratio", "1.0", true, TRACE_SAMPLE_ALL, NULL},
        {"jaeger_remote", NULL, false, 0, "--otlp-sampler is none that sagad knows"},
        {NULL, "0.1", false, 0, "--otlp-sampler-arg needs a sampler that has a ratio"},
        {"always_on", "0.1", false, 0, "--otlp-sampler-arg needs a sampler that has a ratio"},
        {"traceidratio", "", false, 0, "--otlp-sampler-arg is no ratio"},
        {"traceidratio", "1.5", false, 0, "--otlp-sampler-arg is no ratio"},
        {"traceidratio", "-1", false, 0, "--otlp-sampler-arg is no ratio"},
        {"traceidratio", "nan", false, 0, "--otlp-sampler-arg is no ratio"},
        {"traceidratio", "0.1.2", false, 0, "--otlp-sampler-arg is no ratio"},
    };

    for (size_t i = 0; i < COUNT_OF(samplers); i++) {
        struct trace_sampler sampler = {0};
        struct err err = {0};
        enum err_code code = trace_sampler_read(&sampler, samplers[i].name, samplers[i].arg, &err);

        if (code != (samplers[i].why ? ERR_CONFIG : ERR_OK) || sampler.asks_parent != samplers[i].asks_parent ||
            sampler.below != samplers[i].below || (samplers[i].why && strcmp(err.message, samplers[i].why) != 0)) {
            fail_msg("%zu: %s", i, err.message);
        }
    }
}

TEST(headers_are_sent_decoded_beside_the_type)
{
    struct trace_target target;
    struct err err = {0};
    const struct trace_settings settings = {.endpoint = "http://a.example",
                                            .headers = "authorization=Basic%20eDp5, x-team = a ,"};

    assert_int_equal(trace_target_read(&target, &settings, "one", "1.2", &err), ERR_OK);
    assert_int_equal(target.header_count, 3);
    assert_true(slice_is(target.headers[0].name, "authorization") && slice_is(target.headers[0].value, "Basic eDp5"));
    assert_true(slice_is(target.headers[1].name, "x-team") && slice_is(target.headers[1].value, "a"));
    assert_true(slice_is(target.headers[2].value, "application/json"));
    trace_target_fini(&target);
}

TEST_PROGRAM(NULL, NULL)
