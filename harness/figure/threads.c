/* SPDX-License-Identifier: MIT
 *
 * Speed-up over threads, efficiency, and the serial fraction of Amdahl's law. */
#include "figure.h"

enum { KIND_MEASURED, KIND_AMDAHL, CURVE = 33 };

/* The same series with one thread; NULL if it was not measured. */
static const struct plot_point *alone(const struct plot_point *point, int n,
                                      const struct plot_point *a)
{
    for (int i = 0; i < n; i++)
        if (point[i].row == a->row && point[i].column == a->column &&
            point[i].series == a->series && point[i].x == 1)
            return &point[i];
    return NULL;
}

/* The serial fraction s in t(n) / t(1) = s + (1 - s) / n, by least squares over n > 1; NAN if only
 * one thread was measured. */
static double serial_fraction(const struct plot_point *point, int n, const struct plot_point *base)
{
    double xy = 0, xx = 0;

    for (int i = 0; i < n; i++) {
        const struct plot_point *const a = &point[i];
        if (alone(point, n, a) != base)
            continue;
        const double x = 1 - 1 / a->x, y = a->y / base->y - 1 / a->x;
        xy += x * y;
        xx += x * x;
    }
    return xx > 0 ? xy / xx : NAN;
}

static void add_curve(struct plot *p, const struct plot_point *at, double s, double most)
{
    for (int i = 0; i < CURVE && isfinite(s); i++) {
        struct plot_point a = plot_point_empty();
        a.row = at->row;
        a.column = at->column;
        a.series = at->series;
        a.kind = KIND_AMDAHL;
        a.x = pow(most, (double)i / (CURVE - 1));
        a.y = 1 / (s + (1 - s) / a.x);
        plot_add(p, &a);
    }
}

/* Two rows of panels for each that was picked: speed-up, and efficiency below it. */
static void add_case(struct plot *p, const struct plot_names *shapes,
                     const struct plot_point *point, int n, const struct plot_point *a)
{
    const struct plot_point *const base = alone(point, n, a);
    struct plot_point speed = *a;
    char name[PLOT_TEXT + 16];

    if (!base)
        return;
    const char *const shape = shapes->v[a->row].text;
    snprintf(name, sizeof(name), "%s%sefficiency", shape, *shape ? " " : "");
    speed.row = plot_name(&p->rows, shape, 0);
    const int below = plot_name(&p->rows, name, 0);
    plot_ratio(&speed, base, a);
    speed.z = serial_fraction(point, n, base);
    if (a == base) {
        double most = 1;
        speed.low = speed.high = 1;
        for (int i = 0; i < n; i++)
            if (alone(point, n, &point[i]) == base)
                most = fmax(most, point[i].x);
        add_curve(p, &speed, speed.z, most);
    }
    plot_add(p, &speed);
    speed.row = below;
    speed.y /= speed.x;
    speed.low /= speed.x;
    speed.high /= speed.x;
    speed.z = NAN;
    plot_add(p, &speed);
}

void threads_speedup(struct plot *p, const struct plot_data *d)
{
    struct plot_point *const times = p->point;
    const struct plot_names shapes = p->rows;
    const int n = p->n;

    p->point = NULL;
    p->rows = (struct plot_names){0};
    p->n = 0;
    for (int i = 0; i < n; i++)
        add_case(p, &shapes, times, n, &times[i]);
    if (p->n == 0 && n > 0)
        snprintf(p->why, sizeof(p->why), "no case was measured with one thread and with more");
    free(shapes.v);
    free(times);
}
