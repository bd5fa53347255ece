/* SPDX-License-Identifier: MIT
 *
 * Greedy and random choice of the next token: temperature, top k (Fan et al. 2018,
 * arXiv:1805.04833) and top p (Holtzman et al. 2019, arXiv:1904.09751). */
#include "sampler.h"
#include "variants/base/loops.h"

enum status sampler_open(struct sampler *s, int V, struct err *e)
{
    s->V = V;
    s->all = calloc((size_t)V, sizeof(*s->all));
    return s->all ? OK : fail(e, E_NOMEM, "no memory for the probabilities of %d tokens", V);
}

void sampler_close(struct sampler *s)
{
    free(s->all);
    s->all = NULL;
}

/* Of the first n, p as they are among all of these; returns how many have the share top_p. */
static int weigh(const struct sampler *s, int n)
{
    double sum = 0, share = 0;
    int kept = 0;

    for (int i = 0; i < n; i++)
        sum += s->all[i].p = exp((s->all[i].logit.value - s->all[0].logit.value) / s->temperature);
    while (kept < n && (kept == 0 || share < s->top_p * sum))
        share += s->all[kept++].p;
    return kept;
}

int32_t sampler_next(const struct sampler *s, const float *logits, double u)
{
    for (int i = 0; i < s->V; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return -1;
        s->all[i] = (struct candidate){.logit = {(double)logits[i], i}};
    }
    if (s->temperature == 0)
        return largest_at(logits, s->V);
    qsort(s->all, (size_t)s->V, sizeof(*s->all), by_largest);
    const int n = weigh(s, s->top_k > 0 && s->top_k < s->V ? s->top_k : s->V);
    double sum = 0, passed = 0;
    int at = 0;
    for (int i = 0; i < n; i++)
        sum += s->all[i].p;
    while (at < n - 1 && (passed += s->all[at].p) < u * sum)
        at++;
    return (int32_t)s->all[at].logit.at;
}
