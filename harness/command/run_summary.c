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
static void paste_rankings(const struct run *run, enum format format)
{
    enum { WIDTH = 100 };
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    rankings_show(f, run, WIDTH, false);
    bytes_end(f, &text);
    if (*text.data && format == FORMAT_MD)
        printf("\n```text%s```\n", text.data);
    else if (*text.data)
        text_below(stdout, format, "%s", text.data);
    free(text.data);
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
    enum status st = OK;
    if (format == FORMAT_JSON)
        st = export_json(stdout, &run, &s->opt->columns, &e);
    else if (format == FORMAT_FOM)
        st = export_run(stdout, EXPORT_FOM, &run, &e);
    else if (paste)
        paste_rankings(&run, format);
    else
        rankings_show(stdout, &run, terminal_width(STDOUT_FILENO), s->console.color);
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
