/* SPDX-License-Identifier: MIT
 *
 * One layer against the equations written out in double: every variant, wiring
 * and gate, every kind of memory, on every usable backend. */
#include "model.h"
#include "naive.h"

#include <criterion/parameterized.h>
#include <stdio.h>

enum { B = 2, L = 7, M = 9, K = L + M };

/* ---- the layer by hand, one sequence ------------------------------------------------------ */

struct layer {
    const struct config *c;
    const struct params *p;
};

static const float *tensor(const struct layer *y, const char *name)
{
    const struct param *p = params_find(y->p, name);

    return p ? p->data : NULL;
}

static double *numbers(int n)
{
    double *x = calloc((size_t)n, sizeof(*x));

    cr_assert_not_null(x);
    return x;
}

/* x W^T + b of "name.weight" and "name.bias", where there is one. */
static double *linear(const struct layer *y, const char *name, const double *x, int rows, int in,
                      int out)
{
    char full[64];
    double *to = numbers(rows * out);

    snprintf(full, sizeof(full), "%s.weight", name);
    const float *w = tensor(y, full);
    cr_assert(w, "no %s", full);
    snprintf(full, sizeof(full), "%s.bias", name);
    const float *b = tensor(y, full);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            to[r * out + o] = b ? (double)b[o] : 0;
            for (int i = 0; i < in; i++)
                to[r * out + o] += x[r * in + i] * (double)w[o * in + i];
        }
    return to;
}

static double *norm(const struct layer *y, const char *name, const double *x, int rows)
{
    const int D = y->c->D;
    char full[32];
    double *to = numbers(rows * D);

    snprintf(full, sizeof(full), "%s.weight", name);
    const float *w = tensor(y, full);
    snprintf(full, sizeof(full), "%s.bias", name);
    const float *b = tensor(y, full);
    for (int r = 0; r < rows; r++) {
        double mean = 0, var = 0;
        for (int e = 0; e < D; e++)
            mean += x[r * D + e] / D;
        for (int e = 0; e < D; e++)
            var += (x[r * D + e] - mean) * (x[r * D + e] - mean) / D;
        for (int e = 0; e < D; e++)
            to[r * D + e] =
                (x[r * D + e] - mean) / sqrt(var + (double)y->c->ln_eps) * (double)w[e] +
                (double)b[e];
    }
    return to;
}

/* Columns h*dh.. of rows [n, H*dh]. */
static double *head(const struct config *c, const double *x, int n, int h)
{
    double *to = numbers(n * c->dh);

    for (int r = 0; r < n; r++)
        for (int e = 0; e < c->dh; e++)
            to[r * c->dh + e] = x[(r * c->H + h) * c->dh + e];
    return to;
}

static double *floats(const float *x, int n)
{
    double *to = numbers(n);

    for (int i = 0; x && i < n; i++)
        to[i] = (double)x[i];
    return to;
}

/* W_r R[dist], all heads: [K, H*dh]. */
static double *codes(const struct layer *y)
{
    const int D = y->c->D;
    double *R = numbers(K * D);

    for (int n = 0; n < K; n++)
        for (int e = 0; e < D; e++) {
            const int dist = y->c->clamp_len ? min_int(n, y->c->clamp_len) : n;
            const double angle = dist * pow(10000, -2.0 * (e % (D / 2)) / D);
            R[n * D + e] = e < D / 2 ? sin(angle) : cos(angle);
        }
    double *rho = linear(y, "attn.r", R, K, D, y->c->H * y->c->dh);
    free(R);
    return rho;
}

/* The terms of the variant for head h; what it points at is for the caller to free. */
enum { TABLES = 5 };
static void terms(const struct layer *y, int h, struct naive *n, double *owned[TABLES])
{
    const struct config *c = y->c;
    const int table = c->rel_rows * c->dh, at = c->rel_per_head ? h * table : 0;
    const char *const prefix = c->uv_per_layer ? "attn." : "";
    char u[32], w[32];

    memset(owned, 0, TABLES * sizeof(*owned));
    if (strcmp(c->pos->name, "shaw") == 0) {
        n->clip = c->clip, n->rows = c->rel_rows;
        n->rel_k = owned[0] = floats(tensor(y, "attn.rel_k") + at, table);
        n->rel_v = owned[1] = floats(tensor(y, "attn.rel_v") + at, table);
    } else if (strcmp(c->pos->name, "xl") == 0) {
        snprintf(u, sizeof(u), "%sbias_u", prefix), snprintf(w, sizeof(w), "%sbias_v", prefix);
        double *all = codes(y);
        n->rho = owned[0] = head(c, all, K, h);
        n->u = owned[1] = floats(tensor(y, u) + h * c->dh, c->dh);
        n->w = owned[2] = floats(tensor(y, w) + h * c->dh, c->dh);
        free(all);
    }
}

/* The bare operator: queries from the last L rows of `from` [K,D]. */
static double *attention(const struct layer *y, const double *from)
{
    const struct config *c = y->c;
    const int HD = c->H * c->dh;
    double *q = linear(y, "attn.q", from + M * c->D, L, c->D, HD), *o = numbers(L * HD);
    double *k = linear(y, "attn.k", from, K, c->D, HD), *v = linear(y, "attn.v", from, K, c->D, HD);
    double *owned[TABLES], *o_h = numbers(L * c->dh);

    for (int h = 0; h < c->H; h++) {
        double *q_h = head(c, q, L, h), *k_h = head(c, k, K, h), *v_h = head(c, v, K, h);
        struct naive n = {.L = L, .M = M, .d = c->dh, .causal = true, .window = c->window};
        n.scale = 1 / sqrt(c->dh), n.q = q_h, n.k = k_h, n.v = v_h;
        terms(y, h, &n, owned);
        naive_attend(&n, o_h, NULL, NULL);
        for (int i = 0; i < L * c->dh; i++)
            o[(i / c->dh * c->H + h) * c->dh + i % c->dh] = o_h[i];
        free(q_h), free(k_h), free(v_h);
        for (int i = 0; i < TABLES; i++)
            free(owned[i]);
    }
    double *out = linear(y, "attn.o", o, L, HD, c->D);
    free(q), free(k), free(v), free(o), free(o_h);
    return out;
}

static double *feed_forward(const struct layer *y, const double *x)
{
    double *hidden = linear(y, "ff.1", x, L, y->c->D, y->c->F);

    for (int i = 0; i < L * y->c->F; i++)
        hidden[i] = fmax(hidden[i], 0);
    double *out = linear(y, "ff.2", hidden, L, y->c->F, y->c->D);
    free(hidden);
    return out;
}

static double sigma(double x) { return 1 / (1 + exp(-x)); }

/* x += what the sub-layer y gives, through gate `at` where there is one. */
static void join(const struct layer *t, const char *at, double *x, double *y)
{
    const int D = t->c->D, n = L * D;
    const char *const kind = t->c->gate ? t->c->gate->name : "plain";
    char name[32];
#define PRODUCT(w, of) (snprintf(name, sizeof(name), "%s." w, at), linear(t, name, of, L, D, D))
    snprintf(name, sizeof(name), "%s.bg", at);
    const float *bg = tensor(t, name);
    double *a = NULL, *b = NULL;

    for (int i = 0; t->c->gate && i < n; i++)
        y[i] = fmax(y[i], 0);
    if (strcmp(kind, "gru") == 0) {
        double *wr = PRODUCT("wr", y), *ur = PRODUCT("ur", x), *wz = PRODUCT("wz", y);
        double *uz = PRODUCT("uz", x), *wg = PRODUCT("wg", y), *rx = numbers(n);
        for (int i = 0; i < n; i++)
            rx[i] = sigma(wr[i] + ur[i]) * x[i];
        double *ug = PRODUCT("ug", rx);
        for (int i = 0; i < n; i++) {
            const double z = sigma(wz[i] + uz[i] - (double)bg[i % D]);
            x[i] = (1 - z) * x[i] + z * tanh(wg[i] + ug[i]);
        }
        free(wr), free(ur), free(wz), free(uz), free(wg), free(rx), free(ug);
    } else if (strcmp(kind, "sigtanh") == 0) {
        a = PRODUCT("wg", y), b = PRODUCT("ug", y);
        for (int i = 0; i < n; i++)
            x[i] += sigma(a[i] - (double)bg[i % D]) * tanh(b[i]);
    } else if (strcmp(kind, "input") == 0 || strcmp(kind, "output") == 0 ||
               strcmp(kind, "highway") == 0) {
        a = PRODUCT("wg", x);
        for (int i = 0; i < n; i++) {
            const double t_i = sigma(a[i] + (bg ? (double)bg[i % D] : 0));
            const double less = sigma(a[i] - (bg ? (double)bg[i % D] : 0));
            x[i] = kind[0] == 'i'   ? t_i * x[i] + y[i]
                   : kind[0] == 'o' ? x[i] + less * y[i]
                                    : t_i * x[i] + (1 - t_i) * y[i];
        }
    } else {
        for (int i = 0; i < n; i++)
            x[i] += y[i];
    }
    free(a), free(b);
#undef PRODUCT
}

/* z [L,D] from rows [m; x] [K,D]. */
static double *by_hand(const struct layer *y, const double *rows)
{
    const bool post = y->c->norm == NORM_POST;
    double *n = norm(y, "ln1", rows, K), *a = attention(y, post ? rows : n);
    double *z = numbers(L * y->c->D), *normed;

    memcpy(z, rows + M * y->c->D, sizeof(*z) * (size_t)(L * y->c->D));
    join(y, "gate1", z, a);
    normed = norm(y, post ? "ln1" : "ln2", z, L);
    double *f = feed_forward(y, normed);
    if (post)
        memcpy(z, normed, sizeof(*z) * (size_t)(L * y->c->D));
    join(y, "gate2", z, f);
    free(normed);
    normed = norm(y, "ln2", z, L);
    free(n), free(a), free(f);
    if (!post) {
        free(normed);
        return z;
    }
    free(z);
    return normed;
}

/* ---- the layer under test ----------------------------------------------------------------- */

struct bound_layer {
    struct engine g;
    struct params p;
    struct arena a;
    struct block block;
    struct work work;
    int first;
};

static void bind(struct bound_layer *y, const struct config *c, enum mem_kind kind)
{
    const struct extent max = {B, kind == MEM_RECOMPUTE ? K : L, kind == MEM_RECOMPUTE ? 0 : M};
    struct err e = {""};

    params_place(&y->p, &y->a);
    block_attach(&y->block, c, &y->p, 0, y->first);
    cr_assert_eq(block_bind(&y->block, &y->g, kind, max, &y->a, &e), OK, "%s", e.msg);
    work_bind(&y->work, &y->g, &y->block, kind, max, &y->a);
}

static void open_layer(struct bound_layer *y, const struct config *c, const char *backend,
                       enum mem_kind kind)
{
    *y = (struct bound_layer){0};
    cr_assert_eq(engine_open(&y->g, backend, 1, NULL, NULL), OK);
    if (c->pos->model_params)
        c->pos->model_params(c, &y->p);
    y->first = block_params(c, "", &y->p);
    bind(y, c, kind);
    cr_assert_eq(arena_place(&y->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(y->a.base, 0xff, y->a.size);
    bind(y, c, kind);
    params_init(&y->p, SEED);
    if (c->pos->codes)
        c->pos->codes(c, K, y->work.codes);
    block_lower(&y->g, &y->block, &y->work);
}

/* z [B,L,D] from rows [B,K,D]; memory arrives in two pieces, or is run with the segment. */
static void run_layer(struct bound_layer *y, enum mem_kind kind, const float *rows, float *z)
{
    const int D = y->block.c->D, fresh = kind == MEM_RECOMPUTE ? K : L;
    float *x = normal((size_t)(B * K * D), "piece", 0, 1);

    for (int done = 0; kind != MEM_RECOMPUTE && done < M; done += 5) {
        const int n = min_int(5, M - done);
        for (int b = 0; b < B; b++)
            memcpy(x + b * n * D, rows + (b * K + done) * D, sizeof(float) * (size_t)(n * D));
        block_remember(&y->g, &y->block, kind, &y->work, x, B, n);
    }
    for (int b = 0; b < B; b++)
        memcpy(x + b * fresh * D, rows + (b * K + K - fresh) * D,
               sizeof(float) * (size_t)(fresh * D));
    block_forward(&y->g, &y->block, kind, &y->work, x, x, B, fresh);
    for (int b = 0; b < B; b++)
        memcpy(z + b * L * D, x + (b * fresh + fresh - L) * D, sizeof(float) * (size_t)(L * D));
    release(x);
}

static void check_layer(const struct config *c, const char *backend, enum mem_kind kind)
{
    const int D = c->D;
    struct bound_layer y;
    float *rows = normal((size_t)(B * K * D), "rows", 0, 1), got[B * L * 16], want[B * L * 16];

    cr_assert_leq(D, 16);
    open_layer(&y, c, backend, kind);
    run_layer(&y, kind, rows, got);
    for (int b = 0; b < B; b++) {
        double *in = floats(rows + b * K * D, K * D);
        double *z = by_hand(&(struct layer){c, &y.p}, in);
        for (int i = 0; i < L * D; i++)
            want[b * L * D + i] = (float)z[i];
        free(in), free(z);
    }
    const double error = cell_error(got, want, (size_t)(B * L * D));
    cr_expect(error < 1.0, "%s, %s, norm %s, gate %s, %s, window %d, clamp %d: %.3g x its limit",
              backend, c->variant->name, norm_name[c->norm], c->gate ? c->gate->name : "none",
              mem_kind_name[kind], c->window, c->clamp_len, error);
    release(rows);
    arena_release(&y.a);
    params_free(&y.p);
}

ParameterizedTestParameters(block, is_its_equations)
{
    static struct wiring list[WIRINGS];

    return cr_make_param_array(struct wiring, list, all_wirings(list, false));
}
ParameterizedTest(struct wiring *w, block, is_its_equations, .timeout = 60)
{
    for (int i = 0; backends[i]; i++)
        for (int turn = 0; turn < 4; turn++) {
            struct config c = wired(w, turn);
            c.clamp_len = turn == 1 ? 4 : 0;
            c.window = turn == 2 ? 6 : 0;
            if (backend_usable(backends[i], NULL) != OK)
                continue;
            check_layer(&c, backends[i]->name,
                        !c.variant->mem->recurrent ? MEM_RECOMPUTE
                        : turn % 2                 ? MEM_KV
                                                   : MEM_HIDDEN);
        }
}
