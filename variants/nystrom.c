/* SPDX-License-Identifier: MIT
 *
 * Nystromformer: Xiong et al. 2021, "Nystromformer: A Nystrom-Based Algorithm for Approximating
 * Self-Attention".
 *
 *   A_1 = softmax(q K~^T)
 *   A_2 = softmax(Q~ K~^T)
 *   A_3 = softmax(Q~ k^T)                q scaled
 *   o   = (A_1 Z) (A_3 v) + conv(v)      Z the pseudo-inverse of A_2, by iteration
 *   Z_0 = A_2^T / (largest row sum * largest column sum)
 *   Z <- Z/4 (13 I - A_2 Z (15 I - A_2 Z (7 I - A_2 Z)))
 *
 * With `landmark_identity` g, Z is that of A_2 + g I, which is not singular where landmarks are
 * alike: CSALR (Chen et al. 2020, "Compressed Self-Attention via Low-Rank Approximation") has 1.
 *
 * Q~ and K~ are means of m parts of the text, so this is for whole texts; conv is depth-wise over
 * time. With a landmark for each token and many iterations it is full attention. */
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/condensed/nystrom_inverse.h"

struct nystrom {
    int landmarks, iterations;
    int taps;    /* of the convolution; 0 = none */
    float ridge; /* times the identity, added to A_2 */
};

static const struct choice choices[] = {
    ROW_INT(struct nystrom, landmarks, "landmarks", 1, 1 << 12,
            "means that queries and keys are replaced by", .scope = SCOPE_LAYER, .setting = true,
            .tiny = "3"),
    ROW_INT(struct nystrom, iterations, "pinv_iters", 0, 64, "iterations for the pseudo-inverse",
            .scope = SCOPE_LAYER, .setting = true),
    ROW_INT(struct nystrom, taps, "conv_taps", 0, 1 << 12,
            "tokens that the convolution of values reads; 0 = none", .scope = SCOPE_LAYER,
            .setting = true, .key = "conv_kernel", .absent = "0"),
    ROW_REAL(struct nystrom, ridge, "landmark_identity", 0, FLT_MAX,
             "times the identity, added to what landmarks see of each other", .scope = SCOPE_LAYER,
             .absent = "0", .if_other = true, SETTING),
    {0},
};

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct nystrom *const n = numbers;

    if (n->taps && n->taps % 2 == 0)
        return fail(e, E_USAGE, "%s: a convolution of %d taps has no middle  -> use %d",
                    c->variant->name, n->taps, n->taps + 1);
    return OK;
}

static const struct part_numbers nystrom_numbers = {
    choices, PRESET(struct nystrom, .landmarks = 64, .iterations = 6, .taps = 33), check};

static const struct nystrom *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* ---- landmarks ---------------------------------------------------------------------------- */

/* Of a text of L tokens: no more than these. */
static int landmarks(const struct steps *t, struct extent now)
{
    return min_int(numbers(t->c)->landmarks, now.L);
}

/* First row of part t of m of L rows. */
static int part_at(int t, int L, int m) { return (int)((int64_t)t * L / m); }

/* Where coordinate e of a landmark of all heads is in a row, whose heads they may share. */
static int shared_at(const struct step_call *c, int e)
{
    const int dh = c->steps->c->dh, group = c->out->n / c->in->n;

    return e / dh / group * dh + e % dh;
}

/* Means of the parts of a text; or their gradients, to those of rows. */
static void means(const struct step_call *c, const struct matrix *x, const struct matrix *y,
                  bool back)
{
    const int L = c->length, m = c->L, width = y->n;

#pragma omp parallel for num_threads(team_for(c->g->threads, (ptrdiff_t)c->B *L *width))
    for (int at = 0; at < c->B * m; at++) {
        const int from = part_at(at % m, L, m), end = part_at(at % m + 1, L, m);
        float *const to = matrix_row(y, at);
        if (!back)
            memset(to, 0, sizeof(float) * (size_t)width);
        for (int i = from; i < end; i++)
            for (int e = 0; e < width; e++) {
                float *const of = matrix_row(x, (ptrdiff_t)(at / m) * L + i) + shared_at(c, e);
                if (back)
                    *of += 1 / (float)(end - from) * to[e];
                else
                    to[e] += *of;
            }
        for (int e = 0; e < width && !back; e++)
            to[e] /= (float)(end - from);
    }
}

static void means_forward(const struct step_call *c) { means(c, c->in, c->out, false); }
static void means_backward(const struct step_call *c) { means(c, c->d_in, c->d_out, true); }

static int means_of(struct steps *t, int x)
{
    static const struct step_kind kind = {
        .name = "means", .forward = means_forward, .backward = means_backward};
    struct step *const s = STEP_READING(t, &kind, x);

    return step_writes_to(t, s, steps_value_of(t, config_q_width(t->c), landmarks, false));
}

/* ---- between landmarks: Z A_3 v --------------------------------------------------------------- */

enum { LANDMARKS_Q, LANDMARKS_K, SEEN };
enum { GRADIENTS = 2 }; /* matrices of a head: of A_2 and of an iterate */

/* A_2, the iterates from Z_0 on, temporary ones: kept for backward, or in scratch. */
static int n_matrices(const struct config *c)
{
    return numbers(c)->iterations + 2 + NYSTROM_TEMPORARY;
}

static int matrices(const struct steps *t, struct extent now)
{
    const int m = landmarks(t, now);

    return t->c->H * m * m * n_matrices(t->c);
}

/* One head of one sequence, whose matrices are `all` each. */
static struct nystrom_head head_at(const struct step_call *c, const struct matrix *in,
                                   const struct matrix *out, float *z, int all, int at)
{
    const struct config *const m = c->steps->c;
    const ptrdiff_t square = (ptrdiff_t)c->L * c->L, row = out->n;
    const ptrdiff_t first = at / m->H * c->L * row + (ptrdiff_t)(at % m->H) * m->dh;
    float *const a = z + at * square * all;

    return (struct nystrom_head){.g = c->g,
                                 .m = c->L,
                                 .dh = m->dh,
                                 .iterations = numbers(m)->iterations,
                                 .row = row,
                                 .scale = m->scale,
                                 .ridge = numbers(m)->ridge,
                                 .q = in[LANDMARKS_Q].at + first,
                                 .k = in[LANDMARKS_K].at + first,
                                 .o = in[SEEN].at + first,
                                 .to = out->at + first,
                                 .a = a,
                                 .z = a + square};
}

static void invert_forward(const struct step_call *c)
{
    float *const z = c->out[1].at ? c->out[1].at : c->scratch;

#pragma omp parallel for num_threads(c->g->threads)
    for (int at = 0; at < c->B * c->steps->c->H; at++) {
        const struct nystrom_head n = head_at(c, c->in, c->out, z, n_matrices(c->s->c), at);
        nystrom_invert(&n);
    }
}

/* The gradient of Q~ takes the place of the result's. */
static void invert_backward(const struct step_call *c)
{
#pragma omp parallel for num_threads(c->g->threads)
    for (int at = 0; at < c->B * c->steps->c->H; at++) {
        const struct nystrom_head n =
            head_at(c, c->in, c->out, c->out[1].at, n_matrices(c->s->c), at);
        const struct nystrom_head d = head_at(c, c->d_in, c->d_out, c->scratch, GRADIENTS, at);
        nystrom_invert_grad(&n, &d);
    }
    step_add_gradient(c, LANDMARKS_Q);
}

static size_t invert_scratch(const struct engine *g, const struct step *s, struct extent max,
                             bool backward)
{
    const size_t heads = (size_t)max.B * (size_t)s->c->H, m = (size_t)max.L;

    return sizeof(float) * heads * m * m * (size_t)(backward ? GRADIENTS : n_matrices(s->c));
}

static double invert_flop(const struct step *s, int B, int L)
{
    const double m = L, heads = (double)B * s->c->H, dh = s->c->dh;

    return heads * (4 * m * m * dh + 8 * m * m * m * numbers(s->c)->iterations);
}

static int invert(struct steps *t, int q, int k, int seen)
{
    static const struct step_kind kind = {.name = "pseudo-inverse",
                                          .forward = invert_forward,
                                          .backward = invert_backward,
                                          .scratch = invert_scratch,
                                          .flop = invert_flop};
    struct step *const s = STEP_READING(t, &kind, q, k, seen);
    const int to = steps_value_of(t, config_q_width(t->c), landmarks, false);
    const int z = steps_value_of(t, 1, matrices, true);

    t->value[z].of_backward = true;
    step_writes_to(t, s, to);
    step_writes_to(t, s, z);
    return to;
}

/* ---- the convolution ---------------------------------------------------------------------- */

/* For one key/value head: its query heads share values, so a thread has all of their gradients. */
static void convolve(const struct step_call *c, int kv, bool back)
{
    const struct config *const m = c->steps->c;
    const struct param *const W = c->param[0];
    const int L = c->L, taps = numbers(m)->taps, dh = m->dh, group = m->H / m->kv_heads;

    for (int at = 0; at < c->B * group * taps; at++) {
        const int b = at / taps / group, h = kv * group + at / taps % group, t = at % taps;
        const int by = t - taps / 2, weight = h * taps + t;
        const struct matrix *const of = back ? c->d_out : c->out;
        float sum = 0;
        for (int i = max_int(0, -by); i < min_int(L, L - by); i++) {
            const ptrdiff_t from = ((ptrdiff_t)b * L + i + by) * c->in->row + (ptrdiff_t)kv * dh;
            float *const y = matrix_row(of, (ptrdiff_t)b * L + i) + (ptrdiff_t)h * dh;
            for (int e = 0; e < dh && !back; e++)
                y[e] += W->data[weight] * c->in->at[from + e];
            for (int e = 0; e < dh && back; e++) {
                c->d_in->at[from + e] += W->data[weight] * y[e];
                sum += c->in->at[from + e] * y[e];
            }
        }
        if (back)
            W->grad[weight] += sum;
    }
}

static void convolve_all(const struct step_call *c, bool back)
{
    const int n = c->steps->c->kv_heads;

#pragma omp parallel for num_threads(team_for(c->g->threads, (ptrdiff_t)c->B * c->L * c->out->n))
    for (int kv = 0; kv < n; kv++)
        convolve(c, kv, back);
}

static void convolve_forward(const struct step_call *c)
{
    memset(c->out->at, 0, sizeof(float) * (size_t)(c->B * c->out->batch));
    convolve_all(c, false);
}

static void convolve_backward(const struct step_call *c) { convolve_all(c, true); }

static double convolve_flop(const struct step *s, int B, int L)
{
    return 2.0 * B * L * s->result * numbers(s->c)->taps;
}

static int convolution(struct steps *t, int v)
{
    static const struct step_kind kind = {.name = "convolution of values",
                                          .forward = convolve_forward,
                                          .backward = convolve_backward,
                                          .flop = convolve_flop};
    struct step *const s = STEP_READING(t, &kind, v);
    const int taps = numbers(t->c)->taps;

    step_tensor(t, s, INIT_UNIFORM_BOTH, 1 / sqrtf((float)taps), 2, (const int[]){t->c->H, taps},
                "conv.weight");
    return step_writes(t, s, config_q_width(t->c));
}

/* ---- the layer ------------------------------------------------------------------------------ */

enum { TO_KEYS, TO_LANDMARKS };

/* Landmarks to all keys; all queries to landmarks, which every head has its own of. */
static struct attn core(const struct steps *t, int part, struct extent now)
{
    const struct config *const c = t->c;
    const int m = landmarks(t, now);
    struct attn a = attn_of_config(c, now.B, part == TO_KEYS ? m : now.L, 0);

    a.K = part == TO_KEYS ? now.L : m;
    if (part == TO_KEYS)
        return a;
    a.Hkv = c->H;
    a.k_at.row = a.v_at.row = config_q_width(c);
    return a;
}

static void build(struct steps *t)
{
    const struct config *const c = t->c;
    const int maps = steps_projections(t, ""), width = config_q_width(c);
    int x[ATTN_O];

    t->no_past = "means of a whole text have no past  -> use --mem 0";
    steps_end_with(t, maps);
    for (int i = ATTN_Q; i <= ATTN_V; i++)
        x[i] = step_project(t, STEPS_INPUT, maps, i);
    const int conv = numbers(c)->taps ? convolution(t, x[ATTN_V]) : 0;
    const int q = means_of(t, x[ATTN_Q]), k = means_of(t, x[ATTN_K]);
    const int seen = step_attend(t, (struct attend){.q = step_copy(t, q),
                                                    .k = x[ATTN_K],
                                                    .v = x[ATTN_V],
                                                    .width = width,
                                                    .part = TO_KEYS,
                                                    .unseen = true,
                                                    .rows = landmarks,
                                                    .core = core});
    const int o = step_attend(t, (struct attend){.q = x[ATTN_Q],
                                                 .k = k,
                                                 .v = invert(t, q, k, seen),
                                                 .width = width,
                                                 .part = TO_LANDMARKS,
                                                 .unseen = true,
                                                 .core = core});
    t->result = conv ? step_plus(t, o, conv) : o;
}

/* A matrix of landmarks may be as good as singular, that of two by chance: a singular value t of it
 * (with an identity added, less so) is x = t^2 / c of A_2 Z_0, c the product of the largest sums.
 * While x is small, a step multiplies it by 13/4, so that p steps give such a direction the factor
 * (13/4)^p t / c at most, and a change dA of A_2 becomes (13/4)^p |dA| / c of Z. Rows of A_2 have
 * the sum 1, and the largest sum of a column is at least that: c >= 1. Scores that are off by e
 * change a row of a softmax by 2 e at most. */
static double amplifies(const struct config *c)
{
    return 2 * pow(13.0 / 4, numbers(c)->iterations);
}

const struct mixer mixer_nystrom = {.name = "nystrom",
                                    .numbers = &nystrom_numbers,
                                    .kind = &sublayer_attending,
                                    .amplifies = amplifies,
                                    .build = build,
                                    .both = true,
                                    .excludes = EXCLUDES(HAS_CAUSAL)};

const struct variant variant_nystrom = {
    .name = "nystrom",
    .paper = "Xiong et al. 2021, arXiv:2102.03902",
    .about = "attention through means of parts of the text",
    .control = "bert --norm pre",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .mixer = &mixer_nystrom,
    .wiring = WIRING_PRE,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
