/* What machines ask: alive, ready, metrics, statistics, the description of this API. */
#include "api/openapi.h"
#include "api/request.h"
#include "base/metric.h"
#include "base/utf8.h"

#define METRICS_BYTES_MAX (8 << 20) /* a few lines for each tool */
#define NAME_BYTES_MAX 128

void handle_livez(struct api_request *request)
{
    request_answer_json(request, 200, SLICE("{\"status\":\"alive\"}"));
}

void handle_readyz(struct api_request *request)
{
    struct engine_health health = {0};
    struct slice verbose = request_query(request, "verbose"); /* "?verbose" alone counts */
    struct buffer out;
    struct json_writer w;

    engine_health(request->api->engine, &health);
    bool draining = health.draining || request->api->stopping;
    bool ready = health.database && health.schema && health.leases && health.loaded && !draining;

    buffer_init(&out, 4096);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "status", ready ? "ready" : "not_ready");
    json_write_bool(&w, "database", health.database);
    json_write_bool(&w, "schema", health.schema);
    json_write_bool(&w, "leases", health.leases);
    json_write_bool(&w, "loaded", health.loaded);
    json_write_bool(&w, "draining", draining);
    if (!ready && health.err.message[0]) {
        json_write_text(&w, "reason", health.err.message);
        if (health.err.hint[0]) {
            json_write_text(&w, "hint", health.err.hint);
        }
    }
    if (verbose.ptr && !slice_is(verbose, "false")) {
        json_array_begin(&w, "warnings");
        if (health.warning) {
            json_write_text(&w, NULL, health.warning);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    struct slice text = arena_slice(request->arena, buffer_slice(&out));

    buffer_fini(&out);
    if (!ready) {
        http_answer_header(request->exchange, "Retry-After", SLICE("2"));
    }
    request_answer_json(request, ready ? 200 : 503, text);
}

/* An alert rule sees by this that whoever scrapes here hears nothing of the process. */
static const char partial[] = "# HELP sagad_metrics_partial 1 where only the tools of one namespace are shown\n"
                              "# TYPE sagad_metrics_partial gauge\n"
                              "sagad_metrics_partial 1\n";

void handle_metrics(struct api_request *request)
{
    struct buffer out;

    bool whole = request_sees_all(request);

    buffer_init(&out, METRICS_BYTES_MAX);
    /* First: it brings gauges up to date. */
    engine_write_tool_metrics(request->api->engine, whole ? SLICE_NONE : request->asked.namespace, &out);
    if (whole) {
        metric_render(&out);
    } else {
        buffer_put_text(&out, partial);
    }
    struct slice text = arena_slice(request->arena, buffer_slice(&out));

    buffer_fini(&out);
    request_answer_text(request, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

void handle_get_stats(struct api_request *request)
{
    request->asked.in.stats.engines = request_sees_all(request);
    request_ask(request, engine_get_stats, request_on_answer);
}

void handle_get_series(struct api_request *request)
{
    struct engine_request *asked = &request->asked;
    struct slice by = request_query(request, "by");

    if (!request_read_instant(request, "from", &asked->in.series.from_ms) ||
        !request_read_instant(request, "to", &asked->in.series.until_ms)) {
        return;
    }
    if (by.ptr && !slice_is(by, "saga") && !slice_is(by, "tool")) {
        request_problem(request, ERR_MALFORMED, "the query parameter \"by\" is saga or tool");
        return;
    }
    asked->in.series.by = !by.ptr ? SERIES_BY_ALL : slice_is(by, "saga") ? SERIES_BY_SAGA : SERIES_BY_TOOL;
    asked->in.series.name = request_query(request, "name");
    if (asked->in.series.name.ptr && (!by.ptr || !text_is_plain(asked->in.series.name, NAME_BYTES_MAX))) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"name\" is the name of one saga or tool, beside \"by\"");
        return;
    }
    request_ask(request, engine_get_series, request_on_answer);
}

void handle_get_engines(struct api_request *request)
{
    if (!request_sees_all(request)) {
        request_problem(request, ERR_FORBIDDEN,
                        "engines belong to all namespaces: this needs an admin of the namespace \"*\"");
        return;
    }
    request_ask(request, engine_get_engines, request_on_answer);
}

void handle_openapi(struct api_request *request)
{
    request_answer_json(request, 200, (struct slice){api_openapi, (size_t)(api_openapi_end - api_openapi)});
}

void handle_root(struct api_request *request)
{
    request_answer_text(request, 200, "text/plain; charset=utf-8",
                        SLICE("This is sagad, an engine for sagas.\n\n"
                              "/console/         shows and does all of it in a browser\n"
                              "/v1/openapi.json  describes the API\n"
                              "/readyz           says whether it is in order\n"
                              "/metrics          counts, for Prometheus\n\n"
                              "On a terminal, `sagactl --help` is the place to start.\n"));
}
