/* SPDX-License-Identifier: MIT
 *
 * Relative effective context length. */
#include "recl.h"
#include "variants/base/sort.h"

/* Tokens by their baseline at context k, the hardest first. */
static void baseline(struct sort_key *b, const struct recl_model *model, int models, int k,
                     size_t n)
{
    for (size_t t = 0; t < n; t++) {
        b[t] = (struct sort_key){(double)model[0].nll[k][t], (ptrdiff_t)t};
        for (int i = 1; i < models; i++)
            b[t].value = fmin(b[t].value, (double)model[i].nll[k][t]);
    }
    qsort(b, n, sizeof(*b), by_largest);
}

/* g(c,c') over the `most` hardest tokens; `longer` are the losses at c'. */
static double gain(const struct sort_key *b, const float *longer, size_t most)
{
    double at_c = 0, at_longer = 0;

    for (size_t j = 0; j < most; j++) {
        at_c += b[j].value;
        at_longer += fmin(b[j].value, (double)longer[b[j].at]);
    }
    return 1 - exp((at_longer - at_c) / (double)most);
}

static double mean(const float *x, size_t n)
{
    double sum = 0;

    for (size_t t = 0; t < n; t++)
        sum += (double)x[t];
    return sum / (double)n;
}

/* Does its own loss fall with more context than the shortest? */
static bool uses_context(const struct recl_model *m, int n_contexts, size_t n, double threshold)
{
    const double shortest = mean(m->nll[0], n);

    for (int k = 1; k < n_contexts; k++)
        if (1 - exp(mean(m->nll[k], n) - shortest) >= threshold)
            return true;
    return false;
}

enum status recl_of_group(struct recl *out, const struct recl_model *model, int models,
                          const int *contexts, int n_contexts, size_t n, double r, struct err *e)
{
    const double threshold = 0.01;
    struct sort_key *const b = calloc(n, sizeof(*b));
    bool *const stopped = calloc((size_t)models, sizeof(*stopped));
    const size_t share = (size_t)llround(r * (double)n), most = share > 0 ? share : 1;

    CHECK(models > 0 && n_contexts > 1 && n > 0 && r > 0 && r <= 1);
    if (!b || !stopped) {
        free(b);
        free(stopped);
        return fail(e, E_NOMEM, "no memory for %zu losses  -> score fewer --bytes", n);
    }
    for (int i = 0; i < models; i++)
        out[i] = (struct recl){.length = contexts[n_contexts - 1],
                               .at_end = true,
                               .none = !uses_context(&model[i], n_contexts, n, threshold)};
    for (int k = 0; k + 1 < n_contexts; k++) {
        baseline(b, model, models, k, n);
        for (int i = 0; i < models; i++) {
            const double g = gain(b, model[i].nll[k + 1], most);
            if (k == 0)
                out[i].gain = g;
            if (stopped[i] || g >= threshold)
                continue;
            stopped[i] = true;
            out[i].length = contexts[k];
            out[i].at_end = false;
        }
    }
    free(b);
    free(stopped);
    return OK;
}
