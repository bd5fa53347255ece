/* SPDX-License-Identifier: MIT
 *
 * Decisions of the gate as pure functions, and its Markdown. */
#include "gate.h"

#include "compare_print.h"
#include "harness/cli/exit_code.h"

static const double NOISE_FACTOR = 3;
static const double MORE_INSTRUCTIONS = 0.005;

bool gate_too_noisy(const struct change *identical, double threshold)
{
    return !(NOISE_FACTOR * change_noise(identical) <= threshold); /* also for NaN */
}

double gate_threshold(const struct change *identical, double threshold)
{
    return fmax(threshold, NOISE_FACTOR * change_noise(identical));
}

void gate_layout(struct trial *g)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < g->all.n; i++)
        if (isfinite(g->cases[i].identical.log.mid) && g->cases[i].first.n > 0) {
            sum += g->cases[i].identical.log.mid * g->cases[i].identical.log.mid;
            n++;
        }
    const double floor = NOISE_FACTOR * expm1(sqrt(sum / max_int(n, 1)));
    for (int i = 0; i < g->all.n; i++) {
        struct gate_case *const k = &g->cases[i];
        struct change *const first = &k->first;
        k->threshold = g->all.v[i].threshold = fmax(k->threshold, floor);
        if (first->n > 0)
            g->all.v[i].change.verdict = first->verdict =
                verdict_of(first->log, k->threshold, first->doubt);
    }
}

bool gate_flagged(const struct gate_case *g)
{
    return g->first.verdict == VERDICT_SLOWER || g->first.verdict == VERDICT_FASTER;
}

enum verdict gate_verdict(const struct gate_case *g, char *note, size_t size)
{
    const enum verdict alike = verdict_of(g->identical.log, g->threshold, 0);

    note[0] = '\0';
    if (!isfinite(change_noise(&g->identical))) {
        snprintf(note, size, "A/A gave no interval");
        return VERDICT_UNCLEAR;
    }
    if (!gate_flagged(g))
        return g->first.verdict == VERDICT_SAME ? VERDICT_SAME : VERDICT_UNCLEAR;
    if (alike == VERDICT_SLOWER || alike == VERDICT_FASTER) {
        snprintf(note, size, "identical programs differ by %+.1f %%",
                 change_pct(g->identical.log.mid));
        return VERDICT_UNCLEAR;
    }
    if (g->repeated && g->second.verdict == g->first.verdict)
        return g->first.verdict;
    snprintf(note, size, g->repeated ? "not confirmed: %+.1f %% in the second round" : "one round",
             change_pct(g->second.log.mid));
    return VERDICT_UNCLEAR;
}

bool gate_more_instructions(double before, double after)
{
    return after > before * (1 + MORE_INSTRUCTIONS);
}

/* ---- Markdown ----------------------------------------------------------------------------- */

static void print_case(FILE *f, const struct comparison *c)
{
    const struct interval *d = &c->change.log;

    fprintf(f, "| %s | ", c->label);
    if (c->exact)
        fprintf(f, "%.6f | %.6f | | | ", c->nll[BEFORE], c->nll[AFTER]);
    else if (c->change.n == 0)
        fprintf(f, "| | | | ");
    else
        fprintf(f, "%s | %s | %+.1f %% [%+.1f %+.1f] | %.1f %% | ",
                units_ns(c->change.median[BEFORE]).s, units_ns(c->change.median[AFTER]).s,
                change_pct(d->mid), change_pct(d->low), change_pct(d->high), 100 * c->threshold);
    fprintf(f, "%s | ", comparison_word(c));
    if (c->change.n > 0 && change_by_cpu(&c->change))
        fprintf(f, "times and change: CPU time%s", *c->note ? "; " : "");
    for (const char *note = c->note; *note; note++)
        fputs(*note == '|' ? "\\|" : (char[]){*note, '\0'}, f);
    fputs(" |\n", f);
}

void gate_markdown(FILE *f, const struct trial *g, int code)
{
    const struct options *o = g->ab_run.session.opt;
    char machine[256], version[SIDES][64];
    int changed = 0;

    for (int s = 0; s < SIDES; s++) {
        version[s][0] = '\0';
        if (!o->plain)
            ab_side_version(&g->ab_run.program[s], version[s], sizeof(version[s]));
    }

    for (int i = 0; i < g->all.n; i++)
        changed += g->all.v[i].changed;
    env_summary(&g->ab_run.session.facts, machine, sizeof(machine));
    fprintf(f, "## bench gate: %s\n\n",
            code == EXIT_REGRESSION        ? "regression"
            : code == EXIT_FINE            ? "no regression"
            : code == EXIT_NOT_TRUSTWORTHY ? "not trustworthy"
                                           : "failed");
    fprintf(f,
            "%d case%s: %d slower, %d faster, %d same, %d unclear; %d changed in bytes, "
            "instructions or perplexity.\n\n",
            g->all.n, plural(g->all.n), comparisons_count(&g->all, VERDICT_SLOWER),
            comparisons_count(&g->all, VERDICT_FASTER), comparisons_count(&g->all, VERDICT_SAME),
            comparisons_count(&g->all, VERDICT_UNCLEAR), changed);
    fprintf(f,
            "old `%s` %s, new `%s` %s; %s; pairs of %.3g ms blocks, %s, threshold "
            "the larger of %.3g %% and three times the A/A noise.\n\n",
            g->ab_run.program[BEFORE].path, version[BEFORE], g->ab_run.program[AFTER].path,
            version[AFTER], machine, o->block_ms,
            o->plain ? "each of whole runs" : "two launches a side", 100 * g->threshold);
    fputs("Times are the median of each side; a change is the median over pairs of blocks that ran "
          "next to each other, so the two need not agree to the last percent.\n\n"
          "| case | old, median | new, median | change of pairs [95 %] | threshold | verdict | "
          "note |\n"
          "|---|---:|---:|---:|---:|---|---|\n",
          f);
    for (int i = 0; i < g->all.n; i++)
        print_case(f, &g->all.v[i]);
    fputs("\nRepeat it:\n\n    ", f);
    options_print_again(f, o);
    fputs("\n\n", f);
}

void gate_say(FILE *f, const struct trial *g)
{
    const int unclear = comparisons_count(&g->all, VERDICT_UNCLEAR);
    int untimed = 0; /* skipped, failed, or without times */

    for (int i = 0; i < g->all.n; i++)
        untimed += g->all.v[i].change.n == 0;
    text_line(f, "gate: %d case%s, %d slower, %d faster, %d same, %d unclear, %d without times",
              g->all.n, plural(g->all.n), comparisons_count(&g->all, VERDICT_SLOWER),
              comparisons_count(&g->all, VERDICT_FASTER), comparisons_count(&g->all, VERDICT_SAME),
              unclear, untimed);
    if (unclear > 0)
        text_line(f,
                  "warning: %d case%s unclear  -> measure on a quieter machine, or raise "
                  "--min-samples; --strict makes this exit code 4",
                  unclear, unclear == 1 ? " is" : "s are");
}
