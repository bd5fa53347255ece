/* SPDX-License-Identifier: MIT
 *
 * Global and long rows as a kind of sub-layer (variants/etc.c): two calls of an implementation of
 * attention, of the long queries with a mask and of the global ones to everything. Keys and values
 * of a call are [of global rows; of long ones]. */
#include "condensed.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/linear.h"

#include <string.h>

struct etc {
    int global; /* first rows that are global */
};

static const struct choice choices[] = {
    ROW_INT(struct etc, global, "global_rows", 0, 1 << 16, "first rows that are global",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    (void)c;
    *(struct etc *)numbers = (struct etc){.global = 16};
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    (void)numbers;
    if (c->window < 1)
        return fail(e, E_USAGE, "%s: window %d of rows that are not global  -> use 1 or more",
                    c->variant->name, c->window);
    return OK;
}

const struct part_numbers etc_numbers = {choices, NUMBERS_SIZE(struct etc), usual, check};

/* Of L rows, one of which at least is long. */
static int globals(const struct config *c, int L)
{
    const struct etc *const etc = config_numbers(c, SLOT_MIXER);

    return min_int(etc->global, L - 1);
}

/* Of long queries, then of global ones: queries [B,rows,H,dh], keys and values [B,G+L,Hkv,dh],
 * outputs. Log-sum-exps of both are in one array. */
enum { LONG, GLOBAL, CALLS };
enum { ET_Q, ET_K, ET_V, ET_O, ET_CALL, ET_LSE = CALLS * ET_CALL };
enum { MAP_Q, MAP_KG, MAP_KL, MAP_VG, MAP_VL, MAP_O, MAPS };

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    static const char *const calls[] = {"long", "glob"}, *const names[] = {"q",  "kg", "kl",
                                                                           "vg", "vl", "o"};
    const struct config *const c = s->c;
    const int q = config_q_width(c), k = config_kv_width(c);
    const int rows[] = {q, k, k, k, k, c->D};

    (void)inner;
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < MAPS; i++)
            params_narrows(p, params_add(p, INIT_LINEAR, 0, 2,
                                         (const int[]){rows[i], i == MAP_O ? q : c->D},
                                         "%s%s.%s.weight", prefix, calls[call], names[i]));
}

/* ---- binding ------------------------------------------------------------------------------ */

/* A call for texts of L rows, the first G of them global. */
static struct attn core(const struct sublayer *s, int call, int B, int L, int G)
{
    const ptrdiff_t k = (ptrdiff_t)L * config_kv_width(s->c);
    struct attn a = attn_of_config(s->c, B, call == LONG ? L - G : G, call == LONG ? G : 0);

    a.window = 0;
    a.k_at.batch = a.v_at.batch = k;
    if (call == LONG)
        a.mask = &s->state.etc.mask;
    else
        a.K = L;
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    (void)a;
    s->state.etc =
        (struct etc_memory){.mask = {.window = s->c->window, .global = globals(s->c, max.L)}};
    s->state.attention.prepared = core(s, LONG, max.B, max.L, globals(s->c, max.L));
    return engine_attn(g, &s->state.attention.prepared, &s->state.attention.impl, e);
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *const c = s->c;
    const size_t B = (size_t)max.B, G = (size_t)globals(c, max.L), L = (size_t)max.L;
    const size_t k = B * L * (size_t)config_kv_width(c);

    for (int call = 0; call < CALLS; call++) {
        const size_t q = B * (call == LONG ? L : G) * (size_t)config_q_width(c);
        struct array *const array = out + (ptrdiff_t)call * ET_CALL;
        array[ET_Q] = array[ET_O] = (struct array){q, q, false, PART_ACTIVATIONS};
        array[ET_K] = array[ET_V] = (struct array){k, k, false, PART_ACTIVATIONS};
    }
    out[ET_LSE] = (struct array){0, B * L * (size_t)c->H, false, PART_ACTIVATIONS};
}

/* Of either call, of the longest text. */
static struct attn_need scratch(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct attention *const t = &s->state.attention;
    const int L = t->prepared.L + t->prepared.M, G = t->prepared.M;
    const struct attn global = core(s, GLOBAL, t->prepared.B, L, max_int(1, G));

    return larger_need(condensed_scratch(s, g, backward),
                       (backward ? t->impl->need_backward : t->impl->need)(&global, g->threads));
}

/* ---- a call ------------------------------------------------------------------------------- */

static const struct param *map(const struct sublayer *s, int call, int which)
{
    return s->weights + (ptrdiff_t)call * MAPS + which;
}

/* Rows [first, first + rows) of the texts, and rows of queries of a call. */
struct piece {
    int first, rows;
};

static struct piece queries_of(int call, int L, int G)
{
    return call == LONG ? (struct piece){G, L - G} : (struct piece){0, G};
}

static struct seq_rows rows_of(const float *x, int L, int first, int width)
{
    return (struct seq_rows){(float *)x + (ptrdiff_t)first * width, (ptrdiff_t)L * width};
}

static struct attn operands(const struct sublayer *s, const struct work *w, int call, int B, int L)
{
    const int G = globals(s->c, L);
    float *const *const array = w->array + (ptrdiff_t)call * ET_CALL;
    const ptrdiff_t before = call == LONG ? 0 : (ptrdiff_t)B * (L - G) * s->c->H;
    struct attn a = core(s, call, B, L, G);

    a.q = array[ET_Q];
    a.k = array[ET_K];
    a.v = array[ET_V];
    a.o = array[ET_O];
    a.lse = w->array[ET_LSE] ? w->array[ET_LSE] + before : NULL;
    return a;
}

/* ---- forward ------------------------------------------------------------------------------ */

static void project(const struct engine *g, const struct sublayer *s, const struct work *w,
                    int call, const float *x, int B, int L)
{
    const int G = globals(s->c, L), D = s->c->D, k = config_kv_width(s->c);
    const int q = config_q_width(s->c);
    float *const *const array = w->array + (ptrdiff_t)call * ET_CALL;
    const struct piece of = queries_of(call, L, G);

    project_map(g, map(s, call, MAP_Q), NULL, rows_of(array[ET_Q], of.rows, 0, q),
                rows_of(x, L, of.first, D), B, of.rows);
    for (int values = 0; values < 2; values++) {
        const int global = values ? MAP_VG : MAP_KG, far = values ? MAP_VL : MAP_KL;
        float *const to = array[values ? ET_V : ET_K];
        if (G)
            project_map(g, map(s, call, global), NULL, rows_of(to, L, 0, k), rows_of(x, L, 0, D), B,
                        G);
        project_map(g, map(s, call, far), NULL, rows_of(to, L, G, k), rows_of(x, L, G, D), B,
                    L - G);
    }
}

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const int B = from.B, L = from.L, D = s->c->D, q = config_q_width(s->c);

    CHECK(from.M == 0);
    s->state.etc.mask.global = globals(s->c, L);
    for (int call = 0; call < CALLS; call++) {
        const struct piece of = queries_of(call, L, s->state.etc.mask.global);
        if (of.rows == 0)
            continue;
        project(g, s, w, call, from.at.at, B, L);
        const struct attn a = operands(s, w, call, B, L);
        sublayer_attend(g, s, w, call, of.first, &a);
        project_map(g, map(s, call, MAP_O), NULL, rows_of(w->y, L, of.first, D),
                    rows_of(a.o, of.rows, 0, q), B, of.rows);
    }
    linear_epilogue(g, epilogue, w->y, B * L, D);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Of one map y = W x of `rows` rows of each text; adds to beta d_x. */
static void map_grad(const struct engine *g, const struct param *W, struct seq_rows d_x,
                     struct seq_rows d_y, struct seq_rows x, int B, int rows, float beta)
{
    if (rows == 0)
        return;
    project_weight_grad(g, W, d_y, x, B, rows);
    project_input_grad(g, W, d_x, d_y, B, rows, beta);
}

static void call_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                      int call, const float *x, float *d_in, const float *d_y, int B, int L)
{
    const int G = globals(s->c, L), D = s->c->D, k = config_kv_width(s->c);
    const int q = config_q_width(s->c);
    float *const *const d_array = w->d_array + (ptrdiff_t)call * ET_CALL;
    const struct piece of = queries_of(call, L, G);
    const struct attn a = operands(s, w, call, B, L);
    const struct attn_grad d = {
        .d_o = d_array[ET_O], .d_q = d_array[ET_Q], .d_k = d_array[ET_K], .d_v = d_array[ET_V]};

    map_grad(g, map(s, call, MAP_O), rows_of(d.d_o, of.rows, 0, q), rows_of(d_y, L, of.first, D),
             rows_of(a.o, of.rows, 0, q), B, of.rows, 0);
    s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
    map_grad(g, map(s, call, MAP_Q), rows_of(d_in, L, of.first, D), rows_of(d.d_q, of.rows, 0, q),
             rows_of(x, L, of.first, D), B, of.rows, 1);
    for (int values = 0; values < 2; values++) {
        const float *const d_to = values ? d.d_v : d.d_k;
        map_grad(g, map(s, call, values ? MAP_VG : MAP_KG), rows_of(d_in, L, 0, D),
                 rows_of(d_to, L, 0, k), rows_of(x, L, 0, D), B, G, 1);
        map_grad(g, map(s, call, values ? MAP_VL : MAP_KL), rows_of(d_in, L, G, D),
                 rows_of(d_to, L, G, k), rows_of(x, L, G, D), B, L - G, 1);
    }
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int B = from.B, L = from.L;

    CHECK(skip == 0);
    s->state.etc.mask.global = globals(s->c, L);
    memset(d_in, 0, sizeof(float) * (size_t)(B * L) * (size_t)s->c->D);
    for (int call = 0; call < CALLS; call++)
        if (queries_of(call, L, s->state.etc.mask.global).rows)
            call_grad(g, s, w, call, from.at.at, d_in, d_y, B, L);
}

/* ---- cost --------------------------------------------------------------------------------- */

static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const int G = globals(s->c, L), calls = G ? CALLS : 1;
    const double D = s->c->D, q = config_q_width(s->c), k = config_kv_width(s->c);
    const struct mask mask = {.window = s->c->window, .global = G};
    struct sublayer_cost sum = {.maps = 4.0 * B * L * D * (q + calls * k)};

    (void)M;
    for (int call = 0; call < calls; call++) {
        struct attn a = core(s, call, B, L, G);
        a.mask = a.mask ? &mask : NULL;
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
    }
    return sum;
}

const struct sublayer_kind sublayer_etc = {
    .name = "etc",
    .no_past = "global rows read a whole text  -> use --mem 0",
    .mixes = true,
    .attends = true,
    .place = DROP_ATTENTION,
    .params = params,
    .bind = bind,
    .arrays = arrays,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
