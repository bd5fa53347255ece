/* SPDX-License-Identifier: MIT
 *
 * Attention through the library: what each argument means, and what is refused. */
#include "tests/support/kernel/library.h"
#include "variants/base/rng.h"

#include <omp.h>
#include <sys/mman.h>

TestSuite(library_attention, .timeout = 120);

/* ---- one small call ----------------------------------------------------------------------- */

enum { B = 2, H = 4, L = 5, M = 3, K = M + L, DH = 6 };

/* Every array that a call may have. */
static float floats[24][B * H * K * K * DH], grads[24][B * H * K * K * DH];
static double sums[B * H * K], d_sums[B * H * K];
static int32_t blocks[64];
static uint64_t bits[64];

static struct ba_attention plain(void)
{
    return (struct ba_attention){.size = sizeof(struct ba_attention),
                                 MEMBERS(, B, H, L, M),
                                 .dh = DH,
                                 .causal = 1,
                                 .q = floats[0],
                                 .k = floats[1],
                                 .v = floats[2],
                                 .o = floats[3],
                                 .lse = floats[4]};
}

static struct ba_attention_grad plain_grad(void)
{
    return (struct ba_attention_grad){.size = sizeof(struct ba_attention_grad),
                                      .d_o = floats[5],
                                      .d_q = grads[0],
                                      .d_k = grads[1],
                                      .d_v = grads[2]};
}

static void fill(void)
{
    for (size_t i = 0; i < ARRAY_LEN(floats); i++)
        for (size_t x = 0; x < ARRAY_LEN(floats[0]); x++)
            floats[i][x] = (float)(rng_u32(1, (int)i, x) % 1000) / 500 - 1;
    for (size_t x = 0; x < ARRAY_LEN(sums); x++)
        sums[x] = -(double)(x % 7);
    for (size_t x = 0; x < ARRAY_LEN(bits); x++)
        bits[x] = ~(uint64_t)0;
}

/* The team may be smaller than the engine's threads, and is in a parallel region. */
Test(library_attention, any_team)
{
    struct ba_engine *const four = library_engine(NULL, 4);
    struct ba_attention a = plain();
    struct ba_attention_grad d = plain_grad();

    fill();
    cr_assert_eq(ba_attention_forward(four, &a, NULL, 0), BA_OK);
    cr_assert_eq(ba_attention_backward(four, &a, &d, NULL, 0), BA_OK);
    memcpy(floats[10], floats[3], sizeof(floats[3]));
    memcpy(grads[10], grads[1], sizeof(grads[1]));
    memset(floats[3], 0, (size_t)B * L * H * DH * sizeof(float));
    memset(grads[1], 0, (size_t)B * K * H * DH * sizeof(float));
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 1) {
            (void)ba_attention_forward(four, &a, NULL, 0);
            (void)ba_attention_backward(four, &a, &d, NULL, 0);
        }
    }
    cr_expect_arr_eq(floats[10], floats[3], sizeof(floats[3]));
    cr_expect_arr_eq(grads[10], grads[1], sizeof(grads[1]));
}

/* The end of a mapping, after which nothing can be read. */
static float *last_floats(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = round_up(n * sizeof(float), page);
    char *const at =
        mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert(at != MAP_FAILED && mprotect(at + bytes, page, PROT_NONE) == 0);
    return (float *)(void *)(at + bytes) - n;
}

/* Without content keys have no width that anything is read by. */
Test(library_attention, values_that_are_narrower_than_keys)
{
    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        struct ba_attention a = plain();
        struct ba_attention_grad d = plain_grad();
        fill();
        a.dh = 17, a.dv = 15, a.no_content = 1, a.q = a.k = NULL, d.d_q = d.d_k = NULL;
        a.v = last_floats((size_t)B * K * H * 15), a.o = last_floats((size_t)B * L * H * 15);
        d.d_o = last_floats((size_t)B * L * H * 15), d.d_v = last_floats((size_t)B * K * H * 15);
        cr_assert_eq(ba_attention_forward(engine, &a, NULL, 0), BA_OK);
        cr_assert_eq(ba_attention_backward(engine, &a, &d, NULL, 0), BA_OK);
    }
}

/* Of few keys with a window the last queries see none: they are 0, and move nothing. */
Test(library_attention, queries_that_see_no_key)
{
    enum { QUERIES = 70, KEYS = 5, WINDOW = 3, BLIND = KEYS + WINDOW - 1 };

    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        struct ba_attention a = plain();
        struct ba_attention_grad d = plain_grad();
        fill();
        a.B = 1, a.L = QUERIES, a.M = a.causal = 0, a.K = KEYS, a.window = WINDOW;
        cr_assert_eq(ba_attention_forward(engine, &a, NULL, 0), BA_OK);
        cr_assert_eq(ba_attention_backward(engine, &a, &d, NULL, 0), BA_OK);
        for (int x = 0; x < QUERIES * H * DH; x++)
            cr_expect(x / DH / H < BLIND ? a.o[x] != 0 : a.o[x] == 0 && d.d_q[x] == 0,
                      "%s, query %d: %g, %g", ba_backend_name(b), x / DH / H, (double)a.o[x],
                      (double)d.d_q[x]);
        for (int x = 0; x < H * QUERIES; x++)
            cr_expect_eq(a.lse[x] == -INFINITY, x % QUERIES >= BLIND);
    }
}

/* ---- what is refused ---------------------------------------------------------------------- */

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        struct ba_attention a = plain();                                                           \
        struct ba_attention_grad d = plain_grad();                                                 \
        struct ba_mask m = {.size = sizeof(m)}, *const mask = &m;                                  \
        (void)d, (void)mask;                                                                       \
        __VA_ARGS__;                                                                               \
        ANSWERS(BA_ARGUMENT, #__VA_ARGS__, ba_attention_backward, engine, &a, &d);                 \
    } while (0)

Test(library_attention, refuses_what_has_no_meaning)
{
    struct ba_engine *const engine = library_engine("ref", 1);

    fill();
    REFUSED(a.size = 0);
    REFUSED(a.size = sizeof(a) - 1);
    REFUSED(a.size = sizeof(a) + 1);
    REFUSED(a.B = 0);
    REFUSED(a.L = -1);
    REFUSED(a.L = INT_MAX);
    REFUSED(a.M = -1);
    REFUSED(a.dh = 0);
    REFUSED(a.Hkv = 3);
    REFUSED(a.Hkv = 8);
    REFUSED(a.K = 7); /* with M */
    REFUSED(a.causal = 2);
    REFUSED(a.window = -1);
    REFUSED(a.q = NULL);
    REFUSED(a.v = NULL);
    REFUSED(a.o = NULL);
    REFUSED(a.q_at.row = DH);       /* gradients would overlap */
    REFUSED(a.o_at.batch = H * DH); /* outputs do */
    REFUSED(a.k_at.batch = -1);
    REFUSED(a.v_at.row = PTRDIFF_MAX);
    REFUSED(a.R = 1);            /* no table */
    REFUSED(a.bias = floats[6]); /* no rows */
    REFUSED((a.bias = floats[6], a.R = K, a.bias_head = 1));
    REFUSED(a.w = floats[6]);
    REFUSED(a.u = floats[6]; a.no_content = 1);
    REFUSED((a.rel_v = floats[6], a.R = K, a.dv = 3));
    REFUSED(a.sinks = 1);
    REFUSED(a.sink_v = floats[6]);
    REFUSED(a.soft_cap = NAN);
    REFUSED(a.soft_cap = -1);
    REFUSED(a.soft_cap = INFINITY); /* inf tanh(x / inf) is no number */
    REFUSED(a.scale = INFINITY);
    REFUSED(a.k_step = 1);
    REFUSED(a.q_step = 1);
    REFUSED(a.q_step = a.k_step = 1 << 20; a.L = 1 << 20);
    REFUSED(a.q_step = a.k_step = 1 << 20; a.L = 1000); /* their sum */
    REFUSED(a.B = 1 << 10; a.M = 1 << 20);              /* B H K, but not B H L */
    REFUSED(a.base = -1);
    REFUSED(a.add_row = -1; a.add = floats[6]);
    REFUSED(a.window_of_head = (const int[]){0, -1, 0, 0});
    REFUSED(a.texts = 1);
    REFUSED(a.n_masks = 1);
    REFUSED(a.masks = mask);
    REFUSED(a.masks = mask; a.n_masks = 257);
    REFUSED(a.masks = mask; a.n_masks = 1; m.size = 8);
    REFUSED(a.masks = mask; a.n_masks = 1; m.dilation = 2);
    REFUSED(a.masks = mask; a.n_masks = 1; m.memory = 2);
    REFUSED(a.masks = mask; a.n_masks = 1; m.fixed = 3; m.summary = 4);
    REFUSED(a.masks = mask; a.n_masks = 1; m.block = 2; m.n_random = 1);
    REFUSED(a.masks = mask; a.n_masks = 1; m.margin = 1);
    REFUSED(a.masks = mask; a.n_masks = 1; m.rect_rows = 1; m.rect = 2; m.row = 3);
    REFUSED(a.masks = mask; a.n_masks = 1; m.block = 2; m.n_random = 1; m.random = blocks;
            m.random_blocks = 1);
    REFUSED(a.masks = mask; a.n_masks = 1; m.rows = bits);
    REFUSED(a.masks = mask; a.n_masks = 1; m.rows = bits; m.row_words = 1; a.base = 1);
    REFUSED(a.masks = mask; a.n_masks = 1; m.rows = bits; m.row_words = 1; m.window = 1);
    REFUSED(a.masks = mask; a.n_masks = 1; a.mask_of_head = (const uint8_t[]){0, 0, 0, 1});
    REFUSED(a.lse = NULL);
    REFUSED(d.size = 0);
    REFUSED(d.d_o = NULL);
    REFUSED(d.d_q = NULL);
    REFUSED(d.d_v = NULL);
    REFUSED(d.d_u = grads[6]);
    REFUSED(d.d_add = grads[6]);
    REFUSED(d.d_sink_logit = grads[6]);
    REFUSED(a.fade = sums; d.d_fade = d_sums); /* which repeats */
    REFUSED(a.add = floats[6]; a.add_row = 1; d.d_add = grads[6]);
    REFUSED(a.add = floats[6]; d.d_add = grads[6]; d.d_scores_out = grads[6]);
}

Test(library_attention, refuses_without_an_engine_or_a_struct)
{
    struct ba_engine *const engine = library_engine("ref", 1);
    const struct ba_attention a = plain();
    char why[8] = "?";

    cr_expect_eq(ba_attention_forward(NULL, &a, why, sizeof(why)), BA_ARGUMENT);
    cr_expect_str_eq(why, "engine ");
    cr_expect_eq(ba_attention_forward(engine, NULL, why, 1), BA_ARGUMENT);
    cr_expect_str_eq(why, "");
    cr_expect_eq(ba_attention_backward(engine, &a, NULL, NULL, 0), BA_ARGUMENT);
    ba_engine_close(NULL);
}

/* A program of a later header passes longer structs. */
Test(library_attention, structs_of_later_versions)
{
    struct ba_engine *const engine = library_engine("ref", 1);
    struct {
        struct ba_attention a;
        void *later;
    } x = {plain(), NULL};

    fill();
    x.a.size = sizeof(x);
    ANSWERS(BA_OK, "a null", ba_attention_forward, engine, &x.a);
    x.later = &x;
    ANSWERS(BA_UNSUPPORTED, "a member that is not known", ba_attention_forward, engine, &x.a);
}
