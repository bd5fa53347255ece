/* SPDX-License-Identifier: MIT
 *
 * The terminal. */
#include "terminal.h"

#include "variants/base/printable.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int terminal_width(int fd)
{
    enum { UNKNOWN = 80 };
    const char *const columns = getenv("COLUMNS");
    struct winsize size = {0};

    if (!isatty(fd))
        return INT_MAX;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n > 0 && n < INT_MAX ? (int)n : UNKNOWN;
}

static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

int terminal_columns(const char *text)
{
    char escape[PRINTABLE_ESCAPE];
    int n = 0;

    while (*text) {
        const size_t length = printable_length(text);
        if (length == 0)
            printable_escape(escape, *text);
        n += length ? 1 : (int)strlen(escape);
        text += length ? length : 1;
    }
    return n;
}

void terminal_cut(char *text, int columns)
{
    static const char missing[] = "..";
    const int mark = (int)strlen(missing), room = max_int(0, columns);
    const int keep = room > mark ? room - mark : room;

    if (terminal_columns(text) <= room)
        return;
    for (int n = 0; *text; text++) {
        n += begins_character(*text);
        if (n > keep)
            break;
    }
    /* At least as many characters as `mark` has are cut, or none: the mark fits in their place. */
    if (room > mark)
        strcpy(text, missing);
    else
        *text = '\0';
}

bool terminal_color(enum color when, int fd)
{
    return when == COLOR_ALWAYS || (when == COLOR_AUTO && isatty(fd));
}

enum progress terminal_progress(enum progress how, bool quiet)
{
    const char *const term = getenv("TERM");

    if (quiet)
        return PROGRESS_NONE;
    if (how != PROGRESS_AUTO)
        return how;
    return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0) && !getenv("CI")
               ? PROGRESS_BAR
               : PROGRESS_PLAIN;
}

bool terminal_is_one(void)
{
    struct stat out, error;

    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
           out.st_dev == error.st_dev && out.st_ino == error.st_ino;
}

void terminal_line_put(struct terminal_line *l, char *text)
{
    const int width = terminal_width(STDERR_FILENO);

    /* The last column stays free: some terminals wrap as soon as it is written. */
    terminal_cut(text, width == INT_MAX ? width : width - 1);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
    l->shown = true;
}

void terminal_line_print(char *text)
{
    terminal_cut(text, terminal_width(STDERR_FILENO));
    fprintf(stderr, "%s\n", text);
}

void terminal_line_clear(struct terminal_line *l)
{
    if (l->shown)
        fputs("\r\033[K", stderr);
    l->shown = false;
}
