/* SPDX-License-Identifier: MIT
 *
 * The step that is the mean of all rows so far, counted from the beginning of the stream:
 *
 *   y_t = (sum + x_0 + .. + x_t) / (position + t + 1) */
#include "steps.h"

enum { COLUMNS = 64 }; /* summed together, in double */

static void mean_of_columns(const struct step_call *c, int b, int e, int n)
{
    const ptrdiff_t at = (ptrdiff_t)b * c->in->n + e;
    double sum[COLUMNS];

    for (int k = 0; k < n; k++)
        sum[k] = c->before[0] ? (double)c->before[0][at + k] : 0;
    for (int i = 0; i < c->L; i++) {
        const float *const x = matrix_row(c->in, (ptrdiff_t)b * c->L + i) + e;
        float *const y = matrix_row(c->out, (ptrdiff_t)b * c->L + i) + e;
        const double share = 1 / ((double)c->position + i + 1);
        for (int k = 0; k < n; k++) {
            sum[k] += (double)x[k];
            y[k] = (float)(sum[k] * share);
        }
    }
    for (int k = 0; c->after[0] && k < n; k++)
        c->after[0][at + k] = (float)sum[k];
}

/* Columns [e,e+n), COLUMNS at most, of sequence b. */
typedef void some_columns(const struct step_call *c, int b, int e, int n);

static void each_strip(const struct step_call *c, some_columns *run)
{
    const int strips = (c->in->n + COLUMNS - 1) / COLUMNS;

#pragma omp parallel for collapse(2) num_threads(step_team(c))
    for (int b = 0; b < c->B; b++)
        for (int strip = 0; strip < strips; strip++)
            run(c, b, strip * COLUMNS, min_int(COLUMNS, c->in->n - strip * COLUMNS));
}

static void mean_forward(const struct step_call *c) { each_strip(c, mean_of_columns); }

/* d_x_j += sum_{t >= j} d_y_t / (position + t + 1) */
static void grad_of_columns(const struct step_call *c, int b, int e, int n)
{
    double sum[COLUMNS] = {0};

    for (int i = c->L - 1; i >= 0; i--) {
        const float *const d = matrix_row(c->d_out, (ptrdiff_t)b * c->L + i) + e;
        float *const d_x = matrix_row(c->d_in, (ptrdiff_t)b * c->L + i) + e;
        const double count = (double)c->position + i + 1;
        for (int k = 0; k < n; k++) {
            sum[k] += (double)d[k] / count;
            d_x[k] = (float)((double)d_x[k] + sum[k]);
        }
    }
}

static void mean_backward(const struct step_call *c) { each_strip(c, grad_of_columns); }

static const char *mean_impl(const struct engine *g, const struct step *s, int B, int L,
                             bool backward)
{
    return "average"; /* the only one */
}

int step_mean(struct steps *t, int x, const char *name, const char *count)
{
    static const struct step_kind mean = {
        .name = "mean", .forward = mean_forward, .backward = mean_backward, .impl = mean_impl};
    struct step *const s = STEP_READING(t, &mean, x);

    t->positions = count;
    step_state(t, s, name, t->value[x].width, 0);
    return step_writes(t, s, t->value[x].width);
}
