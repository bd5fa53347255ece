/* SPDX-License-Identifier: MIT
 *
 * The end of a sweep. */
#include "run_summary.h"

#include "harness/export/export.h"
#include "harness/measure/ranking.h"
#include "harness/util/fileio.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* In one width: rankings are text in columns. */
static enum status paste_rankings(const struct run *run, enum format format, struct err *e)
{
    enum { WIDTH = 100 };
    struct bytes text = {0};
    FILE *const f = bytes_open(&text, e);

    if (!f)
        return E_NOMEM;
    enum status st = rankings_show(f, run, WIDTH, false, e);
    const enum status closed = bytes_close(f, &text, e);
    st = st == OK ? closed : st;
    const bool any = st == OK && *text.data;
    if (any && format == FORMAT_MD)
        printf("\n```text%s```\n", text.data);
    else if (any)
        text_below(stdout, format, "%s", text.data);
    free(text.data);
    return st;
}

void run_summary(struct session *s)
{
    const enum format format = s->console.format;
    const bool paste = console_is_to_paste(&s->console);
    const int failed = s->console.out_error;
    struct run run = {0};
    struct err e;

    if ((format != FORMAT_TABLE && !paste && !console_at_end(format)) ||
        run_read(&run, s->dir.path, &e) != OK)
        return;
    console_end(&s->console);
    console_flush(&s->console);
    const enum status st =
        format == FORMAT_JSON  ? export_json(stdout, &run, &s->opt->columns, &e)
        : format == FORMAT_FOM ? export_run(stdout, EXPORT_FOM, &run, &e)
        : paste                ? paste_rankings(&run, format, &e)
                : rankings_show(stdout, &run, terminal_width(STDOUT_FILENO), s->console.color, &e);
    if (st != OK)
        console_note(&s->console, "bench: %s", e.msg);
    run_free(&run);
    console_flush(&s->console);
    if (failed || !s->console.out_error || s->console.out_error == EPIPE)
        return;
    (void)file_fail(&e, "write to", "standard output", s->console.out_error);
    console_note(&s->console, "bench: %s", e.msg);
    clearerr(stdout); /* report it only once, while the reason is known */
    s->bad_file = true;
}

void say_what_next(struct session *s)
{
    const bool usual = !options_given(s->opt, "out") && !s->opt->resume_dir;
    const char *const space = usual ? "" : " ", *const run = usual ? "" : s->dir.path;

    console_note(&s->console, "next: bench plot%s%s, or bench report%s%s", space, run, space, run);
}
