/* SPDX-License-Identifier: MIT
 *
 * Training of memory compression: the loss of attention's reading of the compressed rows, and its
 * gradient. Everything except the compressed rows is a constant. */
#include "variants/model/sublayer/sublayer_compress.h"

/* Work space of one sequence: index 0 for the leaving rows, 1 for their compressed rows. */
struct space {
    int rows[2];        /* E, n */
    const float *x[2];  /* [rows,D] as projected by attention */
    float *q;           /* [L,H dh] */
    float *k[2], *v[2]; /* [rows,Hkv dh] */
    float *p[2];        /* [L,rows] of one head */
    float *o[2];        /* [L,H dh] */
    float *fresh;       /* [n,D] after the norm, if norms come first */
    float *d_p;         /* [L,n] of one head */
    float *d_k, *d_v;   /* [n,Hkv dh] */
    float *d_fresh;     /* [n,D] */
    float *stats;
};

struct taken {
    float *at; /* NULL while counting */
    size_t n;
};

static float *take(struct taken *t, int rows, int width)
{
    float *const from = t->at ? t->at + t->n : NULL;

    t->n += (size_t)rows * (size_t)width;
    return from;
}

static size_t lay_out(const struct sublayer *s, int L, int E, float *at, struct space *r)
{
    const struct config *c = s->c;
    const int n = E / compressive_of(c)->ratio, kv = c->kv_heads * c->dh, HD = c->H * c->dh;
    struct taken t = {.at = at};

    *r = (struct space){.rows = {E, n}};
    r->q = take(&t, L, HD);
    for (int i = 0; i < 2; i++) {
        r->k[i] = take(&t, r->rows[i], kv);
        r->v[i] = take(&t, r->rows[i], kv);
        r->p[i] = take(&t, r->rows[i], L);
        r->o[i] = take(&t, L, HD);
    }
    r->fresh = take(&t, n, c->D);
    r->d_p = take(&t, n, L);
    r->d_k = take(&t, n, kv);
    r->d_v = take(&t, n, kv);
    r->d_fresh = take(&t, n, c->D);
    r->stats = take(&t, n, NORM_STATS);
    return t.n;
}

size_t sublayer_reconstruction_floats(const struct sublayer *s, struct extent max)
{
    struct space r;

    if (!compresses(s) || compressive_of(s->c)->form != COMPRESS_CONV)
        return 0;
    return lay_out(s, max.L, max.L + compressive_of(s->c)->ratio - 1, NULL, &r);
}

/* ---- the loss ----------------------------------------------------------------------------- */

/* o [L,H dh] from the rows [which], head by head; the last head's probabilities are kept. */
static void read_head(const struct engine *g, const struct config *c, struct space *r, int which,
                      int h, int L)
{
    const int rows = r->rows[which], HD = c->H * c->dh, kv = c->kv_heads * c->dh;
    const int at = h / (c->H / c->kv_heads) * c->dh;

    mm(g, NT, L, rows, c->dh, c->scale, r->q + h * c->dh, HD, r->k[which] + at, kv, 0, r->p[which],
       rows);
    rows_softmax(g, r->p[which], L, rows);
    mm(g, NN, L, c->dh, rows, 1, r->p[which], rows, r->v[which] + at, kv, 0,
       r->o[which] + h * c->dh, HD);
}

/* All projections of sequence b. */
static void project_all(const struct engine *g, const struct sublayer *s, struct space *r,
                        struct sublayer_input from, int b)
{
    const struct config *c = s->c;
    const float *const source = from.at.at + b * from.at.stride;
    const float *const fresh = s->compressed.fresh + (ptrdiff_t)b * r->rows[1] * c->D;

    r->x[0] = source + (ptrdiff_t)s->memory.compressed * c->D;
    r->x[1] = fresh;
    if (wiring_norms_first(s->wiring)) {
        norm_apply(g, c, s->norm, r->fresh, fresh, NULL, r->rows[1]);
        r->x[1] = r->fresh;
    }
    linear_apply(g, &s->weights[ATTN_Q], r->q, source + (ptrdiff_t)from.M * c->D, from.L);
    for (int i = 0; i < 2; i++) {
        linear_apply(g, &s->weights[ATTN_K], r->k[i], r->x[i], r->rows[i]);
        linear_apply(g, &s->weights[ATTN_V], r->v[i], r->x[i], r->rows[i]);
    }
}

static bool begin(const struct sublayer *s, struct work *w, int L, struct space *r)
{
    const int E = compresses(s) ? compressed_leaving(s, L) : 0;

    if (!E || compressive_of(s->c)->form != COMPRESS_CONV)
        return false;
    CHECK(w->x); /* kept work space */
    lay_out(s, L, E, w->d_scratch, r);
    return true;
}

double sublayer_reconstruction(const struct engine *g, struct sublayer *s, struct work *w, int B,
                               int L)
{
    const struct sublayer_input from = sublayer_source_again(s, w, B, L);
    const ptrdiff_t n = (ptrdiff_t)L * s->c->H * s->c->dh;
    struct space r;
    double sum = 0;

    for (int b = 0; begin(s, w, L, &r) && b < B; b++) {
        project_all(g, s, &r, from, b);
        for (int h = 0; h < s->c->H; h++)
            for (int i = 0; i < 2; i++)
                read_head(g, s->c, &r, i, h, L);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double off = (double)r.o[0][i] - (double)r.o[1][i];
            sum += off * off;
        }
    }
    return sum / ((double)B * (double)n);
}

/* ---- its gradient ------------------------------------------------------------------------- */

/* From d_o in o[1] to head h's part of d_k and d_v. */
static void head_grad(const struct engine *g, const struct config *c, struct space *r, int h, int L)
{
    const int n = r->rows[1], HD = c->H * c->dh, kv = c->kv_heads * c->dh;
    const int group = c->H / c->kv_heads, at = h / group * c->dh;
    const float beta = h % group ? 1 : 0; /* the first head of a group overwrites */
    const float *const d_o = r->o[1] + h * c->dh;
    struct gemm p = mm_of(g, TN, n, c->dh, L, 1, r->p[1], n, d_o, HD, beta, r->d_v + at, kv);

    g->ops.gemm(&p);
    mm(g, NT, L, n, c->dh, 1, d_o, HD, r->v[1] + at, kv, 0, r->d_p, n);
    rows_softmax_grad(g, r->d_p, r->p[1], L, n);
    p.alpha = c->scale;
    p.a = r->d_p;
    p.b = r->q + h * c->dh;
    p.c = r->d_k + at;
    g->ops.gemm(&p);
}

/* From d_k and d_v to the gradient of the compressed rows, through the norm but without its
 * weights. */
static void fresh_grad(const struct engine *g, const struct sublayer *s, struct space *r, int b)
{
    const struct config *c = s->c;
    const int n = r->rows[1];

    linear_input_grad(g, &s->weights[ATTN_K], r->d_fresh, r->d_k, n, 0);
    linear_input_grad(g, &s->weights[ATTN_V], r->d_fresh, r->d_v, n, 1);
    if (wiring_norms_first(s->wiring))
        norm_input_grad(g, c, s->norm, r->d_fresh, r->d_fresh,
                        s->compressed.fresh + (ptrdiff_t)b * n * c->D, r->stats, n);
}

void sublayer_reconstruction_grad(const struct engine *g, struct sublayer *s, struct work *w, int B,
                                  int L)
{
    const struct sublayer_input from = sublayer_source_again(s, w, B, L);
    const ptrdiff_t n = (ptrdiff_t)L * s->c->H * s->c->dh;
    const double factor = 2 / ((double)B * (double)n);
    struct space r;

    for (int b = 0; begin(s, w, L, &r) && b < B; b++) {
        project_all(g, s, &r, from, b);
        for (int h = 0; h < s->c->H; h++) {
            for (int i = 0; i < 2; i++)
                read_head(g, s->c, &r, i, h, L);
            for (int i = 0; i < L; i++)
                for (int e = 0; e < s->c->dh; e++) {
                    const ptrdiff_t at = ((ptrdiff_t)i * s->c->H + h) * s->c->dh + e;
                    r.o[1][at] = (float)(factor * ((double)r.o[1][at] - (double)r.o[0][at]));
                }
            head_grad(g, s->c, &r, h, L);
        }
        fresh_grad(g, s, &r, b);
        compressed_convolve_grad(g, s, r.d_fresh, compressed_old(s, b), r.rows[1]);
    }
}
