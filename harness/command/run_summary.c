/* SPDX-License-Identifier: MIT
 *
 * See run_summary.h. */
#include "run_summary.h"

#include "harness/export/export.h"
#include "harness/measure/ranking.h"

#include "variants/model/checkpoint/checkpoint.h"

void say_same_models(struct session *s, const struct plan *plan)
{
    const struct bench_case *const c = plan->cases;

    for (int i = 1; i < plan->n; i++) {
        bool again = false, same = false;
        for (int k = 0; k < i && !again; k++)
            again = c[k].variant == c[i].variant;
        for (int k = 0; k < i && !again && !same; k++) {
            same = c[k].workload == c[i].workload && c[k].layers == c[i].layers &&
                   checkpoint_same_model(&c[k].config, &c[i].config);
            if (same)
                console_note(&s->console, "note: %s is the same model as %s here",
                             c[i].variant->name, c[k].variant->name);
        }
    }
}

/* Does every row measure this variant? */
static bool all_are_of(const struct rows *latency, const char *variant)
{
    const struct latency_row *const row = latency->row;

    for (size_t i = 0; i < latency->n; i++)
        if (strcmp(row[i].variant, variant) != 0)
            return false;
    return true;
}

/* "perplexity: 1.563 per symbol with 512 tokens of context, 1.492 at best", of what text below it: the
 * score with the longest context. */
static void show_score(FILE *f, const struct rows *scores)
{
    const struct perplexity_row *best = NULL;

    for (size_t i = 0; i < scores->n; i++) {
        const struct perplexity_row *const one = (const struct perplexity_row *)scores->row + i;
        if (isfinite(one->ppl) && (!best || one->mem_tokens > best->mem_tokens))
            best = one;
    }
    if (!best)
        return;
    char mem[MEM_TEXT];
    mem_text(mem, best->mem_tokens);
    fprintf(f, "perplexity: %.4g per %s with %s tokens of context", best->ppl, best->unit, mem);
    if (isfinite(best->ppl_floor))
        fprintf(f, ", %.4g at best", best->ppl_floor);
    fputs("\n  text: ", f);
    text_print(f, path_name(best->corpus));
    fputc('\n', f);
}

/* "memory: 15.1 MiB at most (onednn, seq 128, mem 512): 13.0 MiB of weights, 1.0 MiB of context" */
static void show_memory(FILE *f, const struct rows *memory)
{
    const struct memory_row *most = NULL;

    for (size_t i = 0; i < memory->n; i++) {
        const struct memory_row *const one = (const struct memory_row *)memory->row + i;
        if (one->arena_peak_bytes != I64_EMPTY &&
            (!most || one->arena_peak_bytes > most->arena_peak_bytes))
            most = one;
    }
    if (!most)
        return;
    char mem[MEM_TEXT];
    mem_text(mem, most->mem_tokens);
    fprintf(f, "memory: %s at most (%s, seq %d, mem %s): %s of weights, %s of context\n",
            units_bytes((double)most->arena_peak_bytes).s, most->backend, (int)most->seq_tokens,
            mem, units_bytes((double)most->weights_bytes).s,
            units_bytes((double)most->memory_state_bytes).s);
}

/* Rankings, whose column `quality` compares variants; of one variant its score and memory. */
static void show_end(FILE *f, const struct run *run, int width, bool color)
{
    const struct latency_row *const first = run->latency.row;

    rankings_show(f, run, width, color);
    if (run->latency.n == 0 || !all_are_of(&run->latency, first->variant))
        return;
    show_score(f, &run->perplexity);
    show_memory(f, &run->memory);
}

/* In one width: rankings are text in columns. */
static void paste_rankings(const struct run *run, enum format format)
{
    enum { WIDTH = 100 };
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    show_end(f, run, WIDTH, false);
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
        show_end(stdout, &run, terminal_width(STDOUT_FILENO), s->console.color);
    if (st != OK)
        console_note(&s->console, "bench: %s", e.msg);
    run_free(&run);
    console_flush(&s->console);
    if (!s->console.out_error || s->console.out_error == EPIPE)
        return;
    clearerr(stdout); /* report it only once, while the reason is known */
    if (failed)
        return;
    (void)file_fail(&e, "write to", "standard output", s->console.out_error);
    console_note(&s->console, "bench: %s", e.msg);
    s->bad_file = true;
}

void say_what_next(struct session *s)
{
    const bool usual = !options_given(s->opt, "out") && !s->opt->resume_dir;
    const char *const space = usual ? "" : " ", *const run = usual ? "" : s->dir.path;

    console_note(&s->console, "next: bench plot%s%s, or bench report%s%s", space, run, space, run);
}
