/* SPDX-License-Identifier: MIT
 *
 * Running gnuplot: the table goes into a temporary folder, the script comes from plots/, the
 * picture comes back as bytes. */
#include "figure.h"

#include "harness/cli/build.h"
#include "harness/util/signals.h"
#include "harness/worker/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { COMMAND = 3 * FILE_PATH };

static const char *const file_name[] = {"table.csv",  "figure.svg", "figure.png",
                                        "figure.pdf", "figure.txt", "messages"};
enum { F_TABLE, F_SVG, F_PNG, F_PDF, F_TEXT, F_MESSAGES, F_COUNT };
static const int file_of[] = {
    [PLOT_SVG] = F_SVG, [PLOT_PNG] = F_PNG, [PLOT_PDF] = F_PDF, [PLOT_TERMINAL] = F_TEXT};

/* With what a script ends if this gnuplot cannot write the form, or if the page is too small:
 * plots/style.gp and page.gp. */
enum { EXIT_NO_TERMINAL = 3, EXIT_TOO_SMALL = 4 };

/* Append a gnuplot string: in single quotes, with inner quotes doubled. */
static void quote(char buf[COMMAND], const char *name, const char *value)
{
    text_append(buf, COMMAND, "%s='", name);
    for (; *value; value++)
        text_append(buf, COMMAND, "%s%c", *value == '\'' ? "'" : "", *value);
    text_append(buf, COMMAND, "';");
}

static enum status write_table(const struct plot *p, const char *path, struct err *e)
{
    FILE *const f = fopen(path, "we");

    if (!f)
        return file_fail(e, "write", path, errno);
    plot_print_csv(f, p);
    const enum status st = file_flush(f, path, e);
    fclose(f);
    return st;
}

struct command {
    char *const *argv;
    const char *out, *messages;
};

/* How a child ends that has not become gnuplot. */
enum { EXIT_NO_GNUPLOT = 127, EXIT_NOT_STARTED = 126 };

/* In the child, in a group of its own: what hangs is ended with all that it started. GNUTERM may
 * name a terminal that this gnuplot lacks. */
static int become_gnuplot(void *arg)
{
    const struct command *const c = arg;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    const int fd[] = {open("/dev/null", O_RDONLY), open(c->out, flags, 0600),
                      open(c->messages, flags, 0600)};

    setpgid(0, 0);
    for (int i = 0; i < (int)ARRAY_LEN(fd); i++)
        if (fd[i] < 0 || dup2(fd[i], i) < 0)
            return EXIT_NOT_STARTED;
    unsetenv("GNUTERM");
    execvp(c->argv[0], c->argv);
    return errno == ENOENT ? EXIT_NO_GNUPLOT : EXIT_NOT_STARTED;
}

/* Until it has ended, or is ended because this program is to end. */
static enum status wait_for(pid_t pid, const volatile int *stop, int *how, struct err *e)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    bool stopped = false;
    pid_t ended;

    while ((ended = waitpid(pid, how, WNOHANG)) != pid) {
        if (ended < 0 && errno != EINTR)
            return fail(e, E_CHILD, "cannot wait for gnuplot: %s  -> try again", strerror(errno));
        if (*stop && !stopped) {
            stopped = true;
            kill(pid, SIGKILL); /* it may not have its group yet */
            kill(-pid, SIGKILL);
        }
        nanosleep(&nap, NULL);
    }
    return *stop ? fail(e, E_INTERRUPTED, "interrupted") : OK;
}

/* Start and wait; stdout and stderr go to files of the folder. -d: no start-up files of the user or
 * the system. */
static enum status run(const char *command, const char *script, const char *out,
                       const char *messages, const volatile int *stop, int *code, struct err *e)
{
    char *const argv[] = {"gnuplot", "-d", "-e", (char *)command, (char *)script, NULL};
    struct command c = {argv, out, messages};
    pid_t pid;
    int how = 0;

    TRY(process_fork(become_gnuplot, &c, &pid, e));
    TRY(wait_for(pid, stop, &how, e));
    *code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    if (*code == EXIT_NO_GNUPLOT)
        return fail(e, E_UNSUPPORTED, "gnuplot is not installed  -> install gnuplot-nox");
    if (*code == EXIT_NOT_STARTED)
        return fail(e, E_CHILD, "cannot start gnuplot  -> install gnuplot-nox");
    return OK;
}

/* gnuplot's error text, on one line. */
static enum status failed(const struct plot *p, int code, const char *messages, struct err *e)
{
    struct bytes said;
    char line[300];

    if (code == EXIT_NO_TERMINAL)
        return fail(e, E_UNSUPPORTED,
                    "this gnuplot writes no such file  -> install gnuplot-nox with cairo, or draw "
                    "--format svg");
    if (code == EXIT_TOO_SMALL)
        return fail(e, E_USAGE, "no room on %dx%d pixels  -> give a larger --size", p->page.width,
                    p->page.height);

    if (file_read(&said, messages, NULL) != OK)
        said = (struct bytes){0};
    const char *const from =
        said.data && said.n > sizeof(line) ? said.data + said.n - sizeof(line) + 1 : said.data;
    text_put(line, sizeof(line), from ? from : "");
    free(said.data);
    return fail(e, E_CHILD,
                "gnuplot could not draw %s (exit code %d): %s  -> report it with the run",
                p->figure->name, code, line);
}

/* gnuplot's own title and description of an SVG say nothing of the figure, and name the gnuplot: the
 * same figure has the same bytes. */
static void describe(struct bytes *svg, const struct figure *f)
{
    static const char begins[] = "<title>", ends[] = "</desc>";
    char *const from = svg->data ? strstr(svg->data, begins) : NULL;
    const char *const to = from ? strstr(from, ends) : NULL;
    struct bytes all;

    if (!to)
        return;
    FILE *const out = bytes_begin(&all);
    fwrite(svg->data, 1, (size_t)(from - svg->data), out);
    fprintf(out, "<title>%s</title>\n<desc>drawn by bench %s%s", f->title, build_version, to);
    bytes_end(out, &all);
    free(svg->data);
    *svg = all;
}

static enum status draw(struct bytes *out, const struct plot *p, enum plot_form form, int width,
                        char path[F_COUNT][FILE_PATH], const char *script, const volatile int *stop,
                        struct err *e)
{
    char command[COMMAND] = "", here[FILE_PATH];
    const int picture = file_of[form];
    int code;

    snprintf(here, sizeof(here), "%.*s", (int)(strrchr(script, '/') - script) + 1, script);
    quote(command, "data", path[F_TABLE]);
    quote(command, "here", here);
    quote(command, "out", form == PLOT_TERMINAL ? "" : path[picture]);
    quote(command, "title", p->figure->title);
    quote(command, "what", p->subject);
    quote(command, "where", p->where);
    if (p->y_title[0])
        quote(command, "y_title", p->y_title);
    if (p->page.width > 0)
        text_append(command, COMMAND, "size_w=%d;size_h=%d;", p->page.width, p->page.height);
    text_append(command, COMMAND, "dpi=%d;term_width=%d", p->page.dpi ? p->page.dpi : 96, width);

    TRY(write_table(p, path[F_TABLE], e));
    TRY(run(command, script, path[F_TEXT], path[F_MESSAGES], stop, &code, e));
    if (code != 0)
        return failed(p, code, path[F_MESSAGES], e);
    TRY(file_read(out, path[picture], e));
    if (form == PLOT_SVG)
        describe(out, p->figure);
    if (out->n > 0)
        return OK;
    free(out->data);
    *out = (struct bytes){0};
    return failed(p, code, path[F_MESSAGES], e);
}

enum status plot_draw(struct bytes *out, const struct plot *p, enum plot_form form, int width,
                      struct err *e)
{
    const volatile int *const stop = signals_watch(); /* the folder goes in any case */
    const char *const tmp = getenv("TMPDIR");
    char folder[FILE_PATH], name[96], script[FILE_PATH];
    enum status st = OK;

    *out = (struct bytes){0};
    snprintf(name, sizeof(name), "plots/%s.gp", p->figure->name);
    if (!options_locate_own(script, sizeof(script), name))
        return fail(e, E_IO, "cannot find %s above the program  -> run bench from its repository",
                    name);
    if (snprintf(folder, FILE_PATH, "%s/bench_plot_XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
            FILE_PATH ||
        !mkdtemp(folder))
        return file_fail(e, "create", folder, errno);
    char(*const path)[FILE_PATH] = need_room(F_COUNT, sizeof(*path));
    for (int i = 0; i < F_COUNT && st == OK; i++)
        st = file_join(path[i], folder, file_name[i], e);
    if (st == OK)
        st = draw(out, p, form, width, path, script, stop, e);
    for (int i = 0; i < F_COUNT; i++)
        if (path[i][0])
            unlink(path[i]);
    rmdir(folder);
    free(path);
    return st;
}
