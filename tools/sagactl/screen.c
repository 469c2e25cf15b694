/* See screen.h. */
#include "tools/sagactl/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"

#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"
#define ESCAPE '\033'

/* A process has one terminal, and the signal handler needs its state. */
static struct termios before;
static volatile sig_atomic_t resized;

static void put(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);

        if (n < 0 && errno != EINTR) {
            return; /* the terminal is gone, which the next read of a key reports */
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* Restores the terminal. It may only use calls that are safe in a handler: write(), tcsetattr(), signal(), raise(). */
static void give_back(void)
{
    put(LEAVE, sizeof(LEAVE) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW,
                    &before); /* fails only when the terminal is gone, and then nothing is left to restore */
}

static void on_end(int signal_number)
{
    give_back();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void on_resize(int signal_number)
{
    (void)signal_number;
    resized = 1;
}

bool screen_open(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_end};
    struct termios keys;

    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        CHECK(sigaction(ends[i], &action, NULL) == 0);
    }
    action.sa_handler = on_resize; /* without SA_RESTART, so that poll() ends */
    CHECK(sigaction(SIGWINCH, &action, NULL) == 0);
    keys = before;
    keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    keys.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped program would leave the alternate screen on */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &keys) != 0) {
        return false;
    }
    put(ENTER, sizeof(ENTER) - 1);
    return true;
}

void screen_close(void)
{
    give_back();
}

/* Writes at most `columns` characters of a line. Colours take no width and end with the line. */
static void put_line(struct buffer *out, struct slice line, size_t columns)
{
    size_t width = 0;

    for (size_t i = 0; i < line.len;) {
        size_t len = 1;

        if (line.ptr[i] == ESCAPE) {
            while (i + len < line.len && line.ptr[i + len] != 'm') {
                len++;
            }
            len += i + len < line.len;
        } else {
            while (i + len < line.len && ((unsigned char)line.ptr[i + len] & 0xc0) == 0x80) {
                len++;
            }
            if (++width > columns) {
                break;
            }
        }
        buffer_put(out, line.ptr + i, len);
        i += len;
    }
    buffer_put_text(out, "\033[0m\033[K");
}

void screen_paint(struct slice text)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct buffer out;
    bool first = true;

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* on failure the size above stays */
    buffer_init(&out, SIZE_MAX / 2);
    buffer_put_text(&out, "\033[H");
    for (size_t row = 0; row < size.ws_row && text.len > 0; row++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;

        buffer_put_text(&out, first ? "" : "\r\n");
        first = false;
        put_line(&out, (struct slice){text.ptr, len}, size.ws_col);
        len += end ? 1 : 0;
        text = (struct slice){text.ptr + len, text.len - len};
    }
    buffer_put_text(&out, "\033[J");
    put(out.ptr, out.len);
    buffer_fini(&out);
}

bool screen_pause(int64_t ms)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;

    if (resized) {
        resized = 0;
        return true;
    }
    int ready = poll(&keys, 1, (int)ms);

    resized = 0;
    if (ready <= 0) {
        return ready == 0 || errno == EINTR;
    }
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q' && key != 4 /* Ctrl-D */;
}
