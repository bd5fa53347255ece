/* SPDX-License-Identifier: MIT
 *
 * Linear attention as a kind of sub-layer: projections as in attention, features of queries and
 * keys, the state of all keys so far (backends/composed/linear_attn.h), W_o. Its memory is that
 * state, which includes all past rows, or hidden rows before the segment, used as keys only. */
#include "sublayer_project.h"
#include "variants/backends/composed/linear_attn.h"
#include "variants/parts/features.h"

#include <string.h>

/* Its arrays: [B,L,H,dh] [B,K,Hkv,dh] [B,K,Hkv,dh] [B,L,H,dh], features [B,L,H,m] [B,K,Hkv,m] and
 * the divisors [B,L,H], which only backward reads; those of gradients have the same shapes. */
enum { LIN_Q, LIN_K, LIN_V, LIN_O, LIN_FQ, LIN_FK, LIN_DEN };

static void linear_params(const struct sublayer *s, const char *prefix, const char *ff,
                          struct params *p)
{
    const struct config *const c = s->c;

    (void)ff;
    project_params(c, c->D, prefix, p);
}

static int linear_keeps(const struct config *c, enum mem_kind mem, int M)
{
    (void)c;
    return mem == MEM_HIDDEN ? M : -1;
}

/* ---- binding ----------------------------------------------------------------------------------
 */

static size_t s_floats(const struct sublayer *s)
{
    return (size_t)s->of.linear.B * (size_t)s->c->kv_heads * (size_t)features_count(s->c) *
           (size_t)s->c->dh;
}

static size_t z_floats(const struct sublayer *s) { return s_floats(s) / (size_t)s->c->dh; }

/* The state includes all past rows, or none if memory rows are keys of each call. */
static bool goes_on(const struct sublayer *s) { return s->mem == MEM_STATE; }
static bool carries_state(const struct sublayer *s) { return goes_on(s) || s->mem == MEM_HIDDEN; }

static void linear_forget(struct sublayer *s)
{
    if (!carries_state(s))
        return;
    memset(s->of.linear.s, 0, s_floats(s) * sizeof(float));
    memset(s->of.linear.z, 0, z_floats(s) * sizeof(float));
}

static enum status linear_bind(struct sublayer *s, const struct engine *g, struct extent max,
                               struct arena *a, struct err *e)
{
    struct linear_memory *t = &s->of.linear;
    const enum part now = goes_on(s) ? PART_MEMORY : PART_SCRATCH;

    if (s->mem == MEM_KV)
        return fail(e, E_UNSUPPORTED,
                    "%s keeps no keys and values, only a state  -> --mem-kind state",
                    g->backend->name);
    *t = (struct linear_memory){.B = max.B, .impl = engine_linear(g)};
    if (carries_state(s)) {
        t->s = arena_f32(a, now, s_floats(s));
        t->z = arena_f32(a, now, z_floats(s));
        t->s_next = arena_f32(a, PART_SCRATCH, s_floats(s));
        t->z_next = arena_f32(a, PART_SCRATCH, z_floats(s));
    }
    if (features_floats(s->c))
        t->of.w = arena_f32(a, PART_REL_POS, features_floats(s->c));
    if (a->base)
        linear_forget(s);
    return OK;
}

static void linear_build_tables(const struct engine *g, struct sublayer *s,
                                const float *pos_encoding)
{
    struct linear_memory *t = &s->of.linear;

    (void)g, (void)pos_encoding;
    if (t->of.w && !t->drawn)
        features_draw(s->c, &t->of);
    else if (t->of.w)
        features_update(s->c, &t->of);
    t->drawn = true;
}

static void linear_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *c = s->c;
    const size_t dh = (size_t)c->dh, m = (size_t)features_count(c);
    const size_t queries = (size_t)max.B * (size_t)max.L * (size_t)c->H;
    const int rows = s->mem == MEM_HIDDEN ? max.L + max.M : max.L;
    const size_t keys = (size_t)max.B * (size_t)rows * (size_t)c->kv_heads;
    const size_t n[] = {
        [LIN_Q] = queries * dh, [LIN_K] = keys * dh, [LIN_V] = keys * dh, [LIN_O] = queries * dh,
        [LIN_FQ] = queries * m, [LIN_FK] = keys * m, [LIN_DEN] = queries};

    for (int i = LIN_Q; i <= LIN_DEN; i++)
        out[i] = (struct array){i == LIN_DEN ? 0 : n[i], n[i], false, PART_ACTIVATIONS};
}

static void linear_arrays_grad(const struct sublayer *s, struct extent max,
                               struct array out[SUB_ARRAYS])
{
    linear_arrays(s, max, out);
    for (int i = LIN_Q; i < LIN_DEN; i++) {
        out[i].n = 0;
        out[i].shared = true;
    }
    out[LIN_DEN] = (struct array){0};
}

/* ---- the core ----------------------------------------------------------------------------------
 */

static struct linear_attn core_of(const struct sublayer *s, int B, int L, int M)
{
    const struct config *c = s->c;

    return (struct linear_attn){.B = B,
                                .H = c->H,
                                .L = L,
                                .M = M,
                                .Hkv = c->kv_heads,
                                .m = features_count(c),
                                .d = c->dh,
                                .eps = linear_of(c)->eps};
}

static struct linear_attn operands(const struct sublayer *s, const struct work *w, int B, int L,
                                   int M)
{
    const struct linear_memory *t = &s->of.linear;
    struct linear_attn a = core_of(s, B, L, M);

    a.fq = w->own[LIN_FQ];
    a.fk = w->own[LIN_FK];
    a.v = w->own[LIN_V];
    a.o = w->own[LIN_O];
    a.den = w->own[LIN_DEN];
    a.s0 = goes_on(s) ? t->s : NULL;
    a.z0 = goes_on(s) ? t->z : NULL;
    a.s1 = t->s_next;
    a.z1 = t->z_next;
    return a;
}

static struct attn_need linear_scratch(const struct sublayer *s, const struct engine *g,
                                       bool backward)
{
    /* Enough for any shape. */
    const struct linear_attn a = core_of(s, 1, LINEAR_CHUNK, LINEAR_CHUNK);

    return (struct attn_need){.scratch_bytes = linear_need(&a, g->threads, backward)};
}

static void project_keys(const struct engine *g, const struct sublayer *s, const struct work *w,
                         struct sublayer_input from)
{
    const struct config *c = s->c;
    const int K = from.M + from.L, kv_width = c->kv_heads * c->dh;
    const ptrdiff_t stride = (ptrdiff_t)K * kv_width;

    project_rows(g, s, ATTN_K, (struct seq_rows){w->own[LIN_K], stride}, from.at, from.B, K);
    project_rows(g, s, ATTN_V, (struct seq_rows){w->own[LIN_V], stride}, from.at, from.B, K);
    features_forward(g, c, &s->of.linear.of, w->own[LIN_FK], w->own[LIN_K],
                     from.B * K * c->kv_heads, false);
}

static void linear_sublayer_forward(const struct engine *g, struct sublayer *s, struct work *w,
                                    struct sublayer_input from, struct act epilogue)
{
    const struct config *c = s->c;
    const struct seq_rows fresh = {from.at.at + (ptrdiff_t)from.M * c->D, from.at.stride};
    const struct seq_rows q = {w->own[LIN_Q], (ptrdiff_t)from.L * c->H * c->dh};
    const struct linear_attn a = operands(s, w, from.B, from.L, from.M);

    project_keys(g, s, w, from);
    project_rows(g, s, ATTN_Q, q, fresh, from.B, from.L);
    features_forward(g, c, &s->of.linear.of, w->own[LIN_FQ], w->own[LIN_Q], from.B * from.L * c->H,
                     true);
    engine_linear(g)->forward(g, &a, w->scratch);
    project_out(g, s, w, w->own[LIN_O], from.B * from.L, epilogue);
}

static void linear_sublayer_backward(const struct engine *g, struct sublayer *s,
                                     const struct work *w, struct sublayer_input from, float *d_in,
                                     const float *d_y, int skip)
{
    const struct config *c = s->c;
    const struct directions *const of = &s->of.linear.of;
    const int queries = from.B * from.L * c->H, keys = from.B * (from.M + from.L) * c->kv_heads;
    const struct linear_attn a = operands(s, w, from.B, from.L, from.M);
    const struct linear_grad d = {.d_o = w->d_own[LIN_O],
                                  .d_fq = w->d_own[LIN_FQ],
                                  .d_fk = w->d_own[LIN_FK],
                                  .d_v = w->d_own[LIN_V]};

    project_out_grad(g, s, w->d_own[LIN_O], d_y, w->own[LIN_O], from.B * from.L);
    engine_linear(g)->backward(g, &a, &d, w->d_scratch);
    features_backward(g, c, of, w->d_own[LIN_Q], d.d_fq, a.fq, w->own[LIN_Q], queries);
    features_backward(g, c, of, w->d_own[LIN_K], d.d_fk, a.fk, w->own[LIN_K], keys);
    project_backward(g, s, c->D, from, d_in,
                     (struct project_grad){w->d_own[LIN_Q], w->d_own[LIN_K], w->d_own[LIN_V]},
                     skip);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static void linear_remember(const struct engine *g, struct sublayer *s, struct work *w,
                            struct sublayer_input from)
{
    CHECK(goes_on(s) && from.M == 0);
    project_keys(g, s, w, from);
    const struct linear_attn a = operands(s, w, from.B, 0, from.L); /* only keys */
    engine_linear(g)->forward(g, &a, w->scratch);
}

static void linear_commit(struct sublayer *s, int L)
{
    struct linear_memory *t = &s->of.linear;
    float *const old_s = t->s, *const old_z = t->z;

    (void)L;
    t->s = t->s_next;
    t->z = t->z_next;
    t->s_next = old_s;
    t->z_next = old_z;
}

static bool linear_carries(const struct sublayer *s, int i, struct carried *out)
{
    const struct linear_memory *t = &s->of.linear;
    const bool any = carries_state(s);
    const struct carried all[] = {
        {"state_s", t->s, any ? s_floats(s) : 0, false},
        {"state_z", t->z, any ? z_floats(s) : 0, false},
        {"omega", t->of.w, features_floats(s->c), true},
    };

    if (i >= (int)ARRAY_LEN(all))
        return false;
    *out = all[i];
    return true;
}

/* ---- cost ---------------------------------------------------------------------------------------
 */

static void linear_impl_names(const struct sublayer *s, const char **forward, const char **backward)
{
    *forward = s->of.linear.impl->name;
    *backward = NULL;
}

/* Memory rows before the segment are keys again; in a state they cost nothing. */
static double linear_sublayer_flop(const struct sublayer *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const int keys = s->mem == MEM_HIDDEN ? M + L : L;
    const double HD = (double)c->H * c->dh, kv_width = (double)c->kv_heads * c->dh;
    const struct linear_attn a = core_of(s, B, L, keys - L);

    return linear_flop(&a) +
           features_flop(c, (double)B * L * c->H + (double)B * keys * c->kv_heads) +
           4.0 * B * L * c->D * HD /* W_q, W_o */
           + 4.0 * B * keys * c->D * kv_width /* W_k, W_v */;
}

static double linear_sublayer_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    return 2 * linear_sublayer_flop(s, B, L, M);
}

const struct sublayer_kind sublayer_linear = {
    .name = "linear",
    .mixes = true,
    .place = DROP_ATTENTION,
    .params = linear_params,
    .keeps = linear_keeps,
    .bind = linear_bind,
    .arrays = linear_arrays,
    .arrays_grad = linear_arrays_grad,
    .scratch = linear_scratch,
    .build_tables = linear_build_tables,
    .forward = linear_sublayer_forward,
    .backward = linear_sublayer_backward,
    .remember = linear_remember,
    .commit = linear_commit,
    .forget = linear_forget,
    .carries = linear_carries,
    .impl = linear_impl_names,
    .flop = linear_sublayer_flop,
    .grad_flop = linear_sublayer_grad_flop,
};
