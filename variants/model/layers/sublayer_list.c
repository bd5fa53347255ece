/* SPDX-License-Identifier: MIT
 *
 * The list of sub-layers as a whole: bind, run forward and backward, remember, count. */
#include "sublayer_list.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/content/content.h"
#include "variants/model/sublayer/sublayer_inner.h"

/* ---- binding ------------------------------------------------------------------------------ */

enum status sublayers_bind(struct sublayers *s, const struct engine *g, const struct params *p,
                           enum mem_kind mem, struct extent max, struct arena *a, struct err *e)
{
    const struct config *c = s->at->c;

    s->mem = mem;
    s->max = max;
    s->kept = false;
    for (int i = 0; i < s->n; i++) {
        int first = 0;
        while (s->at[first].kind != s->at[i].kind)
            first++;
        s->at[i].first = &s->at[first];
        TRY(sublayer_bind(&s->at[i], g, p, s->at_model, mem, max, a, e));
    }
    s->pos_encoding = NULL;
    if (c->pos->n_pos_encoding)
        s->pos_encoding = arena_f32(a, PART_SCRATCH, c->pos->n_pos_encoding(c, max.M + max.L));
    works_bind(s, g, a);
    return OK;
}

/* Its implementation of attention; NULL = it has none. */
static const struct attn_impl *core_of(const struct sublayer *s)
{
    const bool has = s->kind->attends || s->kind == &sublayer_content;

    return s->kind->reads ? s->reading.impl : has ? s->state.attention.impl : NULL;
}

static enum status can_grad(const struct sublayer *s, const struct engine *g, struct err *e)
{
    if (s->kind->attends && s->c->stream_sinks)
        return fail(e, E_UNSUPPORTED,
                    "%s is for inference: a cache of slots has no backward pass  -> train rope",
                    s->c->variant->name);
    return core_of(s) ? engine_attn_backward(g, core_of(s), e) : OK;
}

enum status sublayers_can_grad(const struct sublayers *s, const struct engine *g, struct err *e)
{
    if (s->at->c->cond == COND_HARD)
        return fail(e, E_UNSUPPORTED, "%s: hard gates have no backward pass  -> use cond soft",
                    s->at->c->variant->name);
    for (int i = 0; i < s->n; i++)
        TRY(can_grad(&s->at[i], g, e));
    return OK;
}

enum status sublayers_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a,
                                struct err *e)
{
    TRY(sublayers_can_grad(s, g, e));
    works_bind_grad(s, g, a);
    return OK;
}

void sublayers_poison(const struct sublayers *s)
{
    for (size_t i = 0; i < s->n_space; i++)
        s->space[i] = NAN;
}

void sublayers_build_tables(struct sublayers *s, const struct engine *g)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind->build_tables)
            s->at[i].kind->build_tables(g, &s->at[i], s->pos_encoding);
}

/* ---- running ------------------------------------------------------------------------------ */

/* The stream after sub-layer i of those before `end`. A gate cannot write over its input, so
 * streams alternate, ending at z. */
static float *stream_after(const struct sublayers *s, int i, int end, float *z)
{
    const int left = end - 1 - i;

    if (left == 0)
        return z;
    return s->kept ? s->work[i + 1].x : s->mid && left % 2 ? s->mid : z;
}

float *sublayers_part_input(const struct sublayers *s, int first, int count, float *z)
{
    return s->kept ? s->work[first].x : stream_after(s, first - 1, first + count, z);
}

float *sublayers_input(const struct sublayers *s, float *z)
{
    return sublayers_part_input(s, 0, s->n, z);
}

int sublayers_first(const struct sublayers *s, int l)
{
    int i = 0;

    while (i < s->n && s->at[i].layer < l)
        i++;
    return i;
}

/* The first sub-layer of the i-th one's layer, of those from `first` on. */
static int begins_layer(const struct sublayers *s, int i, int first)
{
    while (i > first && s->at[i - 1].layer == s->at[i].layer)
        i--;
    return i;
}

/* What sub-layer i reads where its layer's read what entered it; x is the stream before it. */
static const float *entered(struct sublayers *s, int i, int first, const float *x, size_t n)
{
    const int begin = begins_layer(s, i, first);

    if (!s->entered || s->kept)
        return s->entered && i > begin ? s->work[begin].x : NULL;
    if (i == begin)
        memcpy(s->entered, x, n * sizeof(*x));
    return i > begin ? s->entered : NULL;
}

/* The last of its layer. */
static bool ends_layer(const struct sublayers *s, int i)
{
    return i + 1 == s->n || s->at[i + 1].layer != s->at[i].layer;
}

/* Rows x have left the layer whose last sub-layer is the i-th. */
static void leave_layer(struct sublayers *s, const struct engine *g, int i, const float *x, int B,
                        int L)
{
    for (int k = i; k >= 0 && s->at[k].layer == s->at[i].layer; k--)
        if (s->at[k].kind->positions)
            sublayer_left(g, &s->at[k], &s->work[k], x, B, L);
}

void sublayers_part_forward(struct sublayers *s, const struct engine *g, int first, int count,
                            float *z, float *x, int B, int L)
{
    CHECK(!s->kept || x == s->work[first].x);
    CHECK(s->drop.p == 0 || s->kept);
    for (int i = first; i < first + count; i++) {
        float *const to = stream_after(s, i, first + count, z);
        const int rows = rows_before(&s->at[i], L);
        pool_enter(s, i, x, B, L);
        s->work[i].drop = s->drop;
        s->work[i].drop.layer = s->at[i].nth;
        s->work[i].tokens = s->tokens;
        s->work[i].reads = entered(s, i, first, x, (size_t)(B * rows) * (size_t)s->at->c->D);
        if (rows_after(&s->at[i], L) > 0)
            sublayer_forward(g, &s->at[i], &s->work[i], to, x, B, rows);
        x = to;
        if (s->at->c->recur == RECUR_SAME && ends_layer(s, i))
            leave_layer(s, g, i, x, B, L);
    }
}

void sublayers_forward(struct sublayers *s, const struct engine *g, float *z, float *x, int B,
                       int L)
{
    sublayers_part_forward(s, g, 0, s->n, z, x, B, L);
}

void sublayers_part_backward(struct sublayers *s, const struct engine *g, int first, int count,
                             float *d, int B, int L)
{
    CHECK(s->kept);
    for (int i = first + count - 1; i >= first; i--) {
        s->work[i].open_slope = s->open_slope;
        if (s->d_left && (i == first + count - 1 || ends_layer(s, i)))
            memcpy(s->d_left, d, sizeof(*d) * (size_t)(B * L) * (size_t)s->at->c->D);
        s->work[i].d_z = s->d_left;
        if (rows_after(&s->at[i], L) > 0)
            sublayer_backward(g, &s->at[i], &s->work[i], d, B, rows_before(&s->at[i], L));
        pool_enter_grad(s, i, d, B, L);
    }
}

void sublayers_backward(struct sublayers *s, const struct engine *g, float *d, int B, int L)
{
    sublayers_part_backward(s, g, 0, s->n, d, B, L);
}

/* ---- memory ------------------------------------------------------------------------------- */

void sublayers_commit(struct sublayers *s, int L)
{
    for (int i = 0; i < s->n; i++)
        sublayer_commit(&s->at[i], L);
}

void sublayers_forget(struct sublayers *s)
{
    for (int i = 0; i < s->n; i++)
        sublayer_forget(&s->at[i]);
}

struct sublayer *sublayers_attention(const struct sublayers *s, int i)
{
    for (int k = 0; k < s->n; k++)
        if (s->at[k].kind->positions && i-- == 0)
            return &s->at[k];
    return NULL;
}

/* Does a list joined by '+' have the name? */
static bool joined_has(const char *list, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = list; at; at = strchr(at, '+')) {
        at += *at == '+';
        if (strncmp(at, name, n) == 0 && (at[n] == '+' || at[n] == '\0'))
            return true;
    }
    return false;
}

void impl_add(char text[IMPL_TEXT], const char *forward, const char *backward)
{
    char name[IMPL_TEXT];
    const size_t at = strlen(text);

    snprintf(name, sizeof(name), "%s%s%s", forward, backward ? "/" : "", backward ? backward : "");
    if (joined_has(text, name))
        return;
    const int n = snprintf(text + at, IMPL_TEXT - at, "%s%s", at ? "+" : "", name);
    CHECK(n >= 0 && (size_t)n < IMPL_TEXT - at);
}

void sublayers_impl(const struct sublayers *s, bool backward, char text[IMPL_TEXT])
{
    for (int i = 0; i < s->n; i++) {
        const struct sublayer *const at = &s->at[i];
        const struct attn_impl *const core = core_of(at);
        const char *forward = core ? core->name : NULL, *back = core ? core->backward_by : NULL;
        if (at->kind->impl)
            at->kind->impl(at, &forward, &back);
        if (forward)
            impl_add(text, forward, backward ? back : NULL);
    }
}

bool sublayers_carry(const struct sublayers *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind->carries)
            return true;
    return false;
}

int sublayers_attentions(const struct sublayers *s)
{
    int n = 0;

    while (sublayers_attention(s, n))
        n++;
    return n;
}

int sublayers_remembering(const struct sublayers *s, int i)
{
    for (int k = 0; k < s->n; k++)
        if (s->at[k].kind->keeps && i-- == 0)
            return k;
    return -1;
}

bool sublayer_mixes(const struct sublayer *s)
{
    return s->kind->mixes || (s->kind->ffn && s->c->ffn->mixes);
}

const struct sublayer *sublayers_row_by_row(const struct sublayers *s)
{
    const struct sublayer *found = NULL;

    for (const struct sublayer *x = s->at; x < s->at + s->n; x++) {
        if (x->level || x->pools || x->joins || (found && sublayer_mixes(x)))
            return NULL;
        found = x->kind->positions ? x : found;
    }
    return found;
}

float sublayers_skip_slope(const struct sublayers *s, int B, int L)
{
    const struct config *const c = s->at->c;
    const double n = (double)s->n * B * L;
    double sum = 0;

    for (int k = 0; k < s->n; k++)
        for (int i = 0; i < B * L; i++)
            sum += (double)s->work[k].open[i];
    return (float)(2 * (double)c->budget_coef * (sum / n - (double)c->budget) / n);
}

const char *sublayers_refusal(const struct engine *g, const struct config *c)
{
    enum { SOME = 8 };
    const struct extent max = {1, SOME, 0};
    struct params p = {0};
    struct sublayers sublayers = {0};
    struct arena counting = {0};
    const char *why = NULL;

    if (c->pos->model_params)
        c->pos->model_params(c, &p);
    sublayers_init_bare(&sublayers, c, SUB_ATTENTION, &p, 0);
    if (sublayers.at->kind->positions) {
        params_place(&p, &counting);
        if (sublayers_bind(&sublayers, g, &p, MEM_NONE, max, &counting, NULL) == OK) {
            const struct attn asked = attention_for_impl(sublayers.at);
            attn_supports(&asked, TERMS_FUSED, &why);
        }
    }
    sublayers_free(&sublayers);
    params_free(&p);
    return why;
}

/* ---- cost --------------------------------------------------------------------------------- */

double sublayers_flop(const struct sublayers *s, int B, int L, int M)
{
    double flop = 0;

    for (int i = 0; i < s->n; i++)
        flop += rows_after(&s->at[i], L) ? sublayer_flop(&s->at[i], B, rows_before(&s->at[i], L), M)
                                         : 0;
    return flop;
}

struct flop_shares sublayers_shares(const struct sublayers *s, int B, int L, int M)
{
    struct flop_shares sum = {0, 0};

    for (int i = 0; i < s->n; i++) {
        const int rows = rows_before(&s->at[i], L);
        if (!rows_after(&s->at[i], L) || !s->at[i].kind->mixes)
            continue;
        sum.mixing += sublayer_flop(&s->at[i], B, rows, M);
        if (!s->at[i].kind->positions)
            continue;
        const struct attn a = attention_for_flop(&s->at[i], B, rows, M);
        sum.pairs += attn_flop(&a);
    }
    const double all = sublayers_flop(s, B, L, M);
    return (struct flop_shares){sum.mixing / all, sum.pairs / all};
}

double sublayers_moves(const struct sublayers *s, int B, int L, int M)
{
    double bytes = 0;

    for (int i = 0; i < s->n; i++)
        bytes += s->at[i].kind == &sublayer_content ? content_moves(&s->at[i], B, L, M) : 0;
    return bytes;
}

bool sublayers_gather(struct sublayers *s, const struct engine *g, int B, int L)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind == &sublayer_content && content_moves(&s->at[i], B, L, s->max.M) > 0 &&
            !content_gather(g, &s->at[i], &s->work[i], B, L))
            return false;
    return true;
}

double sublayers_grad_flop(const struct sublayers *s, int B, int L, int M)
{
    double flop = 0;

    for (int i = 0; i < s->n; i++)
        flop += rows_after(&s->at[i], L)
                    ? sublayer_grad_flop(&s->at[i], B, rows_before(&s->at[i], L), M)
                    : 0;
    return flop;
}
