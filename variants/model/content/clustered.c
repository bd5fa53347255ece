/* SPDX-License-Identifier: MIT
 *
 * Clustered attention: Vyas et al. 2020, "Fast Transformers with Clustered Attention",
 * arXiv:2007.04825. Bit p of a query is planes[p, :dh] . q > planes[p, dh]. Lloyd's algorithm in
 * Hamming distance: centroid c begins as the bits of query floor(c L/C); so many times each query
 * goes to its nearest centroid and each bit of a centroid to the majority of its members; then each
 * query once more. Ties go to the lowest; a centroid without members stays.
 *
 *   Q_c = mean of the members' queries
 *   A_c = softmax(s Q_c K^T)
 *   o_i = A_c(i) V
 *
 * With cluster_top t, T_c are the t keys with the largest scores of c and m_c their mass:
 *
 *   o_i = sum_(j not in T_c) A_cj v_j + m_c softmax over T_c of (s q_i . k_j) v_j */
#include "plain.h"

#include "variants/model/attention/sublayer_attention.h"

struct clustered {
    int clusters, bits, lloyd, top;
};

static const struct choice choices[] = {
    ROW_INT(struct clustered, clusters, "clusters", 1, 1 << 16, "clusters of queries",
            .setting = true, .tiny = "3"),
    ROW_INT(struct clustered, bits, "bits", 1, 1 << 10, "bits of a query that is clustered",
            .setting = true, .tiny = "9"),
    ROW_INT(struct clustered, lloyd, "lloyd", 0, 1 << 10, "times that centroids move",
            .setting = true, .absent = "10"),
    ROW_INT(struct clustered, top, "cluster_top", 0, 1 << 16,
            "keys that each query of a cluster scores itself, 0 = none", .setting = true,
            .absent = "0", .tiny = "0|2"),
    {0},
};

static const struct clustered *clustered_of(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

const struct part_numbers clustered_numbers = {
    choices, PRESET(struct clustered, .clusters = 100, .bits = 63, .lloyd = 10)};

static void params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const int shape[] = {clustered_of(s->c)->bits, s->c->dh + 1};

    params_buffer(p, params_add(p, INIT_NORMAL, 1, 2, shape, "%splanes", prefix));
}

/* ---- what is kept ------------------------------------------------------------------------- */

/* Of one head: the cluster of each query [L], queries and outputs of clusters [C,dh], the logarithm
 * of their sums [C], with cluster_top their scores [C,K]. */
struct kept {
    float *cluster, *q, *o, *lse, *scores;
    size_t floats;
};

static struct kept kept_at(const struct config *c, int L, float *base)
{
    const struct clustered *const k = clustered_of(c);
    const size_t C = (size_t)k->clusters, dh = (size_t)c->dh, rows = (size_t)L;
    const size_t sizes[] = {rows, C * dh, C * dh, C, k->top ? C * rows : 0};
    struct kept x;
    float **const to[] = {&x.cluster, &x.q, &x.o, &x.lse, &x.scores};
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        *to[i] = base ? base + at : NULL;
        at += sizes[i];
    }
    x.floats = at;
    return x;
}

static size_t kept(const struct sublayer *s, struct extent max)
{
    return (size_t)(max.B * s->c->H) * kept_at(s->c, max.L, NULL).floats;
}

/* A thread's: bits of queries and of centroids, how many members have each bit, and members; keys
 * of a cluster and their probabilities; gradients of a cluster's query, output and query's output.
 */
struct room {
    uint64_t *code, *centroid;
    int32_t *ones, *members, *keys;
    double *p;
    bool *taken;
    float *d_q, *d_o, *row;
    size_t bytes;
};

static struct room room_at(const struct config *c, int L, void *base)
{
    const struct clustered *const k = clustered_of(c);
    const size_t C = (size_t)k->clusters, words = (size_t)bits_words(k->bits), n = (size_t)L;
    const size_t dh = (size_t)c->dh;
    size_t at = 0;
    struct room r;

    r.code = content_place(base, &at, n * words, sizeof(*r.code));
    r.centroid = content_place(base, &at, C * words, sizeof(*r.centroid));
    r.ones = content_place(base, &at, C * (size_t)k->bits, sizeof(*r.ones));
    r.members = content_place(base, &at, C, sizeof(*r.members));
    r.keys = content_place(base, &at, n, sizeof(*r.keys));
    r.p = content_place(base, &at, n, sizeof(*r.p));
    r.taken = content_place(base, &at, n, sizeof(*r.taken));
    r.d_q = content_place(base, &at, C * dh, sizeof(*r.d_q));
    r.d_o = content_place(base, &at, C * dh, sizeof(*r.d_o));
    r.row = content_place(base, &at, dh, sizeof(*r.row));
    r.bytes = at;
    return r;
}

static size_t scratch(const struct sublayer *s, struct extent max, int threads)
{
    return (size_t)threads * room_at(s->c, max.L, NULL).bytes;
}

/* One head of one sequence. */
struct head {
    const struct content_call *n;
    const struct clustered *k;
    struct kept kept;
    struct room room;
    int b, h, words;
};

static struct head head_of(const struct content_call *n, int head)
{
    const struct config *const c = n->s->c;
    const size_t bytes = room_at(c, n->s->state.attention.largest.L, NULL).bytes;
    const size_t floats = kept_at(c, n->a.L, NULL).floats;

    return (struct head){.n = n,
                         .k = clustered_of(c),
                         .kept = kept_at(c, n->a.L, n->kept + (size_t)head * floats),
                         .room = room_at(c, n->a.L, content_room(n, bytes)),
                         .b = head / n->a.H,
                         .h = head % n->a.H,
                         .words = bits_words(clustered_of(c)->bits)};
}

/* ---- clusters ----------------------------------------------------------------------------- */

static void find_bits(const struct head *t)
{
    const struct attn *const a = &t->n->a;
    const float *const planes = content_buffer(t->n->s, 0)->data;

    memset(t->room.code, 0, sizeof(uint64_t) * (size_t)a->L * (size_t)t->words);
    for (int i = 0; i < a->L; i++) {
        const float *const q = content_q(a, t->b, t->h, i);
        for (int p = 0; p < t->k->bits; p++) {
            const float *const plane = planes + (ptrdiff_t)p * (a->dh + 1);
            double sum = 0;
            for (int e = 0; e < a->dh; e++)
                sum += (double)plane[e] * (double)q[e];
            if (sum > (double)plane[a->dh])
                t->room.code[(ptrdiff_t)i * t->words + p / 64] |= (uint64_t)1 << p % 64;
        }
    }
}

static int distance(const uint64_t *x, const uint64_t *y, int words)
{
    int n = 0;

    for (int w = 0; w < words; w++)
        n += __builtin_popcountll(x[w] ^ y[w]);
    return n;
}

static void assign(const struct head *t)
{
    for (int i = 0; i < t->n->a.L; i++) {
        const uint64_t *const code = t->room.code + (ptrdiff_t)i * t->words;
        int best = 0, least = distance(code, t->room.centroid, t->words);
        for (int c = 1; c < t->k->clusters; c++) {
            const int far = distance(code, t->room.centroid + (ptrdiff_t)c * t->words, t->words);
            if (far < least) {
                least = far;
                best = c;
            }
        }
        t->kept.cluster[i] = (float)best;
    }
}

static int cluster_of(const struct head *t, int i) { return (int)t->kept.cluster[i]; }

static void count_members(const struct head *t)
{
    memset(t->room.members, 0, sizeof(int32_t) * (size_t)t->k->clusters);
    for (int i = 0; i < t->n->a.L; i++)
        t->room.members[cluster_of(t, i)]++;
}

static void move_centroids(const struct head *t)
{
    const int bits = t->k->bits;

    count_members(t);
    memset(t->room.ones, 0, sizeof(int32_t) * (size_t)t->k->clusters * (size_t)bits);
    for (int i = 0; i < t->n->a.L; i++)
        for (int p = 0; p < bits; p++)
            t->room.ones[(ptrdiff_t)cluster_of(t, i) * bits + p] +=
                (int)(t->room.code[(ptrdiff_t)i * t->words + p / 64] >> p % 64 & 1);
    for (int c = 0; c < t->k->clusters; c++) {
        uint64_t *const centroid = t->room.centroid + (ptrdiff_t)c * t->words;
        if (t->room.members[c] == 0)
            continue;
        memset(centroid, 0, sizeof(*centroid) * (size_t)t->words);
        for (int p = 0; p < bits; p++)
            if (2 * t->room.ones[(ptrdiff_t)c * bits + p] > t->room.members[c])
                centroid[p / 64] |= (uint64_t)1 << p % 64;
    }
}

static void find_clusters(const struct head *t)
{
    const size_t code = sizeof(uint64_t) * (size_t)t->words;

    find_bits(t);
    for (int c = 0; c < t->k->clusters; c++) {
        const ptrdiff_t i = (ptrdiff_t)c * t->n->a.L / t->k->clusters;
        memcpy(t->room.centroid + (ptrdiff_t)c * t->words, t->room.code + i * t->words, code);
    }
    for (int k = 0; k < t->k->lloyd; k++) {
        assign(t);
        move_centroids(t);
    }
    assign(t);
    count_members(t);
}

static void find_queries(const struct head *t)
{
    const struct attn *const a = &t->n->a;

    memset(t->kept.q, 0, sizeof(float) * (size_t)t->k->clusters * (size_t)a->dh);
    for (int i = 0; i < a->L; i++) {
        const int c = cluster_of(t, i);
        add_in_lanes(t->kept.q + (ptrdiff_t)c * a->dh, 1.0f / (float)t->room.members[c],
                     content_q(a, t->b, t->h, i), a->dh);
    }
}

/* ---- attention of clusters ---------------------------------------------------------------- */

static struct attn operands(const struct head *t)
{
    const struct attn *const all = &t->n->a;
    struct attn one = *all;

    one.B = one.H = one.Hkv = 1;
    one.L = t->k->clusters;
    one.K = all->L;
    one.q = t->kept.q;
    one.o = t->kept.o;
    one.q_at = one.o_at = (struct stride){0, all->dh};
    one.k = content_k(all, t->b, t->h, 0);
    one.v = content_v(all, t->b, t->h, 0);
    one.lse = t->kept.lse;
    one.scores_out = t->k->top ? t->kept.scores : NULL;
    return one;
}

/* The keys of T_c: those of the largest scores, each marked. Returns their number. */
static int find_top(const struct head *t, int c)
{
    const int K = t->n->a.L, n = min_int(t->k->top, K);
    const float *const s = t->kept.scores + (ptrdiff_t)c * K;

    memset(t->room.taken, 0, sizeof(bool) * (size_t)K);
    for (int x = 0; x < n; x++) {
        int best = -1;
        for (int j = 0; j < K; j++)
            if (!t->room.taken[j] && (best < 0 || s[j] > s[best]))
                best = j;
        t->room.taken[best] = true;
        t->room.keys[x] = best;
    }
    return n;
}

static double weight(const struct head *t, int c, int j)
{
    return exp((double)t->kept.scores[(ptrdiff_t)c * t->n->a.L + j] - (double)t->kept.lse[c]);
}

static double mass_of(const struct head *t, int c, int n)
{
    double mass = 0;

    for (int x = 0; x < n; x++)
        mass += weight(t, c, t->room.keys[x]);
    return mass;
}

static struct plain_row row_of(const struct head *t, int i, int n)
{
    return (struct plain_row){
        .a = &t->n->a, .b = t->b, .h = t->h, .i = i, .keys = t->room.keys, .n = n, .p = t->room.p};
}

static void top_forward(const struct head *t, int c)
{
    const struct attn *const a = &t->n->a;
    float *const rest = t->room.row;
    const int n = find_top(t, c);
    const double mass = mass_of(t, c, n);

    memcpy(rest, t->kept.o + (ptrdiff_t)c * a->dh, sizeof(float) * (size_t)a->dh);
    for (int x = 0; x < n; x++)
        add_in_lanes(rest, (float)-weight(t, c, t->room.keys[x]),
                     content_v(a, t->b, t->h, t->room.keys[x]), a->dh);
    for (int i = 0; i < a->L; i++) {
        if (cluster_of(t, i) != c)
            continue;
        const struct plain_row row = row_of(t, i, n);
        float *const o = content_o(a, t->b, t->h, i);
        plain_probs(&row);
        memcpy(o, rest, sizeof(float) * (size_t)a->dh);
        plain_output(&row, mass, o);
    }
}

static void head_forward(const struct head *t)
{
    const struct attn *const a = &t->n->a;
    const struct attn one = operands(t);

    find_clusters(t);
    find_queries(t);
    content_core(t->n, &one, NULL);
    for (int c = 0; c < t->k->clusters && t->k->top; c++)
        if (t->room.members[c])
            top_forward(t, c);
    for (int i = 0; i < a->L && !t->k->top; i++)
        memcpy(content_o(a, t->b, t->h, i), t->kept.o + (ptrdiff_t)cluster_of(t, i) * a->dh,
               sizeof(float) * (size_t)a->dh);
}

/* ---- backward ----------------------------------------------------------------------------- */

static const float *d_output(const struct head *t, const struct attn_grad *d, int i)
{
    const struct attn *const a = &t->n->a;

    return d->d_o + (content_o(a, t->b, t->h, i) - a->o);
}

/* With dA_j = d_rest . v_j outside of T_c and d_mass inside: G = A (dA - sum A dA). */
static void top_backward(const struct head *t, int c, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const int n = find_top(t, c);
    const double mass = mass_of(t, c, n);
    float *const d_rest = t->room.d_o + (ptrdiff_t)c * a->dh;
    float *const d_query = t->room.d_q + (ptrdiff_t)c * a->dh;
    const float *const query = t->kept.q + (ptrdiff_t)c * a->dh;
    double d_mass = 0, delta = 0;

    for (int i = 0; i < a->L; i++) {
        if (cluster_of(t, i) != c)
            continue;
        const struct plain_row row = row_of(t, i, n);
        memset(t->room.row, 0, sizeof(float) * (size_t)a->dh);
        plain_probs(&row);
        plain_output(&row, 1, t->room.row);
        d_mass += content_dot(d_output(t, d, i), t->room.row, a->dh);
        plain_grad(&row, mass, d_output(t, d, i), 0, d);
    }
    for (int j = 0; j < a->L; j++) {
        const float *const v = content_v(a, t->b, t->h, j);
        t->room.p[j] = t->room.taken[j] ? d_mass : content_dot(d_rest, v, a->dh);
        delta += weight(t, c, j) * t->room.p[j];
    }
    for (int j = 0; j < a->L; j++) {
        const float *const k = content_k(a, t->b, t->h, j), *const v = content_v(a, t->b, t->h, j);
        const double A = weight(t, c, j);
        const float G = (float)((double)a->scale * A * (t->room.p[j] - delta));
        add_in_lanes(d_query, G, k, a->dh);
        add_in_lanes(d->d_k + (k - a->k), G, query, a->dh);
        if (!t->room.taken[j])
            add_in_lanes(d->d_v + (v - a->v), (float)A, d_rest, a->dh);
    }
}

static void head_backward(const struct head *t, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const struct attn one = operands(t);
    const size_t rows = sizeof(float) * (size_t)t->k->clusters * (size_t)a->dh;

    count_members(t);
    memset(t->room.d_q, 0, rows);
    memset(t->room.d_o, 0, rows);
    for (int i = 0; i < a->L; i++)
        add_in_lanes(t->room.d_o + (ptrdiff_t)cluster_of(t, i) * a->dh, 1, d_output(t, d, i),
                     a->dh);
    if (!t->k->top)
        content_core(t->n, &one,
                     &(struct attn_grad){.d_o = t->room.d_o,
                                         .d_q = t->room.d_q,
                                         .d_k = d->d_k + (one.k - a->k),
                                         .d_v = d->d_v + (one.v - a->v)});
    for (int c = 0; c < t->k->clusters && t->k->top; c++)
        if (t->room.members[c])
            top_backward(t, c, d);
    for (int i = 0; i < a->L; i++) {
        const int c = cluster_of(t, i);
        add_in_lanes(d->d_q + (content_q(a, t->b, t->h, i) - a->q),
                     1.0f / (float)t->room.members[c], t->room.d_q + (ptrdiff_t)c * a->dh, a->dh);
    }
}

/* ---- the form ----------------------------------------------------------------------------- */

static struct attn core(const struct sublayer *s, struct extent max)
{
    static float some;
    struct attn a = attn_of_config(s->c, 1, clustered_of(s->c)->clusters, 0);

    a.H = a.Hkv = 1;
    a.window = 0;
    a.K = max.L;
    a.q_at.row = a.o_at.row = s->c->dh;
    a.scores_out = clustered_of(s->c)->top ? &some : NULL;
    return a;
}

static void run_head(const struct content_call *n, int head, const struct attn_grad *d)
{
    const struct head t = head_of(n, head);

    if (d)
        head_backward(&t, d);
    else
        head_forward(&t);
}

static bool shows(const struct content_call *n, int i, struct shown *out)
{
    const size_t heads = (size_t)n->a.B * (size_t)n->a.H, L = (size_t)n->a.L;
    const size_t floats = kept_at(n->s->c, n->a.L, NULL).floats;

    out->name = "cluster";
    out->n = heads * L;
    out->whole = true;
    for (size_t head = 0; out->to && head < heads; head++)
        memcpy(out->to + head * L, n->kept + head * floats, L * sizeof(float));
    return i == 0;
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const struct clustered *const k = clustered_of(s->c);

    return 4.0 * B * s->c->H * s->c->dh * L * (k->clusters + min_int(k->top, L));
}

static double choice_flop(const struct sublayer *s, int B, int L, int M)
{
    return 2.0 * B * s->c->H * L * s->c->dh * clustered_of(s->c)->bits;
}

/* Every query gets the output of its cluster. */
static double moved_rows(const struct config *c, int L, int M) { return L; }

const struct content content_clustered = {
    .both = true,
    .no_memory = true,
    CONTENT_HOOKS,
    .head = run_head,
    .moved_rows = moved_rows,
    .kept = kept,
    .core = core,
};
