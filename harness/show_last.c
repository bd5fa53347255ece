/* SPDX-License-Identifier: MIT
 *
 * The last lines of a sweep: which backend was fastest, and by how much. */
#include "human.h"
#include "show.h"

#include <math.h>
#include <stdio.h>

/* Same variant, choices and shape: only the backend differs. */
static bool comparable(const struct cell *a, const struct cell *b)
{
    return a->group == b->group && a->variant == b->variant && a->gate == b->gate &&
           a->clip == b->clip && a->mem_kind == b->mem_kind;
}

/* Geometric mean of time on `b` over time on `a`, over the shapes of a variant that both ran. */
static double mean_ratio(const struct seen *seen, int n, const struct variant *v,
                         const struct backend *a, const struct backend *b, int *shapes)
{
    double sum = 0;

    *shapes = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (seen[i].cell->variant == v && seen[i].cell->backend == a &&
                seen[k].cell->backend == b && comparable(seen[i].cell, seen[k].cell)) {
                sum += log(seen[k].median_ns / seen[i].median_ns);
                ++*shapes;
            }
    return *shapes ? exp(sum / *shapes) : NAN;
}

static const struct backend *fastest_of(const struct seen *seen, int n, const struct variant *v)
{
    const struct backend *best = NULL;
    int shapes;

    for (int i = 0; i < n; i++) {
        const struct backend *b = seen[i].cell->backend;
        if (seen[i].cell->variant == v && (!best || mean_ratio(seen, n, v, best, b, &shapes) < 1))
            best = b;
    }
    return best;
}

/* The next slower backend behind `after` (in ratio, then in the registry), -1 behind the last. */
static int next_slower(const double *ratio, int n, int after)
{
    int next = -1;

    for (int b = 0; b < n; b++) {
        if (isnan(ratio[b]) ||
            (after >= 0 && (ratio[b] < ratio[after] || (ratio[b] == ratio[after] && b <= after))))
            continue;
        if (next < 0 || ratio[b] < ratio[next])
            next = b;
    }
    return next;
}

static bool print_fastest(const struct seen *seen, int n, const struct variant *v, bool first)
{
    const struct backend *best = fastest_of(seen, n, v);
    double ratio[CHOICE_MAX];
    int known = 0, most = 0;

    for (; best && backends[known] && known < CHOICE_MAX; known++) {
        int shapes;
        ratio[known] = mean_ratio(seen, n, v, best, backends[known], &shapes);
        if (backends[known] == best)
            ratio[known] = NAN;
        else
            most = max_int(most, shapes);
    }
    if (most == 0)
        return false;
    printf("%sfastest for %s: %s", first ? "\n" : "", v->name, best->name);
    for (int b = -1; (b = next_slower(ratio, known, b)) >= 0;)
        printf(", %s %s", human_ratio(ratio[b]).s, backends[b]->name);
    printf(" (geometric mean of %d shape%s)\n", most, most == 1 ? "" : "s");
    return true;
}

void show_fastest(struct show *s, const struct seen *seen, int n)
{
    bool first = true;

    if (s->format != FORMAT_TABLE)
        return;
    screen_line_clear(&s->line);
    for (int v = 0; variants[v]; v++)
        if (print_fastest(seen, n, variants[v], first))
            first = false;
    show_flush(s);
}
