/* SPDX-License-Identifier: MIT
 *
 * Every member of the structs of attention: its default is what the header names, and any other value
 * changes what a loop from the header's text says that it changes, or is refused. A member without a
 * row fails. Two sequences, rows with gaps. */
#include "tests/support/kernel/library_members.h"

TestSuite(library_members, .timeout = 240);

enum { B = 2, H = 4, L = 9, M = 7, K = M + L, DH = 6, SINKS = 2, INPUTS = 24 };
enum { SIZE = 4096 };

static float in[INPUTS][SIZE], zeros[SIZE], same_rows[SIZE], grads[INPUTS][SIZE];
static double sums[SIZE], no_sums[SIZE], d_sums[SIZE];
static uint64_t bits[2 * K], all_bits[2 * K];
static int32_t blocks[32], more_blocks[32];
static struct written out;

static void fill(void)
{
    for (int i = 0; i < INPUTS; i++)
        for (int x = 0; x < SIZE; x++)
            in[i][x] = (float)((int)(rng_u32(3, i, (uint64_t)x) % 256) - 128) / 128;
    for (int x = 0; x < SIZE; x++)
        sums[x] = -0.125 * (double)(rng_u32(4, 0, (uint64_t)x) % 16);
    for (int x = 0; x < 2 * K; x++)
        all_bits[x] = ~(uint64_t)0, bits[x] = rng_u32(5, 0, (uint64_t)x);
    for (int x = 0; x < 32; x++)
        blocks[x] = x % 5 - 1, more_blocks[x] = (x + 2) % 4;
}

/* Number x of `width` of a row, the same in `n` rows. */
static const float *rows_alike(const float *row, int width, int n)
{
    for (int x = 0; x < width * n; x++)
        same_rows[x] = row[x % width];
    return same_rows;
}

static struct ba_stride gaps(int n, int width, int more)
{
    return (struct ba_stride){(ptrdiff_t)n * (width + more) + 2 * more, width + more};
}

static struct ba_attention fresh(struct ba_mask *m)
{
    *m = (struct ba_mask){.size = sizeof(*m)};
    return (struct ba_attention){.size = sizeof(struct ba_attention),
                                 MEMBERS(, B, H, L, M),
                                 .dh = DH,
                                 .causal = 1,
                                 .q = in[0],
                                 .k = in[1],
                                 .v = in[2],
                                 .q_at = gaps(L, H * DH, 3),
                                 .k_at = gaps(K, H * DH, 4),
                                 .v_at = gaps(K, H * DH, 5),
                                 .o_at = gaps(L, H * DH, 7),
                                 .o = out.at[0],
                                 .lse = out.at[1],
                                 .scores_out = out.at[2]};
}

/* ---- outputs ------------------------------------------------------------------------------ */

static double want[3][OUT];

static void judge(const struct ba_attention *a)
{
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < OUT; i++)
            want[p][i] = NAN;
    judge_attention(a, want[0], want[1], want[2]);
}

/* The call, judged, and what it wrote. */
static void attend(struct ba_engine *engine, const struct ba_attention *a, struct written *w,
                   const char *what)
{
    static double nothing[OUT];

    nothing_written(&out);
    ANSWERS(BA_OK, what, ba_attention_forward, engine, a);
    judge(a);
    for (int i = 0; i < OUT; i++)
        nothing[i] = NAN;
    expect_written(out.at[0], want[0], what);
    expect_written(out.at[1], a->lse ? want[1] : nothing, what);
    for (int i = 0; i < OUT && a->mix_logits;
         i++) /* a pair that another head sees is written, too */
        if (isnan(want[2][i]))
            out.at[2][i] = GUARD_VALUE;
    expect_written(out.at[2], a->scores_out ? want[2] : nothing, what);
    *w = out;
}

/* ---- gradients ---------------------------------------------------------------------------- */

enum { D_O = 20, D_SCORES = 21 };

static double loss(const void *call)
{
    const struct ba_attention *const a = call;
    double sum = 0;

    judge(a);
    for (int i = 0; i < OUT; i++) {
        sum += isnan(want[0][i]) ? 0 : want[0][i] * (double)in[D_O][i];
        sum += isnan(want[2][i]) || !a->scores_out ? 0 : want[2][i] * (double)in[D_SCORES][i];
    }
    return sum;
}

/* After forward. */
static void expect_gradients(struct ba_engine *engine, const struct ba_attention *a,
                             const char *what)
{
#define OPERAND(x, count, is_added)                                                                \
    {                                                                                              \
#x, (void *)a->x, grads[__COUNTER__ - FIRST], count, .added = is_added                     \
    }
    enum { FIRST = __COUNTER__ + 1 };
    const int rows = a->R + a->Rf, tables = a->rel_head ? H : 1, biases = a->bias_head ? H : 1;
    const struct differed all[] = {
        OPERAND(q, B * (L * (H * DH + 3) + 6), false),
        OPERAND(k, B * (K * (H * DH + 4) + 8), false),
        OPERAND(v, B * (K * (H * DH + 5) + 10), false),
        OPERAND(u, H * DH, true),
        OPERAND(w, H * DH, true),
        OPERAND(rel_k, tables * rows * DH, true),
        OPERAND(rel_v, tables * rows * DH, true),
        OPERAND(rel_q, tables * rows * DH, true),
        OPERAND(bias, biases * rows, true),
        OPERAND(add, (a->add_row ? L : 1) * K, true),
        OPERAND(mix_logits, H * H, true),
        OPERAND(mix_probs, H * H, true),
        OPERAND(sink_k, H * a->sinks * DH, true),
        OPERAND(sink_v, H * a->sinks * DH, true),
        OPERAND(sink_logit, H * a->sinks, true),
        {"fade", (void *)a->fade, d_sums, B * H * K, true, true},
    };
#undef OPERAND
    float *d[ARRAY_LEN(all)];

    for (size_t n = 0; n < ARRAY_LEN(all); n++) {
        d[n] = all[n].x && !(n < 2 && a->no_content) ? grads[n] : NULL;
        for (int x = 0; x < SIZE; x++)
            grads[n][x] = all[n].added ? (float)START : GUARD_VALUE;
    }
    for (int x = 0; x < SIZE; x++)
        d_sums[x] = START;
    const bool shared = a->fade && (!a->fade_batch || !a->fade_head);
    const struct ba_attention_grad g = {.size = sizeof(g),
                                        .d_o = in[D_O],
                                        .d_scores_out = a->scores_out ? in[D_SCORES] : NULL,
                                        .d_q = d[0],
                                        .d_k = d[1],
                                        .d_v = d[2],
                                        .d_u = d[3],
                                        .d_w = d[4],
                                        .d_rel_k = d[5],
                                        .d_rel_v = d[6],
                                        .d_rel_q = d[7],
                                        .d_bias = d[8],
                                        .d_add = d[9],
                                        .d_mix_logits = d[10],
                                        .d_mix_probs = d[11],
                                        .d_sink_k = d[12],
                                        .d_sink_v = d[13],
                                        .d_sink_logit = d[14],
                                        .d_fade = a->fade && !shared ? d_sums : NULL};
    ANSWERS(BA_OK, what, ba_attention_backward, engine, a, &g);
    for (size_t n = 0; n < ARRAY_LEN(all); n++)
        if (n < 15 ? d[n] != NULL : g.d_fade != NULL)
            expect_gradient(&all[n], loss, a, what);
}

/* ---- rows --------------------------------------------------------------------------------- */

/* In a call `with` a setting the member's default is the same as what is `said`, and `...` changes
 * the outputs. */
#define MEMBER(of, struct_of, member, with, said, ...)                                             \
    do {                                                                                           \
        static struct written usual, same, other;                                                  \
        struct ba_mask m;                                                                          \
        struct ba_attention a = fresh(&m);                                                         \
        with;                                                                                      \
        attend(engine, &a, &usual, #member);                                                       \
        said;                                                                                      \
        attend(engine, &a, &same, #member " said");                                                \
        cr_assert_leq(difference(&usual, &same), 2 * MEMBER_BOUND, "default of " #member);         \
        a = fresh(&m);                                                                             \
        with;                                                                                      \
        __VA_ARGS__;                                                                               \
        attend(engine, &a, &other, #member " changed");                                            \
        cr_assert_geq(difference(&usual, &other), 100 * MEMBER_BOUND, #member " changes nothing"); \
        if (a.lse)                                                                                 \
            expect_gradients(engine, &a, #member " changed");                                      \
        row_of(&rows, offsetof(struct of, member), sizeof(((struct of *)0)->member));              \
    } while (0)
#define ROW(member, with, said, ...) MEMBER(ba_attention, a, member, with, said, __VA_ARGS__)
#define MASK(member, with, said, ...)                                                              \
    MEMBER(ba_mask, m, member, a.masks = &m; a.n_masks = 1; with, said, __VA_ARGS__)

/* Any other value is refused. */
#define REFUSED(of, member, ...)                                                                   \
    do {                                                                                           \
        struct ba_mask m;                                                                          \
        struct ba_attention a = fresh(&m);                                                         \
        __VA_ARGS__;                                                                               \
        ANSWERS(BA_ARGUMENT, #member, ba_attention_forward, engine, &a);                           \
        row_of(&rows, offsetof(struct of, member), sizeof(((struct of *)0)->member));              \
    } while (0)

#define TABLES a.R = K + 1
#define PACKED                                                                                     \
    a.B = 1;                                                                                       \
    a.M = 0;                                                                                       \
    a.scores_out = NULL
#define MASKS(x)                                                                                   \
    a.masks = &m;                                                                                  \
    a.n_masks = 1;                                                                                 \
    m.x

static void sizes_and_strides(struct ba_engine *engine, struct rows_of_struct *all)
{
    struct rows_of_struct rows = *all;

    REFUSED(ba_attention, size, a.size = 8);
    ROW(B, , , a.B = 1);
    ROW(H, , , a.H = 2);
    ROW(L, , , a.L = 8);
    ROW(M, , , a.M = 6);
    ROW(dh, , , a.dh = 4);
    ROW(Hkv, , a.Hkv = H, a.Hkv = 2);
    ROW(K, a.M = a.causal = 0, a.K = L, a.K = 7);
    ROW(dv, , a.dv = DH, a.dv = 4);
    ROW(causal, , , a.causal = 0);
    ROW(window, , a.window = K, a.window = 3);
    ROW(scale, , a.scale = 1 / sqrtf(DH), a.scale = 0.2f);
    ROW(gain, , a.gain = 1, a.gain = 2);
    ROW(soft_cap, , a.soft_cap = 4096, a.soft_cap = 0.5f);
    ROW(no_content, a.u = NULL, , a.no_content = 1);
    ROW(q, , , a.q = in[6]);
    ROW(k, , , a.k = in[6]);
    ROW(v, , , a.v = in[6]);
    ROW(q_at.batch, a.q_at.batch = 0, a.q_at.batch = L * a.q_at.row,
        a.q_at.batch = L * a.q_at.row + 5);
    ROW(k_at.batch, a.k_at.batch = 0, a.k_at.batch = K * a.k_at.row,
        a.k_at.batch = K * a.k_at.row + 5);
    ROW(v_at.batch, a.v_at.batch = 0, a.v_at.batch = K * a.v_at.row,
        a.v_at.batch = K * a.v_at.row + 5);
    ROW(o_at.batch, a.o_at.batch = 0, a.o_at.batch = L * a.o_at.row,
        a.o_at.batch = L * a.o_at.row + 5);
    ROW(q_at.row, a.q_at.row = 0, a.q_at.row = H * DH, a.q_at.row = H * DH + 1);
    ROW(k_at.row, a.k_at.row = 0, a.k_at.row = H * DH, a.k_at.row = H * DH + 1);
    ROW(v_at.row, a.v_at.row = 0, a.v_at.row = H * DH, a.v_at.row = H * DH + 1);
    ROW(o_at.row, a.o_at.row = 0, a.o_at.row = H * DH, a.o_at.row = H * DH + 1);
    ROW(k_at, a.k_at = (struct ba_stride){0}, a.k_at.row = H * DH;
        a.k_at.batch = K * H * DH, a.k_at.row = H * DH + 2);
    REFUSED(ba_attention, o, a.o = NULL);
    ROW(lse, , , a.lse = NULL);
    ROW(scores_out, , , a.scores_out = NULL);
    *all = rows;
}

static void positions_and_visibility(struct ba_engine *engine, struct rows_of_struct *all)
{
    static const int windows[] = {3, 0, 1, 5}, no_windows[H] = {0};
    static const uint8_t first[H] = {0}, turns[H] = {0, 1, 1, 0};
    static const int32_t whole[] = {0, L}, cut[] = {0, 2, 3, L, 0, 5, L}, empty[] = {0, 2, 2, L};
    struct rows_of_struct rows = *all;
    struct ba_mask two[2] = {{.size = sizeof(*two), .window = 3},
                             {.size = sizeof(*two), .stride = 2}};

    ROW(u, , a.u = zeros, a.u = in[6]);
    ROW(w, TABLES; a.rel_k = in[7], a.w = zeros, a.w = in[6]);
    ROW(rel_k, TABLES; a.bias = in[7], a.rel_k = zeros, a.rel_k = in[6]);
    ROW(rel_v, TABLES; a.bias = in[7], a.rel_v = zeros, a.rel_v = in[6]);
    ROW(rel_q, TABLES; a.bias = in[7], a.rel_q = zeros, a.rel_q = in[6]);
    ROW(bias, TABLES; a.rel_q = in[7], a.bias = zeros, a.bias = in[6]);
    ROW(R, TABLES; a.bias = in[7], , a.R = 5);
    ROW(Rf, a.causal = 0; a.R = 5; a.bias = in[7], , a.Rf = 2);
    ROW(rel_head, TABLES; a.rel_k = in[7], a.rel_k = rows_alike(in[7], a.R * DH, H);
        a.rel_head = a.R * DH, a.rel_head = a.R * DH + 1);
    ROW(bias_head, TABLES; a.bias = in[7], a.bias = rows_alike(in[7], a.R, H);
        a.bias_head = a.R, a.bias_head = a.R + 1);
    ROW(q_step, , a.q_step = a.k_step = 1; a.q_first = M, a.q_step = 2; a.k_step = 1;
        a.q_first = 3);
    ROW(k_step, a.q_step = 2; a.k_step = 1; a.q_first = 3, , a.k_step = 2);
    ROW(q_first, a.q_step = 2; a.k_step = 1, , a.q_first = 5);
    ROW(base, MASKS(block) = 4, , a.base = 2);
    ROW(masks, , a.masks = &m; a.n_masks = 1, MASKS(window) = 2);
    REFUSED(ba_attention, n_masks, a.masks = two; a.n_masks = 1; a.mask_of_head = turns);
    ROW(mask_of_head, a.masks = two; a.n_masks = 2, a.mask_of_head = first, a.mask_of_head = turns);
    ROW(window_of_head, , a.window_of_head = no_windows, a.window_of_head = windows);
    ROW(cu_seqlens, PACKED, a.texts = 1; a.cu_seqlens = whole, a.texts = 3; a.cu_seqlens = cut);
    ROW(cu_seqlens, PACKED; TABLES; a.bias = in[7]; a.sinks = SINKS; a.sink_logit = in[8];
        MASKS(block) = 2, , a.texts = 3; a.cu_seqlens = cut);
    ROW(texts, PACKED; a.causal = 0; a.Hkv = 2; a.window = 3; a.texts = 3;
        a.cu_seqlens = cut, , a.texts = 2; a.cu_seqlens = cut + 4);
    REFUSED(ba_attention, texts, PACKED; a.texts = 2; a.cu_seqlens = cut);
    REFUSED(ba_attention, texts, PACKED; a.texts = 1);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.M = 1);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.B = 2);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.K = L);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.add = in[6]);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.fade = sums);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.scores_out = out.at[2]);
    REFUSED(ba_attention, texts, PACKED; a.texts = 3; a.cu_seqlens = cut; a.q_step = a.k_step = 1);
    REFUSED(ba_attention, cu_seqlens, PACKED; a.texts = 3; a.cu_seqlens = empty);
    REFUSED(ba_attention, cu_seqlens, PACKED; a.texts = 2; a.cu_seqlens = cut + 1);
    *all = rows;
}

static void scores(struct ba_engine *engine, struct rows_of_struct *all)
{
    static float unity[H * H];
    struct rows_of_struct rows = *all;

    for (int h = 0; h < H; h++)
        unity[h * H + h] = 1;
    ROW(add, , a.add = zeros, a.add = in[6]; a.add_row = K + 1; a.add_head = L * (K + 1));
    ROW(add_batch, a.add = in[6]; a.add_row = K, a.add = rows_alike(in[6], L * K, B);
        a.add_batch = L * K, a.add_batch = L * K + 3);
    ROW(add_head, a.add = in[6]; a.add_row = K, a.add = rows_alike(in[6], L * K, H);
        a.add_head = L * K, a.add_head = L * K + 3);
    ROW(add_row, a.add = in[6], a.add = rows_alike(in[6], K, L); a.add_row = K, a.add_row = K + 3);
    ROW(fade, , a.fade = no_sums, a.fade = sums; a.fade_head = K; a.fade_batch = H * K);
    ROW(fade_batch, a.fade = sums; a.fade_head = K, , a.fade_batch = H * K);
    ROW(fade_head, a.fade = sums; a.fade_batch = H * K, , a.fade_head = K);
    ROW(mix_logits, , a.mix_logits = unity, a.mix_logits = in[6]);
    ROW(mix_probs, , a.mix_probs = unity, a.mix_probs = in[6]);
    ROW(sinks, a.sinks = SINKS; a.sink_logit = in[7], , a.sinks = 3);
    ROW(sink_k, a.sinks = SINKS; a.sink_logit = in[7], a.sink_k = zeros, a.sink_k = in[6]);
    ROW(sink_v, a.sinks = SINKS; a.sink_logit = in[7], a.sink_v = zeros, a.sink_v = in[6]);
    ROW(sink_logit, a.sinks = SINKS; a.sink_k = in[7], a.sink_logit = zeros, a.sink_logit = in[6]);
    *all = rows;
}

Test(library_members, of_attention)
{
    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        struct rows_of_struct all = {{false}};
        fill();
        sizes_and_strides(engine, &all);
        positions_and_visibility(engine, &all);
        scores(engine, &all);
        expect_rows(&all, sizeof(struct ba_attention), "ba_attention");
    }
}

#define RANDOM                                                                                     \
    m.block = 3;                                                                                   \
    m.n_random = 1;                                                                                \
    m.random = blocks;                                                                             \
    m.random_blocks = 7
#define PICTURE                                                                                    \
    m.rect_rows = m.rect = 2;                                                                      \
    m.row = 4

/* Positions of queries are 7 to 15. */
Test(library_members, of_masks)
{
    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        struct rows_of_struct rows = {{false}};
        fill();
        REFUSED(ba_mask, size, MASKS(size) = 8);
        REFUSED(ba_mask, reserved, MASKS(reserved) = 1);
        MASK(window, , m.window = K, m.window = 3);
        MASK(dilation, m.window = 3, m.dilation = 1, m.dilation = 2);
        MASK(block, , m.block = K, m.block = 3);
        MASK(back, m.block = 3, , m.back = 1);
        MASK(memory, m.block = 3, , m.memory = 2);
        MASK(stride, , m.stride = 1, m.stride = 3);
        MASK(fixed, m.fixed = 4; m.summary = 1, , m.fixed = 5);
        MASK(summary, m.fixed = 4, , m.summary = 2);
        MASK(global, m.stride = 4, , m.global = 2);
        MASK(n_random, RANDOM, , m.n_random = 2);
        MASK(random_from, RANDOM, , m.random_from = 1; m.random_blocks = 5);
        MASK(random, RANDOM, , m.random = more_blocks);
        REFUSED(ba_mask, random_blocks, MASKS(size) = sizeof(m); RANDOM; m.random_blocks = 2);
        REFUSED(ba_mask, random_from, MASKS(size) = sizeof(m); RANDOM; m.random_from = 1;
                m.random_blocks = 4);
        MASK(rows, , m.rows = all_bits; m.row_words = 1, m.rows = bits; m.row_words = 1);
        MASK(row_words, m.rows = bits; m.row_words = 1, , m.row_words = 2);
        MASK(rect_rows, PICTURE, , m.rect_rows = 1);
        MASK(rect, PICTURE, , m.rect = 1);
        MASK(row, PICTURE; m.margin = 2, , m.row = 2);
        MASK(margin_rows, PICTURE, , m.margin_rows = 1);
        MASK(margin, PICTURE, , m.margin = 1);
        expect_rows(&rows, sizeof(struct ba_mask), "ba_mask");
    }
}

/* ---- gradients one by one ----------------------------------------------------------------- */

enum { POINTERS = (sizeof(struct ba_attention_grad) - sizeof(size_t)) / sizeof(void *) };

static struct ba_attention with_all_terms(void)
{
    struct ba_mask m;
    struct ba_attention a = fresh(&m);

    a.u = in[3], a.w = in[4], a.rel_k = in[5], a.rel_v = in[6], a.rel_q = in[7], a.bias = in[8];
    a.R = K, a.add = in[9], a.add_row = K, a.fade = sums, a.fade_head = K, a.fade_batch = H * K;
    a.mix_logits = in[10], a.mix_probs = in[11], a.sinks = SINKS, a.sink_k = in[12];
    a.sink_v = in[13], a.sink_logit = in[14];
    return a;
}

/* Backward with an array for each member but `without`, all of them START before. */
static int differentiate(struct ba_engine *engine, int without, float (*to)[SIZE])
{
    const struct ba_attention a = with_all_terms();
    struct ba_attention_grad d = {.size = sizeof(d)};
    void *at[POINTERS];

    for (int p = 0; p < POINTERS; p++) {
        const size_t member = sizeof(size_t) + (size_t)p * sizeof(void *);
        at[p] = p == without                                                 ? NULL
                : member == offsetof(struct ba_attention_grad, d_o)          ? in[D_O]
                : member == offsetof(struct ba_attention_grad, d_scores_out) ? in[D_SCORES]
                                                                             : (void *)to[p];
        for (int x = 0; x < SIZE; x++)
            to[p][x] = (float)START;
    }
    memcpy((char *)&d + sizeof(size_t), at, sizeof(at));
    nothing_written(&out);
    cr_assert_eq(ba_attention_forward(engine, &a, NULL, 0), BA_OK);
    return ba_attention_backward(engine, &a, &d, NULL, 0);
}

/* Without one of the arrays it is refused, or the others are what they were. */
Test(library_members, of_gradients_of_attention)
{
    static float all[POINTERS][SIZE], fewer[POINTERS][SIZE];
    const size_t fade = offsetof(struct ba_attention_grad, d_fade); /* of doubles */
    const size_t must[] = {
        offsetof(struct ba_attention_grad, d_o), offsetof(struct ba_attention_grad, d_q),
        offsetof(struct ba_attention_grad, d_k), offsetof(struct ba_attention_grad, d_v)};

    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        fill();
        cr_assert_eq(differentiate(engine, -1, all), BA_OK);
        for (int p = 0; p < POINTERS; p++) {
            const size_t member = sizeof(size_t) + (size_t)p * sizeof(void *);
            const bool scores = member == offsetof(struct ba_attention_grad, d_scores_out);
            bool needed = false;
            for (size_t i = 0; i < ARRAY_LEN(must); i++)
                needed = needed || member == must[i];
            cr_assert_eq(differentiate(engine, p, fewer), needed ? BA_ARGUMENT : BA_OK, "%d", p);
            double moved = 0;
            for (int o = 0; o < POINTERS; o++)
                for (int x = 0; x < SIZE && !needed && o != p &&
                                sizeof(size_t) + (size_t)o * sizeof(void *) != fade;
                     x++)
                    moved = fmax(moved, fabs((double)all[o][x] - (double)fewer[o][x]));
            for (int x = 0; x < SIZE && !scores; x++)
                cr_assert_eq(fewer[p][x], (float)START);
            cr_assert(scores ? moved > 0.01 : moved <= 100 * MEMBER_BOUND, "%d: %g", p, moved);
            int written = 0;
            for (int x = 0; x < SIZE; x++)
                written += all[p][x] != (float)START;
            cr_assert(written > 0 || scores || member == must[0], "%d", p);
        }
    }
}
