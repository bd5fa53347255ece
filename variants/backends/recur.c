/* SPDX-License-Identifier: MIT
 *
 * Which implementation runs a recurrence, and what all share. */
#include "recur.h"

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

/* Which gradients are sums over state heads, or over sequences. */
static void shares(const struct recur *r, const struct recur_grad *d, bool *heads, bool *sequences)
{
    const struct {
        const struct recur_rows *rows;
        const float *d;
    } all[] = {{&r->q, d->d_q},       {&r->k, d->d_k}, {&r->v, d->d_v}, {&r->g, d->d_g},
               {&r->beta, d->d_beta}, {&r->a, d->d_a}, {&r->b, d->d_b}, {&r->i, d->d_i}};

    *heads = false;
    *sequences = r->B > 1 && d->d_u;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct recur_rows *const rows = all[i].rows;
        if (!rows->at || !all[i].d)
            continue;
        *heads = *heads || (r->Hs > 1 && (rows->per > 1 || rows->head == 0));
        *sequences = *sequences || (r->B > 1 && rows->batch == 0);
    }
}

int recur_parts(const struct recur *r, const struct recur_grad *d)
{
    bool heads, sequences;

    shares(r, d, &heads, &sequences);
    return (heads ? 1 : r->Hs) * (sequences ? 1 : r->B);
}

struct recur_part recur_part(const struct recur *r, const struct recur_grad *d, int i)
{
    bool heads, sequences;

    shares(r, d, &heads, &sequences);
    const int h = heads ? 0 : i % r->Hs, b = sequences ? 0 : heads ? i : i / r->Hs;
    return (struct recur_part){b, sequences ? r->B : b + 1, h, heads ? r->Hs : h + 1};
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

static const struct recur_impl *first_of(const struct recur_impl *const *list,
                                         const struct recur *r, bool backward)
{
    for (int i = 0; list && list[i]; i++)
        if (list[i]->accepts(r, backward))
            return list[i];
    return NULL;
}

const struct recur_impl *engine_recur(const struct engine *g, const struct recur *r, bool backward)
{
    CHECK(!(r->bf16 && backward));
    const struct recur_impl *const rows = first_of(g->recur_rows, r, backward);

    return rows ? rows : first_of(g->recur, r, backward);
}
