/* The commands check, apply, diff, retire and definitions. */
#include <stdio.h>
#include <string.h>

#include "io/process/jq.h"
#include "review/review.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"
#include "tools/sagactl/hammer/tried.h"
#include "tools/sagactl/namespaces.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/registered.h"

const char help_check[] =
    "sagactl check [--reading N] [--server URL] [--strict] [--hammered REPORT]... FILE...\n"
    "\n"
    "Checks definition documents: syntax, members, names, the terminal rule, settings of adapters,\n"
    "jq programs, and paths against the schemas and results they lead into. Tools and sagas of one\n"
    "file may be used by sagas of another. Prints every fault as\n"
    "FILE:LINE:COLUMN: POINTER: what is wrong, and warnings of what is allowed and seldom meant.\n"
    "Files are JSON, or YAML where their name ends with .yaml or .yml.\n"
    "Exits 0 when all is well, 1 when there are faults. \"-\" reads standard input.\n"
    "\n"
    "--server URL also looks at what is registered there. Without the flag no service is asked,\n"
    "whatever SAGACTL_SERVER says.\n"
    "\n"
    "--reading N lists what the document means otherwise now than a version that was registered under\n"
    "reading N: `sagactl apply` makes a next version of such a one.\n"
    "\n"
    "--strict also warns of each `effect` that promises something of a receiver and that nobody has\n"
    "tried. --hammered names a report of `sagactl hammer -o json`. A report counts for the text of the tool\n"
    "that it is about, and for the class that was declared; what it denies is a warning, too.\n"
    "\n"
    "  sagactl check order.json\n"
    "  sagactl check tools.yaml sagas/*.json\n"
    "  sagactl check --reading 1 tools.json\n"
    "  sagactl check --server http://localhost:8077 order.json\n"
    "  sagactl check --strict --hammered charge.report.json tools.json\n"
    "  sagactl check -o json order.json\n"
    "    {\"items\": [{\"file\", \"line\", \"column\", \"pointer\", \"detail\"}],\n"
    "     \"warnings\": [the same]}\n";

const char help_apply[] =
    "sagactl apply FILE... [--dry-run]\n"
    "\n"
    "Checks definition documents as `sagactl check` does and registers them, each file all or\n"
    "nothing. A changed body under the same name makes the next version; the same body again changes\n"
    "nothing, unless this release reads it otherwise than the one that registered it (see `sagactl check\n"
    "--help`, --reading). Running sagas keep the versions they started with. New ones take the newest\n"
    "version of each tool, also where the saga is of another file.\n"
    "\n"
    "--dry-run asks the service what would become of each, of all files together, and writes nothing;\n"
    "`sagactl diff` shows the places and what stands in them.\n"
    "\n"
    "  sagactl apply order.json\n"
    "  sagactl apply order.json --dry-run\n"
    "  sagactl apply tools.json sagas.json   in this order, so that sagas find their tools\n";

const char help_diff[] =
    "sagactl diff FILE...\n"
    "\n"
    "Says how definition documents differ from what is registered: a \"-\" before what stands there, a\n"
    "\"+\" before what an apply would put in its place. The service checks the documents, and nothing is\n"
    "written (role admin). Exits 0 when all is registered as it is, 1 when something differs.\n"
    "\n"
    "  sagactl diff order.json\n";

const char help_retire[] = "sagactl retire NAME --note TEXT\n"
                           "sagactl retire NAME --undo\n"
                           "\n"
                           "Registers the newest version of a saga once more with \"retired\": no saga of this\n"
                           "name is started any more, whatever the version. What runs goes on. The note is told\n"
                           "to whoever starts one: say what to start instead. --undo registers it without.\n"
                           "An `apply` of a file without \"retired\" undoes it, too.\n"
                           "\n"
                           "  sagactl retire trip --note \"use trip2\"\n"
                           "  sagactl retire trip --undo\n";

const char help_definitions[] =
    "sagactl definitions [NAME] [--version N | --versions] [--limit N] [--cursor C]\n"
    "\n"
    "Lists the registered sagas, a row a version, with how many sagas of it have not ended: a saga keeps\n"
    "the version that it started with. With NAME it prints that one as it was registered, or, with\n"
    "--versions, the rows of that one alone.\n"
    "\n"
    "  sagactl definitions\n"
    "  sagactl definitions order --versions\n"
    "  sagactl definitions order\n";

/* --- check --- */

struct findings { /* what was found in one file */
    const struct input_text *text;
    size_t item_count;
    struct faults faults, warnings;
};

static void write_findings(struct json_writer *w, const struct findings *findings, const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        struct text_position position = input_position(findings->text, faults->items[i].pointer);

        json_object_begin(w, NULL);
        json_write_text(w, "file", findings->text->path);
        if (position.line > 0) {
            json_write_i64(w, "line", position.line);
            json_write_i64(w, "column", position.column);
        }
        json_write_slice(w, "pointer", faults->items[i].pointer.ptr ? faults->items[i].pointer : SLICE(""));
        json_write_slice(w, "detail", faults->items[i].detail);
        json_object_end(w);
    }
}

static void print_findings_json(struct ctl *ctl, const struct findings *findings, size_t count)
{
    struct buffer out;
    struct json_writer w;

    buffer_init(&out, 64 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < count; i++) {
        write_findings(&w, &findings[i], &findings[i].faults);
    }
    json_array_end(&w);
    json_array_begin(&w, "warnings");
    for (size_t i = 0; i < count; i++) {
        write_findings(&w, &findings[i], &findings[i].warnings);
    }
    json_array_end(&w);
    json_object_end(&w);
    print_data(ctl, buffer_slice(&out));
    buffer_fini(&out);
}

static void print_findings(struct ctl *ctl, const struct findings *f)
{
    for (size_t i = 0; i < f->faults.count; i++) {
        input_print_fault(f->text, f->faults.items[i].pointer, f->faults.items[i].detail);
    }
    if (f->faults.dropped > 0) {
        (void)fprintf(stderr, "%s: and %zu more\n", f->text->path, f->faults.dropped);
    }
    for (size_t i = 0; i < f->warnings.count; i++) {
        const struct fault *warning = &f->warnings.items[i];

        input_print_fault(f->text, warning->pointer,
                          arena_printf(&ctl->arena, "warning: %.*s", SLICE_ARG(warning->detail)));
    }
    if (f->faults.count == 0) {
        (void)printf("%s: good, %zu definition%s", f->text->path, f->item_count, f->item_count == 1 ? "" : "s");
        if (f->warnings.count > 0) {
            (void)printf(", %zu warning%s", f->warnings.count, f->warnings.count == 1 ? "" : "s");
        }
        (void)printf("\n");
    }
}

static size_t review_files(struct ctl *ctl, size_t file_count, const struct input_text *texts,
                           const struct tool_source *source, enum reading reading, const struct reports *reports,
                           struct findings *findings)
{
    size_t fault_count = 0;

    for (size_t i = 0; i < file_count; i++) {
        struct findings *f = &findings[i];
        struct document document = {0};

        f->text = &texts[i];
        faults_init(&f->faults, &ctl->arena);
        faults_init(&f->warnings, &ctl->arena);
        documents_review(&texts[i], source, &ctl->arena, &f->faults, &document);
        f->item_count = document.item_count;
        if (f->faults.count == 0) {
            advice_warn(&document, &f->warnings);
            advice_differences(&document, reading, &f->warnings);
            if (reports) {
                tried_warn(&document, reports, &f->warnings);
            }
        }
        fault_count += f->faults.count;
    }
    return fault_count;
}

int cmd_check(struct ctl *ctl, int argc, char **argv)
{
    struct arguments files;
    const char *reading_text = NULL;
    struct option_values hammered = {.count = 0};
    bool helped = false, strict = false;
    const struct option options[] = {{"--reading", &reading_text, NULL, NULL},
                                     {"--strict", NULL, NULL, &strict},
                                     {"--hammered", NULL, &hammered, NULL},
                                     {NULL, NULL, NULL, NULL}};
    int64_t reading = READING_NEWEST;
    struct reports reports;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (reading_text &&
        (!slice_to_i64(slice_of(reading_text), &reading) || reading < READING_FIRST || reading > READING_NEWEST)) {
        return usage_error(ctl, "--reading takes the number that `sagactl definitions NAME -o json` shows, from 1 on");
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    if (hammered.count > 0 && !strict) {
        return usage_error(ctl, "--hammered is for --strict");
    }
    int loaded = reports_load(ctl, &hammered, &reports);

    if (loaded != EXIT_OK) {
        return loaded;
    }
    jq_prepare(); /* called while there is one thread and little memory */
    struct input_text *texts = arena_array(&ctl->arena, files.count, sizeof(*texts));
    struct known_documents known;
    struct tool_source source;

    for (size_t i = 0; i < files.count; i++) {
        if (!input_read(ctl, files.items[i], &texts[i])) {
            return EXIT_FAILED;
        }
    }
    documents_know(ctl, texts, files.count, &known, &source);
    struct registered registered = {.code = EXIT_OK};

    if (ctl->server_is_given && (registered.code = registered_open(&registered, ctl, &source)) != EXIT_OK) {
        registered_close(&registered);
        return registered.code;
    }
    struct findings *findings = arena_array(&ctl->arena, files.count, sizeof(*findings));
    size_t fault_count =
        review_files(ctl, files.count, texts, &source, (enum reading)reading, strict ? &reports : NULL, findings);

    registered_close(&registered);
    if (registered.code != EXIT_OK) { /* a part of the registered definitions says nothing about the files */
        return registered.code;
    }
    for (size_t i = 0; ctl->output != OUTPUT_DATA && i < files.count; i++) {
        print_findings(ctl, &findings[i]);
    }
    if (ctl->output == OUTPUT_DATA) {
        print_findings_json(ctl, findings, files.count);
    }
    return fault_count ? EXIT_FAILED : EXIT_OK;
}

/* --- apply --- */

/* A copy in another namespace has that in front. */
static struct slice name_of_item(struct ctl *ctl, struct slice item)
{
    struct slice name = show_member(ctl, item, "name");

    return json_member(item, "namespace").ptr
               ? arena_printf(&ctl->arena, "%.*s/%.*s", SLICE_ARG(show_member(ctl, item, "namespace")), SLICE_ARG(name))
               : name;
}

static void print_applied(struct ctl *ctl, struct slice answer)
{
    static const char *const titles[] = {"KIND", "NAME", "VERSION", "CHANGE", NULL};
    struct json_walk walk = json_walk(json_member(answer, "items"));
    struct table table;
    struct slice item;

    if (print_items(ctl, answer, "name")) {
        return;
    }
    table_init(&table, ctl, titles);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "kind");
        row[1].text = name_of_item(ctl, item);
        row[2].text = show_member(ctl, item, "version");
        row[3].text = show_member(ctl, item, "change");
        row[3].colour = slice_is(row[3].text, "created") ? COLOUR_GREEN : COLOUR_DIM;
    }
    table_print(&table, 0);
}

/* Joins all files to one document, so that sagas of one file find the tools of another. Faults name the lines of their
 * file. */
static int foresee(struct ctl *ctl, const struct arguments *files, struct slice *document, struct answer *answer)
{
    static const char *const kinds[] = {"tools", "sagas"};
    struct input_text *texts = arena_array(&ctl->arena, files->count, sizeof(*texts));
    struct buffer whole;
    struct json_writer w;
    struct slice item;

    for (size_t i = 0; i < files->count; i++) {
        if (!input_read_whole(ctl, files->items[i], &texts[i])) {
            return EXIT_FAILED;
        }
        if (files->count > 1 && json_type(texts[i].json) == JSON_OBJECT && json_member(texts[i].json, "share").ptr) {
            (void)fprintf(stderr, "sagactl: %s shares its definitions, so look at it alone\n", files->items[i]);
            return EXIT_FAILED;
        }
    }
    buffer_init(&whole, 64 << 20);
    json_writer_init(&w, &whole);
    json_object_begin(&w, NULL);
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        json_array_begin(&w, kinds[k]);
        for (size_t i = 0; i < files->count; i++) {
            struct slice items = json_member(texts[i].json, kinds[k]);
            struct json_walk walk = json_walk(items);

            while (json_type(items) == JSON_ARRAY && json_next_element(&walk, &item)) {
                json_write_raw(&w, NULL, item);
            }
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    *document = files->count == 1 ? texts[0].json : arena_slice(&ctl->arena, buffer_slice(&whole));
    buffer_fini(&whole);
    ctl->sent = files->count == 1 ? &texts[0] : NULL;
    int code = client_call(ctl, "POST", SLICE("/v1/definitions?dry_run=true"), *document, 60000, &ctl->arena, answer);

    ctl->sent = NULL;
    return code;
}

/* Returns "new", "same", or "next: /steps/1/with, /deadline". */
static struct slice foreseen_change(struct ctl *ctl, struct slice item)
{
    struct slice text = SLICE("next"), pointer, differs = json_member(item, "differs");
    struct json_walk walk = json_walk(differs);
    const char *before = ": ";

    if (json_string_is(json_member(item, "change"), "unchanged")) {
        return SLICE("same");
    }
    if (json_type(json_member(item, "registered")) == JSON_NULL) {
        return SLICE("new");
    }
    if (json_count(differs) == 0) {
        return SLICE("next: this release reads it otherwise");
    }
    while (json_next_element(&walk, &pointer)) {
        struct slice name = json_string(pointer, &ctl->arena);

        text = arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(text), before,
                            SLICE_ARG(name.len ? name : SLICE("the whole of it")));
        before = ", ";
    }
    return text;
}

static int apply_dry(struct ctl *ctl, const struct arguments *files)
{
    static const char *const titles[] = {"KIND", "NAME", "VERSION", "CHANGE", NULL};
    struct slice document, item;
    struct answer answer;
    struct table table;
    int code = foresee(ctl, files, &document, &answer);

    if (code != EXIT_OK || print_items(ctl, answer.body, "name")) {
        return code;
    }
    struct json_walk walk = json_walk(json_member(answer.body, "items"));

    table_init(&table, ctl, titles);
    while (json_next_element(&walk, &item)) {
        struct cell *row = table_row(&table);

        row[0].text = show_member(ctl, item, "kind");
        row[1].text = name_of_item(ctl, item);
        row[2].text = show_member(ctl, item, "version");
        row[3].text = foreseen_change(ctl, item);
        row[3].colour = slice_is(row[3].text, "same") ? COLOUR_DIM : COLOUR_GREEN;
    }
    table_print(&table, 0);
    (void)fputs("Nothing was registered: that was a dry run.\n", stderr);
    return EXIT_OK;
}

int cmd_apply(struct ctl *ctl, int argc, char **argv)
{
    struct arguments files;
    bool dry_run = false, helped = false;
    const struct option options[] = {{"--dry-run", NULL, NULL, &dry_run}, {NULL, NULL, NULL, NULL}};

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    if (dry_run) {
        return apply_dry(ctl, &files);
    }
    for (size_t i = 0; i < files.count; i++) {
        struct input_text text;
        struct answer answer;
        int code;

        if (!input_read_whole(ctl, files.items[i], &text)) {
            return EXIT_FAILED;
        }
        ctl->sent = &text;
        code = client_call(ctl, "POST", SLICE("/v1/definitions"), text.json, 60000, &ctl->arena, &answer);
        ctl->sent = NULL;
        if (code != EXIT_OK) {
            (void)fprintf(stderr, "%s was not registered%s\n", files.items[i], i ? "; the files before it were" : "");
            return code;
        }
        print_applied(ctl, answer.body);
    }
    return EXIT_OK;
}

/* --- diff --- */

static struct slice body_in(struct ctl *ctl, struct slice document, const char *kinds, struct slice name)
{
    struct json_walk walk = json_walk(json_member(document, kinds));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        if (slice_equal(json_string(json_member(item, "name"), &ctl->arena), name)) {
            return item;
        }
    }
    return SLICE_NONE;
}

static void print_side(const char *sign, struct slice pointer, struct slice value)
{
    if (value.ptr) {
        value = json_trim(value);
        (void)printf("  %s %.*s  %.*s\n", sign, SLICE_ARG(pointer), SLICE_ARG(value));
    }
}

static int print_difference(struct ctl *ctl, struct slice document, struct slice item)
{
    struct slice kind = show_member(ctl, item, "kind"), name = show_member(ctl, item, "name"), pointer;
    bool is_tool = slice_is(kind, "tool");
    struct json_walk walk = json_walk(json_member(item, "differs"));
    struct slice ours = body_in(ctl, document, is_tool ? "tools" : "sagas", name);
    struct answer answer;

    if (json_type(json_member(item, "registered")) == JSON_NULL) {
        (void)printf("%.*s %.*s is new\n", SLICE_ARG(kind), SLICE_ARG(name));
        return EXIT_OK;
    }
    (void)printf("%.*s %.*s, version %.*s\n", SLICE_ARG(kind), SLICE_ARG(name),
                 SLICE_ARG(show_member(ctl, item, "version")));
    int code = client_get(ctl,
                          arena_printf(&ctl->arena, "/v1/%s/%.*s", is_tool ? "tools" : "definitions",
                                       SLICE_ARG(url_escape(name, &ctl->arena))),
                          &ctl->arena, &answer);

    while (code == EXIT_OK && json_next_element(&walk, &pointer)) {
        struct slice at = json_string(pointer, &ctl->arena);

        print_side("-", at, json_at(json_member(answer.body, "body"), at));
        print_side("+", at, json_at(ours, at));
    }
    return code;
}

int cmd_diff(struct ctl *ctl, int argc, char **argv)
{
    struct arguments files;
    struct slice document, item;
    struct answer answer;
    bool helped = false, differs = false;

    if (!options_read(ctl, argc, argv, NULL, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    int code = foresee(ctl, &files, &document, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    bool printed = print_items(ctl, answer.body, "name");
    struct json_walk walk = json_walk(json_member(answer.body, "items"));

    while (code == EXIT_OK && json_next_element(&walk, &item)) {
        if (!json_string_is(json_member(item, "change"), "unchanged")) {
            differs = true;
            code = printed ? EXIT_OK : print_difference(ctl, document, item);
        }
    }
    return code != EXIT_OK ? code : differs ? EXIT_FAILED : EXIT_OK;
}

/* --- retire --- */

/* Makes a document of the registered saga, with or without `retired`. */
static struct slice retired_document(struct ctl *ctl, struct slice body, const char *note)
{
    struct json_walk walk = json_walk(body);
    struct slice name_raw, value;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, body.len + 65536);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "tools");
    json_array_end(&w);
    json_array_begin(&w, "sagas");
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, &ctl->arena);

        if (!slice_is(name, "retired")) {
            json_write_raw(&w, arena_text(&ctl->arena, name), value);
        }
    }
    if (note) {
        json_write_text(&w, "retired", note);
    }
    json_object_end(&w);
    json_array_end(&w);
    json_object_end(&w);
    struct slice made = arena_slice(&ctl->arena, buffer_slice(&text));

    buffer_fini(&text);
    return made;
}

int cmd_retire(struct ctl *ctl, int argc, char **argv)
{
    const char *note = NULL;
    bool undo = false, helped = false;
    const struct option options[] = {
        {"--note", &note, NULL, NULL}, {"--undo", NULL, NULL, &undo}, {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count != 1) {
        return usage_error(ctl, names.count ? "one definition at a time" : "which definition?");
    }
    if (undo == (note && slice_trim(slice_of(note)).len > 0)) {
        return usage_error(ctl, "say with --note TEXT what to start instead, or give --undo");
    }
    int code = client_get(
        ctl,
        arena_printf(&ctl->arena, "/v1/definitions/%.*s", SLICE_ARG(url_escape(slice_of(names.items[0]), &ctl->arena))),
        &ctl->arena, &answer);

    if (code == EXIT_OK) {
        struct slice document = retired_document(ctl, json_member(answer.body, "body"), undo ? NULL : note);

        code = client_call(ctl, "POST", SLICE("/v1/definitions"), document, 60000, &ctl->arena, &answer);
    }
    if (code == EXIT_OK) {
        print_applied(ctl, answer.body);
    }
    return code;
}

/* --- definitions --- */

int show_definition(struct ctl *ctl, const char *path, const char *name, const char *version)
{
    struct answer answer;
    int code =
        client_get(ctl,
                   arena_printf(&ctl->arena, "%s/%.*s%s%s", path, SLICE_ARG(url_escape(slice_of(name), &ctl->arena)),
                                version ? "?version=" : "", version ? version : ""),
                   &ctl->arena, &answer);

    if (code == EXIT_OK) {
        struct slice body = json_member(answer.body, "body");

        print_data(ctl, ctl->output != OUTPUT_DATA && body.ptr ? body : answer.body);
    }
    return code;
}

/* Adds a row for each version, the newest first, and shows which older ones have work left. */
static void put_versions(struct ctl *ctl, struct table *table, struct slice item)
{
    struct slice versions = json_member(item, "versions"), version, name = show_member(ctl, item, "name");
    struct json_walk walk = json_walk(versions);
    bool newest = true;

    while (json_type(versions) == JSON_ARRAY && json_next_element(&walk, &version)) {
        struct cell *row = table_row_of(table, item);

        row[0].text = name;
        row[0].colour = newest ? COLOUR_NONE : COLOUR_DIM;
        row[1].text = show_member(ctl, version, "version");
        row[2].text = show_age(ctl, version, "created_at");
        row[3].text = show_member(ctl, version, "unfinished");
        row[3].colour = slice_is(row[3].text, "0") ? COLOUR_DIM : COLOUR_BLUE;
        newest = false;
    }
}

/* Returns the list with only the definitions of this name. */
static struct slice only_named(struct ctl *ctl, struct slice body, const char *name)
{
    struct json_walk walk = json_walk(json_member(body, "items"));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        if (slice_is(show_member(ctl, item, "name"), name)) {
            return arena_printf(&ctl->arena, "{\"items\":[%.*s],\"next_cursor\":null}", SLICE_ARG(item));
        }
    }
    return SLICE_NONE;
}

int cmd_definitions(struct ctl *ctl, int argc, char **argv)
{
    static const char *const titles[] = {"NAME", "VERSION", "REGISTERED", "UNFINISHED", NULL};
    bool versions = false;
    const char *version = NULL, *limit = "500", *cursor = NULL;
    const struct option options[] = {{"--version", &version, NULL, NULL},
                                     {"--versions", NULL, NULL, &versions},
                                     {"--limit", &limit, NULL, NULL},
                                     {"--cursor", &cursor, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments names;
    struct answer answer;
    struct table table;
    struct slice item;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &names, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (names.count > 1) {
        return usage_error(ctl, "one name at most");
    }
    if (versions && version) {
        return usage_error(ctl, "--version N or --versions, not both");
    }
    if (ctl->all_namespaces && (names.count == 1 || cursor)) {
        return usage_error(ctl, "a name and a cursor are of one namespace: name it with -n");
    }
    if (names.count == 1 && !versions) {
        return show_definition(ctl, "/v1/definitions", names.items[0], version);
    }
    int code = namespaces_get(ctl,
                              arena_printf(&ctl->arena, "/v1/definitions?limit=%s%s%s", limit, cursor ? "&cursor=" : "",
                                           cursor ? cursor : ""),
                              "", limit, &answer);

    if (code != EXIT_OK) {
        return code;
    }
    struct slice body = names.count == 1 ? only_named(ctl, answer.body, names.items[0]) : answer.body;

    if (!body.ptr) {
        (void)fprintf(stderr, "sagactl: there is no definition \"%s\"%s\n", names.items[0],
                      json_type(json_member(answer.body, "next_cursor")) == JSON_STRING ? " on this page" : "");
        return EXIT_NOT_FOUND;
    }
    if (print_items(ctl, body, "name")) {
        return EXIT_OK;
    }
    struct json_walk walk = json_walk(json_member(body, "items"));

    table_init_of_namespaces(&table, ctl, titles);
    while (json_next_element(&walk, &item)) {
        put_versions(ctl, &table, item);
    }
    table_print(&table, 0);
    print_more(ctl, body);
    return EXIT_OK;
}
