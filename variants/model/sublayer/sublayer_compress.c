/* SPDX-License-Identifier: MIT
 *
 * A memory of two parts, [cm; m]: rows that leave m are compressed, c to one, and become rows of cm
 * (Rae et al. 2019, arXiv:1911.05507). Of f = [m; x], e rows
 * leave after a segment:
 *
 *   e   = c floor(max(0, rows(f) - most of m) / c)
 *   cm' = the last of [cm; compress(the oldest e of f)]
 *
 * so up to c - 1 rows wait in m for their group to be complete. Both parts are stored in the
 * sub-layer's one cache, oldest first: attention sees K rows as usual, and distances count rows.
 * Rows are compressed in the forward pass of the segment and moved when it is committed. */
#include "sublayer_compress.h"

bool compresses(const struct sublayer *s) { return s->compressed.most > 0; }

void compressed_params(const struct config *c, const char *prefix, struct params *p)
{
    const int i =
        params_add(p, INIT_LINEAR, 0, 3, (const int[]){c->D, c->D, compressive_of(c)->ratio},
                   "%scompress.weight", prefix);
    p->v[i].maps = 1; /* a convolution: of all that it reads */

    params_vector(p, INIT_ZERO, 0, c->D, prefix, "compress.bias");
}

void compressed_bind(struct sublayer *s, struct extent max, struct arena *a)
{
    const struct config *c = s->c;
    const int wait = compressive_of(c)->ratio - 1,
              plain = s->memory.keep - compressive_of(c)->rows - wait;
    const size_t D = (size_t)c->D;

    s->compressed = (struct compressed){0};
    if (!s->keeps || !s->kind->positions || compressive_of(c)->rows < 1 ||
        plain < 1) /* too short for both: no compression */
        return;
    s->compressed = (struct compressed){.most = compressive_of(c)->rows, .plain = plain};
    s->compressed.fresh =
        arena_f32(a, PART_SCRATCH,
                  (size_t)max.B * (size_t)((max.L + wait) / compressive_of(c)->ratio + 1) * D);
    if (compressive_of(c)->form == COMPRESS_CONV)
        s->compressed.group = arena_f32(a, PART_SCRATCH, (size_t)(max.L + wait) * D);
}

/* Rows that leave m when L new ones follow it. */
int compressed_leaving(const struct sublayer *s, int L)
{
    const int rows = s->memory.M - s->memory.compressed + L, over = rows - s->compressed.plain;

    return over > 0 ? over / compressive_of(s->c)->ratio * compressive_of(s->c)->ratio : 0;
}

/* ---- compressing -------------------------------------------------------------------------- */

/* u [n, D c]: element (d, t) of a group is coordinate d of its t-th row, as in the weights. */
static void gather(float *u, const float *old, int n, int D, int c)
{
    for (int i = 0; i < n; i++)
        for (int t = 0; t < c; t++)
            for (int d = 0; d < D; d++)
                u[((ptrdiff_t)i * D + d) * c + t] = old[((ptrdiff_t)i * c + t) * D + d];
}

static void pool(float *y, const float *old, int n, int D, int c, bool largest)
{
    for (int i = 0; i < n; i++)
        for (int d = 0; d < D; d++) {
            const float *x = old + (ptrdiff_t)i * c * D + d;
            float most = x[0];
            double sum = 0;
            for (int t = 0; t < c; t++) {
                sum += (double)x[t * D];
                most = x[t * D] > most ? x[t * D] : most;
            }
            y[i * D + d] = largest ? most : (float)(sum / c);
        }
}

static void convolve(const struct engine *g, const struct sublayer *s, float *y, const float *old,
                     int n)
{
    const struct param *W = s->compress;
    const int D = s->c->D, width = D * compressive_of(s->c)->ratio;

    gather(s->compressed.group, old, n, D, compressive_of(s->c)->ratio);
    mm(g, NT, n, D, width, 1, s->compressed.group, width, W[0].data, width, 0, y, D);
    g->ops.act(
        &(struct act){.y = y, .x = y, .bias = W[1].data, .rows = n, .n = D, .threads = g->threads});
}

void compressed_convolve_grad(const struct engine *g, const struct sublayer *s, const float *d_y,
                              const float *old, int n)
{
    const struct param *W = s->compress;
    const int D = s->c->D, width = D * compressive_of(s->c)->ratio;

    gather(s->compressed.group, old, n, D, compressive_of(s->c)->ratio);
    mm(g, TN, D, width, n, 1, d_y, D, s->compressed.group, width, 1, W[0].grad, width);
    linear_bias_grad(g, &W[1], d_y, n);
}

/* The first row that leaves, in sequence b. */
const float *compressed_old(const struct sublayer *s, int b)
{
    return cache_rows(&s->memory, b) + (ptrdiff_t)s->memory.compressed * s->c->D;
}

void compressed_prepare(const struct engine *g, struct sublayer *s, int B, int L)
{
    const struct config *c = s->c;
    const int e = compressed_leaving(s, L), n = e / compressive_of(c)->ratio;

    s->compressed.n_fresh = n;
    for (int b = 0; b < B && n; b++) {
        float *const y = s->compressed.fresh + (ptrdiff_t)b * n * c->D;
        if (compressive_of(c)->form == COMPRESS_CONV)
            convolve(g, s, y, compressed_old(s, b), n);
        else
            pool(y, compressed_old(s, b), n, c->D, compressive_of(c)->ratio,
                 compressive_of(c)->form == COMPRESS_MAX);
    }
}

/* ---- memory ------------------------------------------------------------------------------- */

/* [cm; old; rest] becomes [cm'; rest]: what is kept moves up to the rest, which stays in place. */
void compressed_commit(struct sublayer *s, int L)
{
    struct compressed *const t = &s->compressed;
    struct cache *const m = &s->memory;
    const int D = s->c->D, cm = m->compressed, e = compressed_leaving(s, L), n = t->n_fresh;
    const int fresh = min_int(n, t->most), kept = min_int(cm, t->most - fresh);
    const ptrdiff_t rest = cm + e;

    CHECK(n * compressive_of(s->c)->ratio == e);
    for (int b = 0; b < m->B && e; b++) {
        float *const rows = cache_rows(m, b);
        memmove(rows + (rest - fresh - kept) * D, rows + (ptrdiff_t)(cm - kept) * D,
                sizeof(float) * (size_t)kept * (size_t)D);
        memcpy(rows + (rest - fresh) * D, t->fresh + ((ptrdiff_t)b * n + n - fresh) * D,
               sizeof(float) * (size_t)fresh * (size_t)D);
    }
    if (e) {
        m->start += (int)rest - fresh - kept;
        m->M -= (int)rest - fresh - kept;
        m->compressed = fresh + kept;
    }
    m->M += L;
    m->seen += L;
    t->n_fresh = 0;
    CHECK(m->M <= m->keep);
}

int compressed_reach(const struct sublayer *s)
{
    const int c = compressive_of(s->c)->ratio;

    return compresses(s) ? s->compressed.plain + s->compressed.most * c + c - 1 : s->memory.keep;
}

double compressed_flop(const struct sublayer *s, int B, int L)
{
    const double D = s->c->D;

    return compresses(s) && compressive_of(s->c)->form == COMPRESS_CONV ? 2.0 * B * L * D * D : 0;
}
