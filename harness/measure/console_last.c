/* SPDX-License-Identifier: MIT
 *
 * The last lines of a sweep: which backend was fastest, and by how much. */
#include "console.h"
#include "harness/util/units.h"

#include <math.h>
#include <stdio.h>

/* Same variant, choices and shape: only the backend differs. */
static bool comparable(const struct bench_case *a, const struct bench_case *b)
{
    return a->group == b->group && case_same_problem(a, b) && a->mem_kind == b->mem_kind;
}

/* A geometric mean of ratios and its 95 % interval; NAN without a shape. */
struct mean_ratio {
    double mean, low, high;
    int shapes;
};

/* Half the width of a median's interval, as a logarithm. */
static double spread(const struct seen *s) { return log(s->ci_high_ns / s->ci_low_ns) / 2; }

/* Time on `b` over time on `a`, over the shapes of a variant that both ran. Medians are measured
 * independently, so the squares of their spreads add up. */
static struct mean_ratio mean_ratio(const struct seen *seen, int n, const struct variant *v,
                                    const struct backend *a, const struct backend *b)
{
    double sum = 0, squares = 0;
    int shapes = 0;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (seen[i].bcase->variant == v && seen[i].bcase->backend == a &&
                seen[k].bcase->backend == b && comparable(seen[i].bcase, seen[k].bcase)) {
                sum += log(seen[k].median_ns / seen[i].median_ns);
                squares += pow(spread(&seen[i]), 2) + pow(spread(&seen[k]), 2);
                shapes++;
            }
    const double mean = shapes ? sum / shapes : NAN, half = sqrt(squares) / shapes;
    return (struct mean_ratio){exp(mean), exp(mean - half), exp(mean + half), shapes};
}

static const struct backend *fastest_of(const struct seen *seen, int n, const struct variant *v)
{
    const struct backend *best = NULL;

    for (int i = 0; i < n; i++) {
        const struct backend *b = seen[i].bcase->backend;
        if (seen[i].bcase->variant == v && (!best || mean_ratio(seen, n, v, best, b).mean < 1))
            best = b;
    }
    return best;
}

/* The next slower backend after `after` (by ratio, then in the order of the registry), -1 after the
 * last. */
static int next_slower(const struct mean_ratio *ratio, int n, int after)
{
    int next = -1;

    for (int b = 0; b < n; b++) {
        const double x = ratio[b].mean;
        if (isnan(x) ||
            (after >= 0 && (x < ratio[after].mean || (x == ratio[after].mean && b <= after))))
            continue;
        if (next < 0 || x < ratio[next].mean)
            next = b;
    }
    return next;
}

static bool print_fastest(const struct seen *seen, int n, const struct variant *v, bool first)
{
    const struct backend *best = fastest_of(seen, n, v);
    struct mean_ratio ratio[MAX_LOOKUP];
    int known = 0, most = 0;

    for (; best && backends[known] && known < MAX_LOOKUP; known++) {
        ratio[known] = mean_ratio(seen, n, v, best, backends[known]);
        if (backends[known] == best)
            ratio[known].mean = NAN;
        else
            most = max_int(most, ratio[known].shapes);
    }
    if (most == 0)
        return false;
    printf("%sfastest for %s: %s", first ? "\n" : "", v->name, best->name);
    for (int b = -1; (b = next_slower(ratio, known, b)) >= 0;)
        printf(", %s %s [%s %s]", units_ratio(ratio[b].mean).s, backends[b]->name,
               units_rate(ratio[b].low).s, units_rate(ratio[b].high).s);
    printf(" (geometric mean of %d shape%s)\n", most, most == 1 ? "" : "s");
    return true;
}

void console_fastest(struct console *s, const struct seen *seen, int n)
{
    bool first = true;

    if (s->format != FORMAT_TABLE)
        return;
    terminal_line_clear(&s->line);
    for (int v = 0; variants[v]; v++)
        if (print_fastest(seen, n, variants[v], first))
            first = false;
    console_flush(s);
}
