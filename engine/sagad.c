/* The program sagad: options, configuration, start, signals, drain and exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/mcp/fixtures.h"
#include "api/server.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/settings.h"
#include "dev/cluster.h"
#include "io/http/egress.h"
#include "io/http/server.h"
#include "io/loop/loop.h"
#include "io/postgres/environment.h"
#include "io/process/jq.h"
#include "io/process/manager.h"
#include "io/process/programs.h"
#include "mcp_bridge.h"
#include "mcp_tools.h"
#include "run/engine.h"
#include "run/saga/retention_rules.h"
#include "store/lease/accept_history.h"
#include "store/least_rights.h"
#include "store/seal/payload_keys.h"
#include "store/seal/rekey.h"
#include "store/store.h"
#include "store/virtual_clock.h"
#include "traces.h"

#define MS_DAY (INT64_C(24) * 3600 * 1000)
#define DESCRIPTORS_SPARE 64
#define CONNECTIONS_LEAST 32
#define STOP_SPARE_MS 30000 /* for what comes before and after the drain: answers that are held, leases, commits */
#define PARK_AHEAD_MS 10000 /* a saga that goes on sooner stays in memory */

static const struct setting setting_table[] = {
    {"listen", SETTING_TEXT, NULL, API_LISTEN_DEFAULT, 0, 0,
     "ADDRESS:PORT of the HTTP API; other addresses than loopback need --tokens and TLS", false},
    {"database", SETTING_TEXT, NULL, "", 0, 0,
     "libpq connection string or URI; PG* variables and the service file hold where it is silent", true},
    {"tls-cert", SETTING_TEXT, NULL, NULL, 0, 0,
     "PEM file of the certificate of the HTTP API; read again on SIGHUP, like its key", false},
    {"tls-key", SETTING_TEXT, NULL, NULL, 0, 0, "PEM file of the key of --tls-cert, without a passphrase", false},
    {"tls-client-ca", SETTING_TEXT, NULL, NULL, 0, 0,
     "PEM file of the authorities of client certificates, and their CRLs; their names are rows of --tokens", false},
    {"behind-proxy", SETTING_SWITCH, NULL, NULL, 0, 0,
     "a proxy in front speaks TLS: plain HTTP may be served on other addresses than loopback", false},
    {"tokens", SETTING_TEXT, NULL, NULL, 0, 0, "file of bearer tokens (make rows with `sagactl token new`)", false},
    {"oidc-issuer", SETTING_TEXT, NULL, NULL, 0, 0,
     "URL of an issuer of OpenID Connect: JWTs that it has signed are tokens too; see schema/command-line.md", false},
    {"oidc-audience", SETTING_TEXT, NULL, NULL, 0, 0, "what \"aud\" of those JWTs says; needed with --oidc-issuer",
     false},
    {"oidc-role-claim", SETTING_TEXT, NULL, "sagad_role", 0, 0,
     "claim with the role, or with several names: a member of the JWT, or a JSON Pointer such as /realm_access/roles",
     false},
    {"oidc-roles", SETTING_TEXT, NULL, NULL, 0, 0,
     "which names of that claim give which role: GROUP=ROLE with commas between (default: roles by their own names)",
     false},
    {"oidc-namespace-claim", SETTING_TEXT, NULL, "sagad_namespace", 0, 0,
     "claim with the namespace, or with several; a member or a JSON Pointer", false},
    {"oidc-namespace", SETTING_TEXT, NULL, NULL, 0, 0, "namespace of all those JWTs, instead of a claim", false},
    {"secrets", SETTING_TEXT, NULL, NULL, 0, 0,
     "JSON file of names and texts for secret(\"name\"); SAGAD_SECRET_NAME serves too", false},
    {"payload-keys", SETTING_TEXT, NULL, NULL, 0, 0,
     "JSON file of keys: payloads in PostgreSQL are encrypted under them; see engine/encryption.md", false},
    {"quotas", SETTING_TEXT, NULL, NULL, 0, 0, "JSON file of what a namespace may ask of this engine", false},
    {"budgets", SETTING_TEXT, NULL, NULL, 0, 0,
     "JSON file of budgets of tools, namespaces, days and months; the same for all engines", false},
    {"notify", SETTING_TEXT, NULL, NULL, 0, 0,
     "JSON file of receivers of notifications: which events go where; the same for all engines", false},
    TRACES_SETTINGS,
    {"config", SETTING_TEXT, NULL, NULL, 0, 0, "JSON file of these settings", false},
    {"name", SETTING_TEXT, NULL, NULL, 0, 0, "name of this engine, shown to people (default: host name and process id)",
     false},
    {"dir", SETTING_TEXT, NULL, NULL, 0, 0, "`sagad dev`: folder of the private PostgreSQL cluster", false},
    {"clock", SETTING_TEXT, NULL, NULL, 0, 0,
     "`sagad dev`: \"virtual\" for a clock that `sagactl time` moves ahead (default: the real one)", false},
    {"lease", SETTING_DURATION, NULL, "10s", 2000, 600000,
     "how long shards stay ours without a renewal; a takeover takes this long", false},
    {"standby", SETTING_SWITCH, NULL, NULL, 0, 0,
     "take shards only while no engine lives that is no standby; answers requests all the same", false},
    {"drain", SETTING_DURATION, NULL, "6s", 0, 600000, "on SIGTERM: how long calls under way may take to settle",
     false},
    {"writers", SETTING_NUMBER, NULL, "4", 1, STORE_WRITERS_MAX,
     "database connections for appends; more than two at once are used while many wait", false},
    {"readers", SETTING_NUMBER, NULL, "2", 1, STORE_READERS_MAX, "database connections for reads", false},
    {"sagas-max", SETTING_NUMBER, NULL, "100000", 1, 10000000,
     "unfinished sagas in memory; starts beyond are refused with 503. Those that wait leave it, see park-after", false},
    {"rests-max", SETTING_NUMBER, "bytes", "67108864", 0, 1073741824,
     "memory for the states of runs whose calls ended a while ago: repeats of these read nothing. 0: none", false},
    {"park-after", SETTING_DURATION, NULL, "2s", 50, 86400000,
     "a saga that waits, for a time, a signal, a person or a lock, leaves memory after so long", false},
    {"retention", SETTING_TEXT, NULL, NULL, 0, 0,
     "how long ended sagas are kept whose definition does not say it, open sagas too, and runs after their last call: "
     "30d, or by namespace 30d,tests=1h (default: for ever)",
     false},
    {"forget-share", SETTING_NUMBER, "percent", "10", 1, 100,
     "of the time for removing ended sagas whose retention is over, while others wait for their commits; while they "
     "are overdue by ten minutes to an hour it grows to 50, where it is less, and there is no bound while nobody waits",
     false},
    {"bulk-rate", SETTING_NUMBER, NULL, "50", 1, 10000,
     "items of bulk jobs that this engine carries out a second, while it is not overloaded", false},
    {"bulk-items-max", SETTING_NUMBER, NULL, "20000", 1, 100000, "items of one bulk job", false},
    {"bulk-jobs-max", SETTING_NUMBER, NULL, "20", 1, 1000,
     "bulk jobs of a namespace that run, or that may be run; more are refused", false},
    {"bulk-keep", SETTING_DURATION, NULL, "30d", 1000, 31622400000,
     "how long a bulk job and the outcomes of its items are kept after its end", false},
    {"acts-keep", SETTING_NUMBER, "days", "400", 0, 730,
     "how long what persons and tokens did is kept; it leaves by whole months, and never before 31 days. 0: for ever",
     false},
    {"memory-max", SETTING_NUMBER, "bytes", "0", 0, INT64_MAX,
     "memory of this process; starts beyond are refused with 503. 0: half of what there is", false},
    {"commit-delay", SETTING_DURATION, NULL, "250ms", 10, 600000,
     "while commits take longer, starts and new calls are taken in more slowly and the rest refused with 503", false},
    {"call-delay", SETTING_DURATION, NULL, "2s", 10, 86400000,
     "the same while calls wait longer for a place among --calls-max", false},
    {"payload-max", SETTING_NUMBER, "bytes", "262144", 1024, 16777216, "largest input, arguments or result", false},
    {"response-max", SETTING_NUMBER, "bytes", "1048576", 1024, 67108864, "largest answer taken from a tool", false},
    {"egress-allow", SETTING_TEXT, NULL, NULL, 0, 0,
     "networks that tools may call although they are denied, such as 10.1.0.0/16,fd00::/8", false},
    {"egress-deny", SETTING_TEXT, NULL, NULL, 0, 0,
     "networks that tools may not call, over HTTP or as a database, and the words \"private\" and \"loopback\"; "
     "link-local and metadata addresses are denied as well",
     false},
    {"calls-max", SETTING_NUMBER, NULL, "256", 1, 10000,
     "calls under way at once; further ones queue, and the tools in the queue take turns", false},
    {"exec-user", SETTING_TEXT, NULL, NULL, 0, 0,
     "run the programs of tools as this user; needs root. Without it and --exec-as-me none runs", false},
    {"exec-as-me", SETTING_SWITCH, NULL, NULL, 0, 0,
     "run the programs of tools as the user of sagad: they can then do all that it can, and read its secrets", false},
    {"exec-path", SETTING_TEXT, NULL, NULL, 0, 0,
     "programs that tools may run: absolute paths of files and folders, with colons between them (default: any)",
     false},
    {"dumpable", SETTING_SWITCH, NULL, NULL, 0, 0,
     "let debuggers attach and cores be dumped, for this user's other processes too: both show secrets", false},
    {"exec-max", SETTING_NUMBER, NULL, "16", 1, 1000,
     "child processes at once; one tool has at most three quarters of them", false},
    {"connections-max", SETTING_NUMBER, NULL, "1024", 1, 65536,
     "client connections at once; an eighth more are told to come again", false},
    {"connections-per-address", SETTING_NUMBER, NULL, "0", 0, 65536,
     "client connections of one address at once; 0: no bound of its own (all clients of a proxy have its address)",
     false},
    {"waiting-max", SETTING_NUMBER, NULL, "10000", 1, 65536,
     "callers whose answers are held because they asked to wait; at most 7/8 of --connections-max", false},
    {"body-max", SETTING_NUMBER, "bytes", "1048576", 1024, 67108864, "largest request body", false},
    {"mcp-run-keys", SETTING_TEXT, NULL, NULL, 0, 0,
     "/mcp: members of _meta, with commas between, that hosts send anyway and that name the run of a call (default: "
     "see "
     "schema/mcp.md)",
     false},
    {"mcp-turn-keys", SETTING_TEXT, NULL, NULL, 0, 0, "the same for the turn; KEY#/POINTER is a value within a member",
     false},
    {"mcp-emission-keys", SETTING_TEXT, NULL, NULL, 0, 0, "the same for the emission", false},
    {"mcp-origins", SETTING_TEXT, NULL, NULL, 0, 0,
     "origins of web pages that may use /mcp, such as https://chat.example, with commas between", false},
    {"mcp-session-run", SETTING_SWITCH, NULL, NULL, 0, 0,
     "/mcp: give sessions to hosts of the older revisions, and take one for the run where nothing else says it (weak: "
     "hosts renew sessions)",
     false},
    {"log-level", SETTING_TEXT, NULL, "info", 0, 0, "debug, info, warn or error", false},
    {"log-format", SETTING_TEXT, NULL, NULL, 0, 0, "text or json (default: text on a terminal, else json)", false},
    {"risk-losing-acknowledged-work", SETTING_SWITCH, NULL, NULL, 0, 0,
     "run although PostgreSQL may forget what it committed (fsync, full_page_writes or synchronous_commit off)", false},
    {"check-config", SETTING_SWITCH, NULL, NULL, 0, 0, "say whether the settings are good, and exit", false},
    {"print-config", SETTING_SWITCH, NULL, NULL, 0, 0, "print each setting and where it came from, and exit", false},
    {"note", SETTING_TEXT, NULL, NULL, 0, 0,
     "`sagad accept-history`: why the database may go on without what is missing", false},
    {"role", SETTING_TEXT, NULL, "sagad_engine", 0, 0, "`sagad grants-sql`: the role of the engines in the database",
     false},
    {"help", SETTING_SWITCH, NULL, NULL, 0, 0, "this text", false},
    {"version", SETTING_SWITCH, NULL, NULL, 0, 0, "the version", false},
};

struct service { /* the root of everything on the loop */
    struct loop *loop;
    struct engine *engine;
    struct api *api;
    struct manager manager;
    struct settings settings;
    struct dev_cluster cluster;
    bool dev, stopping;
    int exit_code;
    struct api_options api_options;
    char dev_token[65];
    char token_path[DEV_PATH_BYTES + 16];
};

static void help(const struct settings *settings)
{
    struct buffer out;

    buffer_init(&out, 65536);
    settings_help(settings, isatty(STDOUT_FILENO) ? 80 : 0, &out);
    (void)printf("sagad runs sagas: it calls services step by step, logs every intent before and\n"
                 "every outcome after, and undoes in reverse what was done when a step fails for\n"
                 "good.\n\n"
                 "  sagad [SETTINGS]           run the service\n"
                 "  sagad dev [SETTINGS]       run it on a private PostgreSQL cluster\n"
                 "  sagad migrate [SETTINGS]   bring the schema of the database up to date\n"
                 "  sagad grants-sql           print the SQL that gives the role of the engines\n"
                 "                             the rights that it needs, and no more\n"
                 "  sagad rekey                put everything that is encrypted, and what is not\n"
                 "                             yet, under the active key of --payload-keys\n"
                 "  sagad accept-history       let engines go on in a database that has lost work;\n"
                 "                             without --note it shows what is missing\n"
                 "  sagad mcp ...              serve the Model Context Protocol over a pipe\n"
                 "  sagad mcp-tools ...        draft definitions of the tools of an MCP server\n\n"
                 "Settings: flag, then SAGAD_NAME in the environment, then the file of --config,\n"
                 "then the default.\n\n%s\n"
                 "Try it:  sagad dev            then, elsewhere:  sagactl --help\n"
                 "Exit codes: 0 ended as asked, 1 failed, 2 a setting is wrong.\n",
                 buffer_c(&out));
    buffer_fini(&out);
}

static enum err_code print_grants(const struct settings *settings, struct err *err)
{
    struct buffer out;

    buffer_init(&out, 65536);
    enum err_code code = least_rights_write(settings_text(settings, "role"), &out, err);

    if (code == ERR_OK && fputs(buffer_c(&out), stdout) < 0) {
        code = err_set(err, ERR_IO, "the statements cannot be written: %s", strerror(errno));
    }
    buffer_fini(&out);
    return code;
}

static void say(const char *line)
{
    (void)fprintf(stderr, "sagad: %s\n", line);
}

static int fail(const struct err *err)
{
    err_print(err, "sagad");
    return err_exit_code(err->code) ? err_exit_code(err->code) : 1;
}

static enum err_code rekey_database(const struct settings *settings, struct err *err)
{
    const char *path = settings_text(settings, "payload-keys");
    struct payload_keys *keys = path ? payload_keys_new(path, err) : NULL;
    enum err_code code = path && !keys ? err->code : rekey(settings_text(settings, "database"), keys, say, err);

    payload_keys_free(keys);
    return code;
}

static enum err_code set_up_log(const struct settings *settings, struct err *err)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    const char *level = settings_text(settings, "log-level"), *format = settings_text(settings, "log-format");
    enum log_format chosen = isatty(STDERR_FILENO) ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;

    if (format) {
        if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0) {
            return err_set(err, ERR_CONFIG, "the setting \"log-format\" is text or json, not \"%s\"", format);
        }
        chosen = strcmp(format, "text") == 0 ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    }
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        if (strcmp(level, levels[i]) == 0) {
            log_setup((enum log_level)i, chosen);
            return ERR_OK;
        }
    }
    return err_set(err, ERR_CONFIG, "the setting \"log-level\" is debug, info, warn or error, not \"%s\"", level);
}

static enum err_code read_settings(struct settings *settings, int argc, char **argv, const char **command,
                                   struct err *err)
{
    int word = 1;
    enum err_code code = settings_from_args(settings, argc, argv, 1, &word, err);

    if (code == ERR_OK && word < argc) {
        *command = argv[word];
        code = settings_from_args(settings, argc, argv, word + 1, &word, err);
        if (code == ERR_OK && word < argc) {
            code = err_set(err, ERR_CONFIG, "\"%s\" is not understood", argv[word]);
            err_hint(err, "sagad --help");
        }
    }
    if (code == ERR_OK) {
        code = settings_from_environment(settings, "SAGAD_", err);
    }
    if (code == ERR_OK && settings_text(settings, "config")) {
        code = settings_from_file(settings, settings_text(settings, "config"), err);
    }
    return code == ERR_OK ? set_up_log(settings, err) : code;
}

/* Hides the connection string, which may hold a password, because everybody can read the arguments of a process. The
 * settings have a copy. */
static void hide_database(int argc, char **argv)
{
    static const char flag[] = "--database";
    size_t len = sizeof(flag) - 1;

    for (int i = 1; i < argc; i++) {
        bool is_flag = strncmp(argv[i], flag, len) == 0;
        char *value = !is_flag               ? NULL
                      : argv[i][len] == '='  ? argv[i] + len + 1
                      : argv[i][len] == '\0' ? argv[i + 1]
                                             : NULL;

        if (value) {
            memset(value, '*', strlen(value));
        }
    }
}

/* --- the end --- */

static void on_drained(void *context)
{
    struct service *service = context;

    loop_stop(service->loop);
}

static void on_api_stopped(void *context)
{
    struct service *service = context;

    service->api = NULL;
    if (service->engine) {
        engine_drain(service->engine, settings_number(&service->settings, "drain"), on_drained, service);
    } else {
        loop_stop(service->loop);
    }
}

static void stop(struct service *service)
{
    if (service->stopping) {
        return;
    }
    service->stopping = true;
    log_info("draining");
    manager_stopping(&service->manager, settings_number(&service->settings, "drain") + STOP_SPARE_MS);
    if (service->api) {
        api_stop(service->api, on_api_stopped, service);
    } else {
        on_api_stopped(service);
    }
}

static void on_stop_signal(void *context)
{
    stop(context);
}

static void on_reload_signal(void *context)
{
    struct service *service = context;

    if (service->api) {
        api_reload(service->api);
    }
    manager_reloaded(&service->manager);
}

/* The line of `systemctl status`. */
static void on_describe(void *context, char out[MANAGER_STATUS_BYTES])
{
    const struct service *service = context;
    struct engine_health health = {.alive = false};

    if (service->engine) {
        engine_health(service->engine, &health);
    }
    if (service->stopping) {
        (void)snprintf(out, MANAGER_STATUS_BYTES, "draining: %lld calls under way",
                       (long long)gauge_value(GAUGE_CALLS_IN_FLIGHT));
    } else if (health.database && health.schema && health.leases && health.loaded) {
        (void)snprintf(out, MANAGER_STATUS_BYTES,
                       "ready: %lld shards, %lld sagas in memory, %lld cases wait for a person",
                       (long long)gauge_value(GAUGE_SHARDS_OWNED), (long long)gauge_value(GAUGE_SAGAS_LOADED),
                       (long long)gauge_value(GAUGE_ESCALATIONS_OPEN));
    } else {
        (void)snprintf(out, MANAGER_STATUS_BYTES, "not ready: %.120s",
                       health.err.message[0] ? health.err.message : "waiting for the database");
    }
}

static void on_refused(struct engine *engine, const struct err *err, void *context)
{
    struct service *service = context;

    (void)engine;
    service->exit_code = fail(err);
    stop(service);
}

/* --- the start --- */

static void on_ready(struct engine *engine, void *context)
{
    struct service *service = context;

    (void)engine;
    manager_ready(&service->manager);
    if (service->dev && service->api) {
        (void)fprintf(stderr, "sagad: ready at %s://%s\n", api_has_tls(service->api) ? "https" : "http",
                      api_address(service->api));
        if (settings_text(&service->settings, "tokens")) {
            (void)fprintf(stderr, "sagad: its tokens are those of %s\n", settings_text(&service->settings, "tokens"));
        } else if (isatty(STDERR_FILENO)) {
            (void)fprintf(stderr, "sagad: token %s (also in %s)\n", service->dev_token, service->token_path);
        } else { /* others may be able to read a file or a journal */
            (void)fprintf(stderr, "sagad: token in %s\n", service->token_path);
        }
    }
}

/* Is it a token that an earlier run has written? */
static bool is_dev_token(const char *text, ssize_t len)
{
    return len == 64 && strspn(text, "0123456789abcdef") == 64;
}

static enum err_code make_dev_token(struct service *service, struct err *err)
{
    struct digest random;

    if (!random_bytes(random.bytes, sizeof(random.bytes))) {
        return err_set(err, ERR_IO, "the kernel gave no random bytes for a token");
    }
    (void)snprintf(service->token_path, sizeof(service->token_path), "%s/token", service->cluster.directory);
    int fd = dev_file_open(service->token_path, 0600, err);

    if (fd < 0) {
        return err->code;
    }
    /* The token of an earlier run stays good, so that users of this folder need not log in again. */
    ssize_t got = read(fd, service->dev_token, sizeof(service->dev_token));

    if (!is_dev_token(service->dev_token, got)) {
        digest_hex(&random, service->dev_token);
        if (ftruncate(fd, 0) != 0 || pwrite(fd, service->dev_token, 64, 0) != 64) {
            (void)err_set(err, ERR_IO, "the token file %s cannot be written", service->token_path);
            err_detail(err, "%s", strerror(errno));
            (void)close(fd); /* the error above counts */
            return ERR_IO;
        }
    }
    service->dev_token[64] = '\0';
    (void)close(fd); /* written, and read back at the next start */
    return ERR_OK;
}

static bool has_virtual_clock(const struct settings *settings)
{
    return settings_text(settings, "clock") != NULL;
}

/* A clock that can be moved is for desks only. */
static enum err_code check_clock(const struct settings *settings, bool dev, struct err *err)
{
    const char *clock = settings_text(settings, "clock");
    enum err_code code = ERR_OK;

    if (clock && strcmp(clock, "virtual") != 0) {
        code = err_set(err, ERR_CONFIG, "the setting \"clock\" can only be virtual, not \"%s\"", clock);
        err_hint(err, "leave it out for the real time");
    } else if (clock && !dev) {
        code = err_set(err, ERR_CONFIG, "only `sagad dev` may have a virtual clock");
        err_hint(err, "leave --clock out: time is the database's");
    }
    return code;
}

static enum err_code start_dev(struct service *service, struct err *err)
{
    const bool is_virtual = has_virtual_clock(&service->settings);
    char directory[DEV_PATH_BYTES];
    const char *chosen = settings_text(&service->settings, "dir");

    (void)umask(077); /* nobody else may read what is in the folder */
    if (!chosen) {
        if (!dev_cluster_default_directory(is_virtual ? "dev-virtual-clock" : "dev", directory, sizeof(directory))) {
            return err_set(err, ERR_CONFIG, "`sagad dev` needs a folder: give --dir");
        }
        chosen = directory;
    }
    if (check_clock(&service->settings, true, err) != ERR_OK) {
        return err->code;
    }
    enum err_code code = dev_cluster_start(&service->cluster, chosen, say, err);

    if (code != ERR_OK) {
        return code;
    }
    service->dev = true;
    code = is_virtual ? virtual_clock_make(service->cluster.dsn, err) : ERR_OK;
    code = code == ERR_OK ? migrate(service->cluster.dsn, say, err) : code;
    return code == ERR_OK && !settings_text(&service->settings, "tokens") ? make_dev_token(service, err) : code;
}

static const char *engine_name(const struct settings *settings, char *out, size_t bytes)
{
    char host[64] = "host";

    if (settings_text(settings, "name")) {
        return settings_text(settings, "name");
    }
    (void)gethostname(host, sizeof(host) - 1); /* shown only to people */
    (void)snprintf(out, bytes, "%s:%d", host, (int)getpid());
    return out;
}

/*
 * Sets the bound on descriptors for everything that may be open at once, so that no client can take the descriptors
 * that sagas need. When the system gives fewer, fewer clients are accepted.
 */
static enum err_code bound_descriptors(const struct engine_options *engine, struct api_options *api, struct err *err)
{
    uint64_t others = (uint64_t)engine->calls_max + 4 * (uint64_t)engine->exec_max + (uint64_t)engine->writers +
                      (uint64_t)engine->readers + DESCRIPTORS_SPARE;
    uint64_t wanted = others + api->connections_max + http_server_surplus(api->connections_max);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) {
        return ERR_OK;
    }
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return ERR_OK;
    }
    if (limit.rlim_cur < others + CONNECTIONS_LEAST * 2) {
        (void)err_set(err, ERR_CONFIG, "this process may open %llu files only, which is too few",
                      (unsigned long long)limit.rlim_cur);
        err_detail(err, "--calls-max, --exec-max and the database take %llu of them", (unsigned long long)others);
        err_hint(err, "raise the limit (ulimit -n, LimitNOFILE=), or lower --calls-max");
        return ERR_CONFIG;
    }
    uint64_t left = limit.rlim_cur - others;

    api->connections_max = (uint32_t)(left - left / 5 - CONNECTIONS_LEAST / 2);
    log_warn("connections_max_lowered", LOG_I64("connections_max", api->connections_max),
             LOG_I64("files", (int64_t)limit.rlim_cur), LOG_TEXT("note", "raise the limit of open files for more"));
    return ERR_OK;
}

/* What a start goes by: the settings as the engine and its API take them. */
struct start {
    char name[96];
    struct egress egress;
    struct programs programs;
    struct payload_keys *payload_keys; /* NULL: none are set */
    struct engine_options engine;
    struct api_options api;
};

static void take_engine(struct service *service, struct start *start)
{
    const struct settings *settings = &service->settings;

    start->engine = (struct engine_options){
        .dsn = service->cluster.dsn[0] ? service->cluster.dsn : settings_text(settings, "database"),
        .engine_name = engine_name(settings, start->name, sizeof(start->name)),
        .version = SAGAD_VERSION,
        .virtual_clock = service->dev && has_virtual_clock(settings),
        .standby = settings_switch(settings, "standby"),
        .lease_ms = settings_number(settings, "lease"),
        .writers = (int)settings_number(settings, "writers"),
        .readers = (int)settings_number(settings, "readers"),
        .sagas_max = (size_t)settings_number(settings, "sagas-max"),
        .rests_bytes_max = (size_t)settings_number(settings, "rests-max"),
        .park_after_ms = settings_number(settings, "park-after"),
        .park_ahead_ms = PARK_AHEAD_MS,
        .retention = settings_text(settings, "retention"),
        .forget_share = settings_number(settings, "forget-share"),
        .bulk_rate = settings_number(settings, "bulk-rate"),
        .bulk_items_max = (size_t)settings_number(settings, "bulk-items-max"),
        .bulk_jobs_max = (size_t)settings_number(settings, "bulk-jobs-max"),
        .bulk_keep_ms = settings_number(settings, "bulk-keep"),
        .acts_keep_ms = settings_number(settings, "acts-keep") * 86400000,
        .memory_bytes_max = (size_t)settings_number(settings, "memory-max"),
        .commit_delay_ms = settings_number(settings, "commit-delay"),
        .call_delay_ms = settings_number(settings, "call-delay"),
        .payload_bytes_max = (size_t)settings_number(settings, "payload-max"),
        .response_bytes_max = (size_t)settings_number(settings, "response-max"),
        .calls_max = (uint32_t)settings_number(settings, "calls-max"),
        .exec_max = (uint32_t)settings_number(settings, "exec-max"),
        .secrets_file = settings_text(settings, "secrets"),
        .notify_file = settings_text(settings, "notify"),
        .traces = traces_read(settings),
        .quotas_file = settings_text(settings, "quotas"),
        .budgets_file = settings_text(settings, "budgets"),
        .risk_losing_acknowledged_work = settings_switch(settings, "risk-losing-acknowledged-work"),
        .egress = &start->egress,
        .programs = &start->programs,
        .payload_keys = start->payload_keys,
        .on_ready = on_ready,
        .on_refused = on_refused,
        .context = service};
}

static void take_api(struct service *service, struct start *start)
{
    const struct settings *settings = &service->settings;

    start->api = (struct api_options){
        .listen = settings_text(settings, "listen"),
        .tls_cert_file = settings_text(settings, "tls-cert"),
        .tls_key_file = settings_text(settings, "tls-key"),
        .tls_client_ca_file = settings_text(settings, "tls-client-ca"),
        .behind_proxy = settings_switch(settings, "behind-proxy"),
        .tokens_file = settings_text(settings, "tokens"),
        .oidc = {.issuer = {.url = settings_text(settings, "oidc-issuer"),
                            .audience = settings_text(settings, "oidc-audience"),
                            .egress = &start->egress},
                 .role_claim = settings_text(settings, "oidc-role-claim"),
                 .namespace_claim = settings_text(settings, "oidc-namespace-claim"),
                 .roles = settings_text(settings, "oidc-roles"),
                 .namespace = settings_text(settings, "oidc-namespace")},
        .dev_token = service->dev && !settings_text(settings, "tokens") ? service->dev_token : NULL,
        .connections_max = (uint32_t)settings_number(settings, "connections-max"),
        .connections_per_ip_max = (uint32_t)settings_number(settings, "connections-per-address"),
        .waiting_max = (uint32_t)settings_number(settings, "waiting-max"),
        .body_bytes_max = (size_t)settings_number(settings, "body-max"),
        .mcp_run_keys = settings_text(settings, "mcp-run-keys"),
        .mcp_turn_keys = settings_text(settings, "mcp-turn-keys"),
        .mcp_emission_keys = settings_text(settings, "mcp-emission-keys"),
        .mcp_origins = settings_text(settings, "mcp-origins"),
        .mcp_session_run = settings_switch(settings, "mcp-session-run"),
        .mcp_wait_ms = mcp_fixtures.wait_ms,
        .mcp_progress_ms = mcp_fixtures.progress_ms,
        .version = SAGAD_VERSION};
}

/* Reads the settings as a start needs them, and does nothing yet. start_fini() ends what it has begun. */
static enum err_code start_read(struct service *service, struct start *start, struct err *err)
{
    const struct settings *settings = &service->settings;
    const char *user = settings_text(settings, "exec-user");

    *start = (struct start){.engine = {.dsn = NULL}};
    /* `sagad dev` belongs to its developer, and so do the programs. */
    enum err_code code =
        programs_read(&start->programs, user, settings_switch(settings, "exec-as-me") || (service->dev && !user),
                      settings_text(settings, "exec-path"), err);

    if (code != ERR_OK) {
        return code;
    }
    code = check_clock(settings, service->dev, err);
    if (code != ERR_OK) {
        return code;
    }
    if (settings_text(settings, "payload-keys")) {
        start->payload_keys = payload_keys_new(settings_text(settings, "payload-keys"), err);
        if (!start->payload_keys) {
            return err->code;
        }
    }
    take_engine(service, start);
    take_api(service, start);
    code = egress_read(&start->egress, settings_text(settings, "egress-allow"), settings_text(settings, "egress-deny"),
                       err);
    code = code == ERR_OK ? retention_rules_check(start->engine.retention, err) : code;
    code = code == ERR_OK ? bound_descriptors(&start->engine, &start->api, err) : code;
    if (code == ERR_OK && (start->api.tls_cert_file != NULL) != (start->api.tls_key_file != NULL)) {
        code = err_set(err, ERR_CONFIG, "TLS needs a certificate and its key, and only one of them is given");
        err_hint(err, "give both --tls-cert and --tls-key");
    }
    if (code == ERR_OK && start->api.tls_client_ca_file && !(start->api.tls_cert_file && start->api.tokens_file)) {
        code =
            err_set(err, ERR_CONFIG, "client certificates need TLS, and rows of the tokens file that say who they are");
        err_hint(err, "give --tls-cert, --tls-key and --tokens with --tls-client-ca");
    }
    return code;
}

static void start_fini(struct start *start)
{
    programs_fini(&start->programs);
    payload_keys_free(start->payload_keys);
}

/* --check-config: every setting that a start would refuse is refused. It connects to nothing and takes no port. */
static enum err_code check_config(struct service *service, bool dev, struct err *err)
{
    struct start start;

    service->dev = dev;
    enum err_code code = start_read(service, &start, err);

    service->dev = false; /* no cluster was started */
    code = code == ERR_OK ? engine_check(&start.engine, err) : code;
    code = code == ERR_OK ? api_check(&start.api, err) : code;
    start_fini(&start);
    return code;
}

static int serve(struct service *service)
{
    struct err err = {0};
    struct arena arena;
    struct start start;

    if (start_read(service, &start, &err) != ERR_OK) {
        start_fini(&start);
        return fail(&err);
    }
    if (settings_switch(&service->settings, "exec-as-me") && geteuid() == 0) {
        log_warn("exec_as_root",
                 LOG_TEXT("note", "programs of tools run as root; name a user of their own with --exec-user"));
    }
    service->loop = loop_new();
    if (manager_open(&service->manager, service->loop, on_describe, service, &err) != ERR_OK) {
        loop_free(service->loop);
        start_fini(&start);
        return fail(&err);
    }
    loop_on_signal(service->loop, SIGTERM, on_stop_signal, service);
    loop_on_signal(service->loop, SIGINT, on_stop_signal, service);
    loop_on_signal(service->loop, SIGHUP, on_reload_signal, service);
    arena_init(&arena, 1024);
    start.engine.dsn = db_environment_take(start.engine.dsn ? start.engine.dsn : "", &arena);
    service->engine = engine_start(service->loop, &start.engine); /* it keeps the string */
    arena_fini(&arena);
    if (!service->engine) {
        service->exit_code = 2; /* the sentence has been printed */
    } else {
        service->api = api_start(service->loop, service->engine, &start.api, &err);
        if (!service->api) {
            service->exit_code = fail(&err);
            stop(service);
        } else {
            log_info("listening", LOG_TEXT("address", api_address(service->api)));
            if (!api_has_tokens(service->api)) {
                log_warn("no_tokens",
                         LOG_TEXT("note", "no tokens are configured: every local user is admin; see --tokens"));
            }
        }
        loop_run(service->loop);
    }
    manager_close(&service->manager);
    engine_free(service->engine);
    loop_free(service->loop);
    start_fini(&start);
    return service->exit_code;
}

int main(int argc, char **argv)
{
    static struct service service;
    struct err err = {0};
    const char *command = NULL;
    int exit_code = 0;

    /* Before anything is read: no other process of this user may look into this one, nor into its helpers. */
    (void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
    jq_prepare();
    (void)signal(SIGPIPE, SIG_IGN); /* a peer that left shows as an error of its write */
    if (argc > 1 && strcmp(argv[1], "mcp") == 0) {
        return mcp_bridge(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "mcp-tools") == 0) {
        return mcp_tools(argc - 1, argv + 1); /* not a service: it has options of its own */
    }
    settings_init(&service.settings, setting_table, COUNT_OF(setting_table));
    exit_code = read_settings(&service.settings, argc, argv, &command, &err) == ERR_OK ? 0 : fail(&err);
    hide_database(argc, argv);
    if (exit_code != 0) {
        /* the fault was already printed */
    } else if (settings_switch(&service.settings, "dumpable") && prctl(PR_SET_DUMPABLE, 1) != 0) {
        exit_code = 1; /* it cannot fail */
    } else if (settings_switch(&service.settings, "help") || (command && strcmp(command, "help") == 0)) {
        help(&service.settings);
    } else if (settings_switch(&service.settings, "version")) {
        (void)printf("sagad %s\n", SAGAD_VERSION);
    } else if (settings_switch(&service.settings, "print-config")) {
        struct buffer out;

        buffer_init(&out, 65536);
        settings_print(&service.settings, &out);
        (void)fputs(buffer_c(&out), stdout);
        buffer_fini(&out);
    } else if (settings_switch(&service.settings, "check-config")) {
        if (check_config(&service, command && strcmp(command, "dev") == 0, &err) != ERR_OK) {
            exit_code = fail(&err);
        } else {
            (void)printf("the settings are good\n");
        }
    } else if (command && strcmp(command, "migrate") == 0) {
        if (migrate(settings_text(&service.settings, "database"), say, &err) != ERR_OK) {
            exit_code = fail(&err);
        }
    } else if (command && strcmp(command, "grants-sql") == 0) {
        if (print_grants(&service.settings, &err) != ERR_OK) {
            exit_code = fail(&err);
        }
    } else if (command && strcmp(command, "rekey") == 0) {
        if (rekey_database(&service.settings, &err) != ERR_OK) {
            exit_code = fail(&err);
        }
    } else if (command && strcmp(command, "accept-history") == 0) {
        const char *who = getenv("SUDO_USER") ? getenv("SUDO_USER") : getenv("USER");

        if (accept_history(settings_text(&service.settings, "database"), who ? who : "somebody",
                           settings_text(&service.settings, "note"), say, &err) != ERR_OK) {
            exit_code = fail(&err);
        }
    } else if (command && strcmp(command, "dev") != 0) {
        (void)err_set(&err, ERR_CONFIG, "there is no command \"%s\"", command);
        err_hint(&err, "sagad --help");
        exit_code = fail(&err);
    } else if (command && start_dev(&service, &err) != ERR_OK) {
        exit_code = fail(&err);
    } else {
        exit_code = serve(&service);
    }
    if (service.dev) {
        dev_cluster_stop(&service.cluster);
    }
    settings_fini(&service.settings);
    return exit_code;
}
