/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences in chunks, by the engine's products. */
#include "recur_chunks.h"

/* ---- forward ------------------------------------------------------------------------------ */

/* o = O / divisor */
static void divide(const struct chunk *c, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < c->n; t++) {
        const ptrdiff_t at = ((ptrdiff_t)c->b * r->L + c->t0 - r->M + t) * r->H + h;
        const float *const row = c->O + t * c->ld;
        float den = 1;
        if (r->norm == RECUR_SUM)
            den = row[r->dv] + r->eps;
        else if (r->norm == RECUR_MLSTM)
            den = fmaxf(fabsf(row[r->dv]), (float)exp(r->i.at ? -c->m[t + 1] : 0));
        if (r->den)
            r->den[at] = den;
#pragma omp simd
        for (int e = 0; e < r->dv; e++)
            r->o[at * r->dv + e] = row[e] / den;
    }
}

static void run(struct chunk *c)
{
    const struct recur *r = c->r;
    const int K = r->M + r->L, heads = r->H / r->Hs;

    chunk_load_state(c);
    for (int t0 = 0; t0 < K;) {
        const int until = t0 < r->M ? r->M : K; /* no chunk has keys of both kinds */
        const int n = min_int(recur_chunk(r), until - t0);
        chunk_enter(c, t0, n);
        chunk_solve(c);
        for (int h = c->hs * heads; t0 >= r->M && h < (c->hs + 1) * heads; h++) {
            chunk_outputs(c, h);
            divide(c, h);
        }
        t0 += n;
        if (t0 < K || r->s1 || r->z1 || r->m1)
            chunk_leave(c);
    }
    chunk_store_state(c);
}

static int team(const struct engine *g, const struct recur *r)
{
    enum { PARALLEL_MIN = 1 << 15 }; /* products of a key and a value channel */

    return (double)r->B * r->Hs * (r->M + r->L) * r->dk * r->dv > PARALLEL_MIN ? g->threads : 1;
}

static void forward(const struct engine *g, const struct recur *r, void *scratch)
{
    const size_t bytes = chunk_bytes(r);

#pragma omp parallel for schedule(dynamic, 1) num_threads(team(g, r))
    for (int item = 0; item < r->B * r->Hs; item++) {
        struct chunk c = chunk_of(g, r, (char *)scratch + bytes * (size_t)omp_get_thread_num());
        c.b = item / r->Hs;
        c.hs = item % r->Hs;
        run(&c);
    }
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool accepts(const struct recur *r, bool backward)
{
    return !(r->u && (r->i.at || r->beta.at));
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * (backward ? recur_chunked_grad_bytes(r) : chunk_bytes(r));
}

const struct recur_impl recur_chunked = {
    .name = "chunked",
    .accepts = accepts,
    .need = need,
    .forward = forward,
    .backward = recur_chunked_backward,
};
