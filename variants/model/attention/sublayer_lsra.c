/* SPDX-License-Identifier: MIT
 *
 * Long-short range attention (Wu et al. 2020, "Lite Transformer", arXiv:2004.11886) as a kind of
 * sub-layer. The first d_attn = split channels of a row attend; the other d_conv go through a
 * convolution of the newest k rows, whose weights each group of d_conv/heads channels shares:
 *
 *   y = [attention(x_1 .. x_D1) ; W_out u + b_out]
 *   c_t = W_in x + b_in, or with glu (W_a x + b_a) (.) sigma(W_g x + b_g)
 *   u_t = sum over s < k: softmax(w)_s c_(t-k+1+s)      w trained, or with dynamic W_k c_t
 *
 * Rows before the stream are zeros at c. Attention is the ordinary sub-layer on narrower rows; the
 * convolution is a plain loop. The newest k-1 rows are remembered as they entered, whatever kind of
 * memory attention has. It is no list of steps: half of it is the kind of attention, with its
 * caches. */
#include "sublayer_attention.h"
#include "variants/parts/linear.h"

/* Parameters before those of attention. */
enum { C_IN, C_IN_BIAS, C_TAPS, C_OUT, C_OUT_BIAS, C_PARAMS };
enum { AT_ROOM = AT_SLOTS + 1 };
_Static_assert((int)AT_ROOM < (int)SUB_ARRAYS, "arrays of attention, and one");

struct config lsra_attention(const struct config *c)
{
    struct config narrow = *c;

    narrow.D = c->lsra.split;
    return narrow;
}

/* ---- attention on the first channels -------------------------------------------------------- */

static int taps_before(const struct sublayer *s) { return s->c->lsra.kernel - 1; }
static int conv_width(const struct config *c) { return c->D - c->lsra.split; }

/* Remembered rows that attention reads: fewer than the convolution may need. */
static int attended(const struct sublayer *s, int M)
{
    return s->mem == MEM_HIDDEN ? min_int(M, s->reach) : 0;
}

/* The sub-layer as attention sees it. Its caches are those of `s` once given back. */
static struct sublayer narrowed(const struct sublayer *s)
{
    struct sublayer a = *s;
    const int M = attended(s, s->memory.M);

    a.kind = &sublayer_attention;
    a.c = s->narrow;
    a.weights = s->weights ? s->weights + C_PARAMS : NULL;
    a.memory = (struct cache){.keep = s->reach, .M = M, .seen = s->memory.seen};
    return a;
}

static void give_back(struct sublayer *s, const struct sublayer *a)
{
    s->state.attention = a->state.attention;
}

/* ---- declaration and binding ---------------------------------------------------------------- */

static void lsra_params(const struct sublayer *s, const char *prefix, const char *inner,
                        struct params *p)
{
    const struct lsra *const t = &s->c->lsra;
    const int d_conv = conv_width(s->c), taps = t->heads * t->kernel;
    const struct sublayer a = narrowed(s);

    params_map(p, t->glu ? 2 * d_conv : d_conv, d_conv, prefix, "conv.in.weight");
    params_vector(p, INIT_ZERO, 0, t->glu ? 2 * d_conv : d_conv, prefix, "conv.in.bias");
    if (t->dynamic)
        params_map(p, taps, d_conv, prefix, "conv.kernel.weight");
    else
        params_wide(p, params_matrix(p, t->heads, t->kernel, prefix, "conv.weight"));
    params_residual(p, params_map(p, d_conv, d_conv, prefix, "conv.out.weight"));
    params_vector(p, INIT_ZERO, 0, d_conv, prefix, "conv.out.bias");
    a.kind->params(&a, prefix, inner, p);
}

static int lsra_keeps(const struct sublayer *s, enum mem_kind mem, int M)
{
    const int tail = taps_before(s);

    return mem == MEM_HIDDEN ? max_int(attention_kept(s, M), tail) : mem == MEM_KV ? tail : -1;
}

static size_t lsra_caches(const struct sublayer *s, int M)
{
    const struct sublayer a = narrowed(s);

    return a.kind->caches(&a, M);
}

static enum status lsra_bind(struct sublayer *s, const struct engine *g, struct extent max,
                             struct arena *arena, struct err *e)
{
    s->reach = attention_kept(s, max.M);
    struct sublayer a = narrowed(s);
    const enum status st = a.kind->bind(&a, g, max, arena, e);

    give_back(s, &a);
    return st;
}

/* Places in the room of forward, or of their gradients in that of backward. */
struct lsra_room {
    float *x, *y, *z, *in, *c, *p, *u, *out;
};

/* One call: its sizes, and the places. T rows of the convolution come before the segment's. */
struct lsra_call {
    int B, L, M, T, d_attn, d_conv, wide, taps;
    struct lsra_room at, d;
};

static float *next(float *base, size_t *at, size_t n)
{
    float *const here = base ? base + *at : NULL;

    *at += n;
    return here;
}

static size_t lay_out(const struct lsra_call *n, struct lsra_room *to, float *base)
{
    const size_t rows = (size_t)n->B * (size_t)n->L;
    const size_t all = (size_t)n->B * (size_t)(n->T + n->L), d_conv = (size_t)n->d_conv;
    size_t at = 0;

    to->x = next(base, &at, (size_t)n->B * (size_t)(n->M + n->L) * (size_t)n->d_attn);
    to->y = next(base, &at, rows * (size_t)n->d_attn);
    to->z = next(base, &at, all * d_conv);
    to->in = next(base, &at, all * (size_t)n->wide);
    to->c = next(base, &at, all * d_conv);
    to->p = next(base, &at, rows * (size_t)n->taps);
    to->u = next(base, &at, rows * d_conv);
    to->out = next(base, &at, rows * d_conv);
    return at;
}

static struct lsra_call call_of(const struct sublayer *s, int B, int L, int M, int T)
{
    const struct lsra *const t = &s->c->lsra;
    const int d_conv = conv_width(s->c);

    return (struct lsra_call){.B = B,
                              .L = L,
                              .M = M,
                              .T = T,
                              .d_attn = t->split,
                              .d_conv = d_conv,
                              .wide = t->glu ? 2 * d_conv : d_conv,
                              .taps = t->heads * t->kernel};
}

static void lsra_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct sublayer a = narrowed(s);
    struct lsra_call n = call_of(s, max.B, max.L, attended(s, max.M), taps_before(s));
    const size_t size = lay_out(&n, &n.at, NULL);

    a.kind->arrays(&a, max, out);
    out[AT_ROOM] = (struct array){size, size, false, PART_ACTIVATIONS};
}

static void lsra_arrays_grad(const struct sublayer *s, struct extent max,
                             struct array out[SUB_ARRAYS])
{
    const struct sublayer a = narrowed(s);
    struct lsra_call n = call_of(s, max.B, max.L, attended(s, max.M), taps_before(s));

    a.kind->arrays_grad(&a, max, out);
    out[AT_ROOM] = (struct array){0, lay_out(&n, &n.at, NULL), true, PART_ACTIVATIONS};
}

static struct attn_need lsra_scratch(const struct sublayer *s, const struct engine *g,
                                     bool backward)
{
    const struct sublayer a = narrowed(s);

    return a.kind->scratch(&a, g, backward);
}

static void lsra_build_tables(const struct engine *g, struct sublayer *s, const float *pos_encoding)
{
    struct sublayer a = narrowed(s);

    a.kind->build_tables(g, &a, pos_encoding);
    give_back(s, &a);
}

static struct lsra_call now(const struct sublayer *s, const struct work *w,
                            struct sublayer_input from)
{
    struct lsra_call n =
        call_of(s, from.B, from.L, attended(s, from.M), min_int(from.M, taps_before(s)));

    CHECK(w->array[AT_ROOM]);
    lay_out(&n, &n.at, w->array[AT_ROOM]);
    return n;
}

/* ---- channels of rows ----------------------------------------------------------------------- */

static int team(const struct engine *g, double elements) { return team_for(g->threads, elements); }

/* The last `rows` rows of each source sequence, `width` channels from `at` on, without gaps. */
static void take(const struct engine *g, float *to, struct sublayer_input from, int D, int rows,
                 int at, int width)
{
    const int skip = from.M + from.L - rows;

#pragma omp parallel for num_threads(team(g, (double)from.B *rows *width))
    for (int r = 0; r < from.B * rows; r++)
        memcpy(to + (ptrdiff_t)r * width,
               from.at.at + r / rows * from.at.stride + (ptrdiff_t)(skip + r % rows) * D + at,
               sizeof(float) * (size_t)width);
}

/* Rows [rows,D] of both halves. */
static void both(const struct engine *g, const struct lsra_call *n, float *y)
{
    const ptrdiff_t D = n->d_attn + n->d_conv;

#pragma omp parallel for num_threads(team(g, (double)n->B * n->L * (double)D))
    for (int r = 0; r < n->B * n->L; r++) {
        memcpy(y + r * D, n->at.y + (ptrdiff_t)r * n->d_attn, sizeof(float) * (size_t)n->d_attn);
        memcpy(y + r * D + n->d_attn, n->at.out + (ptrdiff_t)r * n->d_conv,
               sizeof(float) * (size_t)n->d_conv);
    }
}

static struct sublayer_input attention_input(const struct lsra_call *n, float *x)
{
    return (struct sublayer_input){{x, (ptrdiff_t)(n->M + n->L) * n->d_attn}, n->B, n->M, n->L};
}

/* ---- the convolution ------------------------------------------------------------------------ */

/* The taps of row r, of all heads: shared unless dynamic. */
static ptrdiff_t taps_at(const struct sublayer *s, const struct lsra_call *n, int r)
{
    return s->c->lsra.dynamic ? (ptrdiff_t)r * n->taps : 0;
}

/* Softmaxes over taps. */
static int groups(const struct sublayer *s, const struct lsra_call *n)
{
    return s->c->lsra.heads * (s->c->lsra.dynamic ? n->B * n->L : 1);
}

/* Rows of c that tap s of row t of a sequence reads: negative before the stream. */
static int row_of(const struct lsra_call *n, int t, int k, int s) { return n->T + t - k + 1 + s; }

static void convolve(const struct engine *g, const struct sublayer *s, const struct lsra_call *n)
{
    const int k = s->c->lsra.kernel, group = n->d_conv / s->c->lsra.heads, all = n->T + n->L;

#pragma omp parallel for num_threads(team(g, (double)n->B * n->L * n->d_conv))
    for (int r = 0; r < n->B * n->L; r++) {
        const float *const p = n->at.p + taps_at(s, n, r);
        const float *const c = n->at.c + (ptrdiff_t)(r / n->L) * all * n->d_conv;
        float *const u = n->at.u + (ptrdiff_t)r * n->d_conv;
        memset(u, 0, sizeof(float) * (size_t)n->d_conv);
        for (int i = 0; i < k; i++) {
            const int row = row_of(n, r % n->L, k, i);
            for (int e = 0; row >= 0 && e < n->d_conv; e++)
                u[e] += p[e / group * k + i] * c[(ptrdiff_t)row * n->d_conv + e];
        }
    }
}

/* Sequences and channels in turn, each by one thread in the order of rows. */
static void convolve_grad(const struct engine *g, const struct sublayer *s,
                          const struct lsra_call *n)
{
    const int k = s->c->lsra.kernel, group = n->d_conv / s->c->lsra.heads, all = n->T + n->L;
    const int heads = s->c->lsra.heads;
    const bool dynamic = s->c->lsra.dynamic;

    memset(n->d.c, 0, sizeof(float) * (size_t)n->B * (size_t)all * (size_t)n->d_conv);
    memset(n->d.p, 0,
           sizeof(float) * (dynamic ? (size_t)n->B * (size_t)n->L : 1) * (size_t)n->taps);
#pragma omp parallel for num_threads(team(g, (double)n->B * n->L * n->d_conv))
    for (int h = 0; h < heads; h++)
        for (int r = 0; r < n->B * n->L; r++) {
            const ptrdiff_t base = (ptrdiff_t)(r / n->L) * all * n->d_conv;
            const ptrdiff_t taps = taps_at(s, n, r) + (ptrdiff_t)h * k;
            const float *const d_u = n->d.u + (ptrdiff_t)r * n->d_conv;
            for (int i = 0; i < k; i++) {
                const int row = row_of(n, r % n->L, k, i);
                float sum = 0;
                for (int e = h * group; row >= 0 && e < (h + 1) * group; e++) {
                    const ptrdiff_t at = base + (ptrdiff_t)row * n->d_conv + e;
                    sum += d_u[e] * n->at.c[at];
                    n->d.c[at] += d_u[e] * n->at.p[taps + i];
                }
                n->d.p[taps + i] += sum;
            }
        }
}

/* Rows of the segment, after the T before them. */
static struct seq_rows new_rows(const struct lsra_call *n, float *at)
{
    return (struct seq_rows){at + (ptrdiff_t)n->T * n->d_conv,
                             (ptrdiff_t)(n->T + n->L) * n->d_conv};
}

static struct seq_rows tap_rows(const struct lsra_call *n, float *at)
{
    return (struct seq_rows){at, (ptrdiff_t)n->L * n->taps};
}

static void conv_forward(const struct engine *g, const struct sublayer *s,
                         const struct lsra_call *n)
{
    const struct param *const w = s->weights;
    const int rows = n->B * (n->T + n->L);
    float *const first = s->c->lsra.glu ? n->at.in : n->at.c;

    linear_forward(g, &w[C_IN], &w[C_IN_BIAS], first, n->at.z, rows, (struct act){.y = first});
    if (s->c->lsra.glu)
        g->ops.glu(&(struct glu){.kind = ACT_SIGMOID,
                                 .y = n->at.c,
                                 .a = n->at.in + n->d_conv,
                                 .b = n->at.in,
                                 .ld = n->wide,
                                 .rows = rows,
                                 .n = n->d_conv,
                                 .threads = g->threads});
    if (s->c->lsra.dynamic)
        project_map(g, &w[C_TAPS], NULL, tap_rows(n, n->at.p), new_rows(n, n->at.c), n->B, n->L);
    else
        memcpy(n->at.p, w[C_TAPS].data, sizeof(float) * (size_t)n->taps);
    rows_softmax(g, n->at.p, groups(s, n), s->c->lsra.kernel);
    convolve(g, s, n);
    linear_forward(g, &w[C_OUT], &w[C_OUT_BIAS], n->at.out, n->at.u, n->B * n->L,
                   (struct act){.y = n->at.out});
}

/* From d_out to d_z; accumulates weight gradients. */
static void conv_backward(const struct engine *g, const struct sublayer *s,
                          const struct lsra_call *n)
{
    const struct param *const w = s->weights;
    const int rows = n->B * (n->T + n->L);
    const bool dynamic = s->c->lsra.dynamic, glu = s->c->lsra.glu;

    linear_backward(g, &w[C_OUT], &w[C_OUT_BIAS], n->d.u, n->d.out, n->at.u, n->B * n->L, 0);
    convolve_grad(g, s, n);
    rows_softmax_grad(g, n->d.p, n->at.p, groups(s, n), s->c->lsra.kernel);
    if (dynamic) {
        project_weight_grad(g, &w[C_TAPS], tap_rows(n, n->d.p), new_rows(n, n->at.c), n->B, n->L);
        project_input_grad(g, &w[C_TAPS], new_rows(n, n->d.c), tap_rows(n, n->d.p), n->B, n->L, 1);
    } else
        for (int i = 0; i < n->taps; i++)
            w[C_TAPS].grad[i] += n->d.p[i];
    if (glu)
        g->ops.glu_grad(&(struct glu_grad){.kind = ACT_SIGMOID,
                                           .d_a = n->d.in + n->d_conv,
                                           .d_b = n->d.in,
                                           .d_y = n->d.c,
                                           .a = n->at.in + n->d_conv,
                                           .b = n->at.in,
                                           .ld = n->wide,
                                           .rows = rows,
                                           .n = n->d_conv,
                                           .threads = g->threads});
    const float *const d_in = glu ? n->d.in : n->d.c;
    linear_backward(g, &w[C_IN], &w[C_IN_BIAS], n->d.z, d_in, n->at.z, rows, 0);
}

/* ---- the sub-layer -------------------------------------------------------------------------- */

static void lsra_forward(const struct engine *g, struct sublayer *s, struct work *w,
                         struct sublayer_input from, struct act epilogue)
{
    const struct lsra_call n = now(s, w, from);
    struct sublayer a = narrowed(s);
    struct work of_attention = *w;

    of_attention.y = n.at.y;
    take(g, n.at.x, from, s->c->D, n.M + n.L, 0, n.d_attn);
    take(g, n.at.z, from, s->c->D, n.T + n.L, n.d_attn, n.d_conv);
    a.kind->forward(g, &a, &of_attention, attention_input(&n, n.at.x), (struct act){.y = n.at.y});
    give_back(s, &a);
    conv_forward(g, s, &n);
    both(g, &n, w->y);
    linear_epilogue(g, epilogue, w->y, n.B * n.L, s->c->D);
}

/* d_in [B,M+L-skip,D]: the first channels from attention, the others from the convolution, which
 * reads other rows. */
static void join_grad(const struct lsra_call *n, struct sublayer_input from, float *d_in, int skip,
                      int skipped)
{
    const int rows = from.M + from.L - skip, D = n->d_attn + n->d_conv;
    const int attention = n->M + n->L - skipped, conv = n->T + n->L;

    memset(d_in, 0, sizeof(float) * (size_t)from.B * (size_t)rows * (size_t)D);
    for (int r = 0; r < from.B * rows; r++) {
        const int b = r / rows, last = rows - r % rows; /* from the end, 1 the newest */
        float *const to = d_in + (ptrdiff_t)r * D;
        if (last <= attention)
            memcpy(to, n->d.x + (ptrdiff_t)(b * attention + attention - last) * n->d_attn,
                   sizeof(float) * (size_t)n->d_attn);
        if (last <= conv)
            memcpy(to + n->d_attn, n->d.z + (ptrdiff_t)(b * conv + conv - last) * n->d_conv,
                   sizeof(float) * (size_t)n->d_conv);
    }
}

static void lsra_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                          struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    struct lsra_call n = now(s, w, from);
    struct sublayer a = narrowed(s);
    const int skipped = skip ? n.M : 0;
    const struct sublayer_input rows = {{(float *)d_y, (ptrdiff_t)n.L * s->c->D}, n.B, 0, n.L};

    CHECK(w->d_array[AT_ROOM]);
    lay_out(&n, &n.d, w->d_array[AT_ROOM]);
    take(g, n.d.y, rows, s->c->D, n.L, 0, n.d_attn);
    take(g, n.d.out, rows, s->c->D, n.L, n.d_attn, n.d_conv);
    a.kind->backward(g, &a, w, attention_input(&n, n.at.x), n.d.x, n.d.y, skipped);
    conv_backward(g, s, &n);
    join_grad(&n, from, d_in, skip, skipped);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Of the new rows only: the convolution's are remembered by the wiring. */
static void lsra_remember(const struct engine *g, struct sublayer *s, struct work *w,
                          struct sublayer_input from)
{
    const struct lsra_call n = now(s, w, from);
    struct sublayer a = narrowed(s);

    take(g, n.at.x, from, s->c->D, n.L, 0, n.d_attn);
    a.kind->remember(g, &a, w, attention_input(&n, n.at.x));
    give_back(s, &a);
}

/* ---- cost ----------------------------------------------------------------------------------- */

static double conv_flop(const struct sublayer *s, int B, int L, bool tail)
{
    const struct lsra_call n = call_of(s, B, L, 0, 0);
    const double rows = (double)B * L, d_conv = n.d_conv;
    const double in = rows + (tail ? (double)B * taps_before(s) : 0);

    return 2 * in * d_conv * n.wide + 2 * rows * d_conv * d_conv +
           2 * rows * d_conv * s->c->lsra.kernel +
           (s->c->lsra.dynamic ? 2 * rows * d_conv * n.taps : 0);
}

static struct sublayer_cost lsra_cost(const struct sublayer *s, int B, int L, int M)
{
    const struct sublayer a = narrowed(s);
    struct sublayer_cost sum = a.kind->cost(&a, B, L, M);

    sum.forward += conv_flop(s, B, L, s->keeps && s->memory.M > 0);
    sum.backward += 2 * conv_flop(s, B, L, false);
    return sum;
}

const struct sublayer_kind sublayer_lsra = {
    .name = "lsra",
    .memory = "mem",
    .mixes = true,
    .masked = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = lsra_params,
    .keeps = lsra_keeps,
    .caches = lsra_caches,
    .bind = lsra_bind,
    .arrays = lsra_arrays,
    .arrays_grad = lsra_arrays_grad,
    .scratch = lsra_scratch,
    .build_tables = lsra_build_tables,
    .forward = lsra_forward,
    .backward = lsra_backward,
    .remember = lsra_remember,
    .commit = attention_commit,
    .forget = attention_forget,
    .cost = lsra_cost,
};
