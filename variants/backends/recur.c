/* SPDX-License-Identifier: MIT
 *
 * Which implementation runs a recurrence, and what all share. */
#include "recur.h"

#include <string.h>

const char *const recur_norm_name[RECUR_NORMS + 1] = {"none", "sum", "mlstm", NULL};

static void clear(float *d, const struct recur_rows *rows, int B, int T, int heads, int width)
{
    for (int b = 0; d && b < B; b++)
        for (int t = 0; t < T; t++)
            for (int h = 0; h < heads; h++)
                memset(recur_grad_at(d, rows, b, t, h), 0, sizeof(float) * (size_t)width);
}

void recur_clear(const struct recur *r, const struct recur_grad *d)
{
    const int K = r->M + r->L;

    clear(d->d_q, &r->q, r->B, r->L, r->H, r->dk);
    clear(d->d_k, &r->k, r->B, K, r->Hs, r->dk);
    clear(d->d_v, &r->v, r->B, K, r->Hs, r->dv);
    clear(d->d_g, &r->g, r->B, K, r->Hs, r->g_width);
    clear(d->d_beta, &r->beta, r->B, K, r->Hs, 1);
    clear(d->d_a, &r->a, r->B, K, r->Hs, r->dk);
    clear(d->d_b, &r->b, r->B, K, r->Hs, r->dk);
    clear(d->d_i, &r->i, r->B, K, r->Hs, 1);
}

const struct recur_impl *const recur_composed[] = {&recur_chunked, &recur_ref, NULL};

int recur_chunk(const struct recur *r) { return r->a.at ? RECUR_CHUNK_FREE : RECUR_CHUNK; }

double recur_flop(const struct recur *r)
{
    const double columns = r->dv + (r->norm != RECUR_PLAIN), area = r->dk * columns;
    const double states = (double)r->B * r->Hs * (r->M + r->L), reads = (double)r->B * r->H * r->L;
    const int erases = r->a.at ? 2 : r->beta.at != NULL;

    if (r->M + r->L == 1)
        return states * area * (2 + (r->g_width != 0) + (erases ? 4 : 0)) + reads * area * 2;
    /* C (dk + columns) for A W and A itself per reader, 2 dk columns for each product with the
     * state; an erase by the own key adds one system and one reader, the free form four. */
    const double chunk = min_int(recur_chunk(r), r->M + r->L);
    const double pairs = chunk * (r->dk + columns);
    return reads * (pairs * (erases == 2 ? 2 : 1) + 2 * area) +
           states * (pairs * erases + 2 * area * (erases + 1));
}

const struct recur_impl *engine_recur(const struct engine *g, const struct recur *r, bool backward)
{
    for (int i = 0; g->recur[i]; i++)
        if (g->recur[i]->accepts(r, backward))
            return g->recur[i];
    return NULL;
}
