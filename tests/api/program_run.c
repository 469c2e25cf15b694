/* See program_run.h. */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/program_run.h"
#include "tests/lib/test.h"

const char *program;
struct api_host host;
char out[1 << 20], talk[65536];

static void read_all(int fd, char *to, size_t room)
{
    size_t len = 0;
    ssize_t n;

    while (len + 1 < room && (n = read(fd, to + len, room - 1 - len)) > 0) {
        len += (size_t)n;
    }
    to[len] = '\0';
    (void)close(fd);
}

#define ARGUMENTS_MAX 39

/* Splits `text` in place at spaces outside quotes. Returns the number of arguments behind the name. */
static int split(char *text, char **argv)
{
    int argc = 1;
    char *at = text;

    while (*at && argc < ARGUMENTS_MAX) {
        char stop = *at == '\'' ? '\'' : ' ';

        at += stop == '\'';
        argv[argc++] = at;
        at += strcspn(at, stop == '\'' ? "'" : " ");
        while (*at && (*at == stop || *at == ' ')) {
            bool ends_quote = stop == '\'' && *at == '\'';

            *at++ = '\0';
            stop = ends_quote ? ' ' : stop;
        }
    }
    return argc;
}

static int exit_code_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int run(const char *arguments)
{
    char name[] = "program", text[1024], *argv[ARGUMENTS_MAX + 1] = {name};
    int outs[2], talks[2];

    (void)snprintf(text, sizeof(text), "%s", arguments);
    (void)split(text, argv);
    assert_int_equal(pipe(outs), 0);
    assert_int_equal(pipe(talks), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(outs[1], STDOUT_FILENO);
        (void)dup2(talks[1], STDERR_FILENO);
        (void)close(outs[0]);
        (void)close(talks[0]);
        execv(program, argv);
        _exit(99);
    }
    (void)close(outs[1]);
    (void)close(talks[1]);
    read_all(outs[0], out, sizeof(out));
    read_all(talks[0], talk, sizeof(talk));
    return exit_code_of(pid);
}

int run_beside(const char *arguments)
{
    char name[] = "program", text[1024], *argv[ARGUMENTS_MAX + 1] = {name};
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)snprintf(text, sizeof(text), "%s", arguments);
        (void)split(text, argv);
        assert_non_null(freopen("/dev/null", "w", stdout));
        execv(program, argv);
        _exit(99);
    }
    return exit_code_of(pid);
}

struct terminal terminal_begin(const char *arguments, unsigned short columns, unsigned short rows)
{
    char name[] = "program", text[1024], *argv[ARGUMENTS_MAX + 1] = {name};
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    struct terminal terminal = {0};

    (void)snprintf(text, sizeof(text), "%s", arguments);
    (void)split(text, argv);
    terminal.pid = forkpty(&terminal.fd, NULL, NULL, &size);
    assert_true(terminal.pid >= 0);
    if (terminal.pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        execv(program, argv);
        _exit(99);
    }
    out[0] = '\0';
    return terminal;
}

void terminal_type(const struct terminal *terminal, const char *typed)
{
    assert_int_equal(write(terminal->fd, typed, strlen(typed)), (ssize_t)strlen(typed));
}

void terminal_until(struct terminal *terminal, const char *says)
{
    while (!strstr(out + terminal->from, says)) {
        ssize_t n = terminal->len + 1 < sizeof(out)
                        ? read(terminal->fd, out + terminal->len, sizeof(out) - 1 - terminal->len)
                        : 0;

        if (n <= 0) {
            fail_msg("it never says %s\n%s", says, out);
        }
        terminal->len += (size_t)n;
        out[terminal->len] = '\0';
    }
    terminal->from = terminal->len;
}

int terminal_end(struct terminal *terminal)
{
    read_all(terminal->fd, out + terminal->len, sizeof(out) - terminal->len); /* EIO when the program has ended */
    return exit_code_of(terminal->pid);
}

int run_at_terminal(const char *arguments, const char *typed)
{
    struct terminal terminal = terminal_begin(arguments, 80, 24);

    terminal_type(&terminal, typed);
    return terminal_end(&terminal);
}

int program_setup(void **state)
{
    char server[64];

    (void)state;
    host = api_host_start(&(struct api_options){.heartbeat_ms = 500});
    (void)snprintf(server, sizeof(server), "http://127.0.0.1:%u", host.port);
    (void)setenv("SAGACTL_SERVER", server, 1);
    (void)unsetenv("SAGACTL_TOKEN");
    (void)unsetenv("SAGACTL_TOKEN_FILE");
    return 0;
}

void program_cases(const struct program_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int code = run(cases[i].arguments);

        if (code != cases[i].code || !(strstr(out, cases[i].says) || strstr(talk, cases[i].says))) {
            fail_msg("%s %s: exit %d\n--- stdout\n%s\n--- stderr\n%s", program, cases[i].arguments, code, out, talk);
        }
    }
}

static void expect_texts(const char *file, int line, const char *where, va_list texts)
{
    const char *text;

    while ((text = va_arg(texts, const char *)) != NULL) {
        if (!strstr(where, text)) {
            print_error("ERROR: this is missing on %s: %s\n--- stdout\n%s\n--- stderr\n%s\n",
                        where == out ? "stdout" : "stderr", text, out, talk);
            _fail(file, line);
        }
    }
}

void expect_run_at(const char *file, int line, const char *where, int code, int expected, ...)
{
    va_list texts;

    if (code != expected) {
        print_error("ERROR: exit %d, not %d\n--- stdout\n%s\n--- stderr\n%s\n", code, expected, out, talk);
        _fail(file, line);
    }
    va_start(texts, expected);
    expect_texts(file, line, where, texts);
    va_end(texts);
}

void expect_printed_at(const char *file, int line, const char *where, ...)
{
    va_list texts;

    va_start(texts, where);
    expect_texts(file, line, where, texts);
    va_end(texts);
}
