/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare recurrence (kind = recur): backends/recur.h, forward and backward, with
 * its state in and out. */
#include "golden.h"

#include "variants/backends/recur.h"

/* The operands of the file, with their tensors "in.NAME" and "out.grad.NAME". */
enum operand { Q, K, V, G, BETA, A, B, U, I, S, Z, OPERANDS };
static const char *const names[OPERANDS] = {"q", "k", "v", "g",       "beta",   "a",
                                            "b", "u", "i", "state_s", "state_z"};

struct recur_file {
    struct recur r;
    struct recur_grad d;
    int q_heads, k_heads;
    size_t n[OPERANDS]; /* numbers of each; 0 = the file lacks it */
    const float *in[OPERANDS];
    float *grad[OPERANDS];
    const float *m0;
    void *scratch;
};

static bool says(const struct run *r, const char *key, const char *value)
{
    const char *const text = safetensors_meta(r->s, key);

    return text && strcmp(text, value) == 0;
}

static enum status read_sizes(struct run *run, struct recur_file *f, struct err *e)
{
    struct recur *r = &f->r;
    const struct {
        const char *key;
        int *to;
    } sizes[] = {{"n_head", &r->H},        {"state_heads", &r->Hs}, {"q_heads", &f->q_heads},
                 {"k_heads", &f->k_heads}, {"d_head", &r->dk},      {"d_value", &r->dv}};
    double scale = 1, eps = 0;

    TRY(golden_extent(run, e));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        TRY(golden_size(run, sizes[i].key, GOLDEN_WIDE, sizes[i].to, e));
    TRY(safetensors_real(run->s, "scale", 1, &scale, e));
    TRY(safetensors_real(run->s, "lin_eps", 0, &eps, e));
    r->B = run->max.B;
    r->L = run->max.L;
    r->M = run->max.M;
    r->scale = (float)scale;
    r->eps = (float)eps;
    for (enum recur_norm n = RECUR_PLAIN; n < RECUR_NORMS; n++)
        r->norm = says(run, "normaliser", recur_norm_name[n]) ? n : r->norm;
    r->g_width = says(run, "decay", "none") ? 0 : says(run, "decay", "channel") ? r->dk : 1;
    if (r->H % r->Hs != 0 || r->H % f->q_heads != 0 || r->Hs % f->k_heads != 0)
        return fail(e, E_IO,
                    "%s: numbers of heads do not divide  -> make n_head a multiple of state_heads "
                    "and q_heads, state_heads of k_heads",
                    run->s->path);
    const double rows = (double)r->B * (r->L + r->M), width = max_int(r->dk, r->dv);
    TRY(golden_few(run, rows * r->H * width, e));
    return golden_few(run, (double)r->B * r->Hs * r->dk * r->dv, e);
}

/* Rows of [B,T,heads,width], of which each is used by `per` heads. */
static struct recur_rows rows(const float *at, int T, int heads, int width, int per)
{
    return (struct recur_rows){at, (ptrdiff_t)T * heads * width, (ptrdiff_t)heads * width, width,
                               per};
}

/* The numbers of a tensor, or NULL if the file lacks it. */
static const float *optional(const struct run *run, const char *name, size_t n, enum status *st,
                             struct err *e)
{
    const struct tensor *const t =
        safetensors_find(run->s, name) ? golden_need(run, name, DTYPE_F32, n, st, e) : NULL;

    return t ? t->data : NULL;
}

static enum status read_operands(struct run *run, struct recur_file *f, struct err *e)
{
    struct recur *r = &f->r;
    const int T = r->M + r->L;
    const size_t BL = (size_t)r->B * (size_t)r->L, BK = (size_t)r->B * (size_t)T;
    const size_t Hs = (size_t)r->Hs, dk = (size_t)r->dk, states = (size_t)r->B * Hs;
    const size_t n[OPERANDS] = {[Q] = BL * (size_t)f->q_heads * dk,
                                [K] = BK * (size_t)f->k_heads * dk,
                                [V] = BK * Hs * (size_t)r->dv,
                                [G] = BK * Hs * (size_t)r->g_width,
                                [BETA] = BK * Hs,
                                [A] = BK * Hs * dk,
                                [B] = BK * Hs * dk,
                                [U] = (size_t)r->H * dk,
                                [I] = BK * Hs,
                                [S] = states * dk * (size_t)r->dv,
                                [Z] = states * dk};
    enum status st = OK;

    for (int i = 0; i < OPERANDS && st == OK; i++) {
        const char *const name = golden_name(run, "in.%s", names[i]);
        if (i == V || (i == G && r->g_width))
            (void)golden_need(run, name, DTYPE_F32, n[i], &st, e);
        f->in[i] = optional(run, name, n[i], &st, e);
        f->n[i] = f->in[i] ? n[i] : 0;
    }
    f->m0 = optional(run, "in.state_m", states, &st, e);
    if (run->grad) {
        const struct tensor *const d_o =
            golden_need(run, "in.do", DTYPE_F32, BL * (size_t)r->H * (size_t)r->dv, &st, e);
        f->d.d_o = d_o ? d_o->data : NULL;
        f->d.d_s1 = optional(run, "in.dstate_s", n[S], &st, e);
    }
    return st;
}

static enum status check_operands(const struct run *run, const struct recur_file *f, struct err *e)
{
    const struct recur *r = &f->r;
    const bool erases = r->beta.at || r->a.at;

    const struct {
        const char *key, *is;
    } said[] = {{"erase", r->a.at      ? "free"
                          : r->beta.at ? "own"
                                       : "none"},
                {"bonus", r->u ? "1" : "0"},
                {"write_gate", r->i.at ? "1" : "0"}};

    for (size_t k = 0; k < ARRAY_LEN(said); k++)
        if (safetensors_meta(run->s, said[k].key) && !says(run, said[k].key, said[k].is))
            return safetensors_fail(run->s, e, "metadata %s is \"%.64s\", its operands say %s",
                                    said[k].key, safetensors_meta(run->s, said[k].key), said[k].is);
    if (((!r->q.at || !r->k.at) && r->dk != 1) || !r->a.at != !r->b.at || (r->beta.at && r->a.at) ||
        (r->i.at && r->g_width > 1) || (r->norm && (erases || r->u)))
        return fail(e, E_IO, "%s: operands that no recurrence has together  -> see recur.h",
                    run->s->path);
    return OK;
}

static enum status read(struct run *run, struct err *e)
{
    struct recur_file *const f = run->data;
    struct recur *const r = &f->r;

    TRY(read_sizes(run, f, e));
    TRY(read_operands(run, f, e));
    const int T = r->M + r->L, Hs = r->Hs;
    r->q = rows(f->in[Q], r->L, f->q_heads, r->dk, r->H / f->q_heads);
    r->k = rows(f->in[K], T, f->k_heads, r->dk, Hs / f->k_heads);
    r->v = rows(f->in[V], T, Hs, r->dv, 1);
    r->g = rows(f->in[G], T, Hs, r->g_width, 1);
    r->beta = rows(f->in[BETA], T, Hs, 1, 1);
    r->a = rows(f->in[A], T, Hs, r->dk, 1);
    r->b = rows(f->in[B], T, Hs, r->dk, 1);
    r->i = rows(f->in[I], T, Hs, 1, 1);
    r->u = f->in[U];
    r->s0 = f->in[S];
    r->z0 = f->in[Z];
    r->m0 = f->m0;
    return check_operands(run, f, e);
}

static enum status bind(struct run *run, struct err *e)
{
    struct recur_file *const f = run->data;
    struct recur *const r = &f->r;
    struct arena *const a = &run->arena;
    const size_t rows = (size_t)r->B * (size_t)r->L * (size_t)r->H;
    const size_t states = (size_t)r->B * (size_t)r->Hs;
    const struct recur_impl *const impl = engine_recur(run->g, r, run->grad);

    if (!impl)
        return fail(e, E_UNSUPPORTED, "%s has no recurrence like that of %s", run->g->backend->name,
                    run->s->path);
    r->o = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)r->dv);
    r->den = arena_f32(a, PART_ACTIVATIONS, rows);
    r->s1 = arena_f32(a, PART_MEMORY, states * (size_t)r->dk * (size_t)r->dv);
    r->z1 = arena_f32(a, PART_MEMORY, states * (size_t)r->dk);
    r->m1 = arena_f32(a, PART_MEMORY, states);
    for (int i = 0; run->grad && i < OPERANDS; i++)
        if (f->n[i])
            f->grad[i] = arena_f32(a, PART_GRADIENTS, f->n[i]);
    const size_t need = impl->need(r, run->g->threads, false);
    const size_t back = run->grad ? impl->need(r, run->g->threads, true) : 0;
    f->scratch = arena_take(a, PART_SCRATCH, need > back ? need : back);
    return OK;
}

static enum status forward(struct run *run, struct err *e)
{
    struct recur_file *const f = run->data;
    struct recur *const r = &f->r;
    const struct recur_impl *const impl = engine_recur(run->g, r, run->grad);
    const size_t states = (size_t)r->B * (size_t)r->Hs;

    impl->forward(run->g, r, f->scratch);
    golden_compare(run, "out.o", r->o, (size_t)r->B * (size_t)r->L * (size_t)r->H * (size_t)r->dv);
    golden_compare(run, "out.state_s", r->s1, states * (size_t)r->dk * (size_t)r->dv);
    golden_compare(run, "out.state_z", r->z1, states * (size_t)r->dk);
    golden_compare(run, "out.state_m", r->m1, states);
    if (!run->grad)
        return OK;
    float **const d[OPERANDS] = {&f->d.d_q,    &f->d.d_k,  &f->d.d_v, &f->d.d_g,
                                 &f->d.d_beta, &f->d.d_a,  &f->d.d_b, &f->d.d_u,
                                 &f->d.d_i,    &f->d.d_s0, &f->d.d_z0};
    for (int i = 0; i < OPERANDS; i++)
        *d[i] = f->grad[i];
    if (f->grad[U])
        memset(f->grad[U], 0, f->n[U] * sizeof(float));
    impl->backward(run->g, r, &f->d, f->scratch);
    for (int i = 0; i < OPERANDS; i++)
        if (f->n[i])
            golden_compare(run, golden_name(run, GRADIENT "%s", names[i]), f->grad[i], f->n[i]);
    return OK;
}

const struct golden_kind golden_recur = {
    .name = "recur",
    .size = sizeof(struct recur_file),
    .read = read,
    .bind = bind,
    .forward = forward,
};
