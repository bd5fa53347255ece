/* SPDX-License-Identifier: MIT
 *
 * One layer of one sequence by its equations, in double: attention, feed-forward, norms, gates and
 * wirings, from the tensors of a list. For the position schemes whose terms are written here. */
#pragma once

#include "in_double.h"
#include "model.h"
#include "tests/support/kernel/naive.h"
#include "variants/parts/features.h"

struct layer {
    const struct config *c;
    const struct params *p;
    int L, M; /* queries, rows of the memory */
};

/* Names of tensors in a layer, and in a model with an explicit order "sf". */
static const char *const names[][2] = {
    {"attn.", "sub.0.attn."}, {"ln1.", "sub.0.ln."}, {"ff.", "sub.1.ff."}, {"ln2.", "sub.1.ln."}};

static inline const float *tensor(const struct layer *y, const char *name)
{
    char full[160];

    snprintf(full, sizeof(full), "layers.0.%s", name);
    for (size_t i = 0; *y->c->order && i < ARRAY_LEN(names); i++)
        if (strncmp(name, names[i][0], strlen(names[i][0])) == 0)
            snprintf(full, sizeof(full), "%s%s", names[i][1], name + strlen(names[i][0]));
    const struct param *const own = params_find(y->p, full);
    const struct param *const p = own ? own : params_find(y->p, name);

    return p ? p->data : NULL;
}

static inline double *numbers(int n) { return room((size_t)n, sizeof(double)); }

static inline double *copy(const double *x, int n)
{
    double *to = numbers(n);

    memcpy(to, x, sizeof(*x) * (size_t)n);
    return to;
}

/* x W^T + b of "name.weight" and "name.bias", if it exists. */
static inline double *linear(const struct layer *y, const char *name, const double *x, int rows,
                             int in, int out)
{
    char full[96];
    double *to = numbers(rows * out);

    snprintf(full, sizeof(full), "%s.weight", name);
    const float *w = tensor(y, full);
    cr_assert(w, "no %s", full);
    snprintf(full, sizeof(full), "%s.bias", name);
    const float *b = tensor(y, full);
    for (int r = 0; r < rows; r++)
        affine(to + r * out, w, b, x + r * in, out, in);
    return to;
}

static inline double *norm(const struct layer *y, const char *name, const double *x, int rows)
{
    const int D = y->c->D;
    double *to = copy(x, rows * D);

    const float *w = tensor(y, kept_text("%s.weight", name));
    const float *b = tensor(y, kept_text("%s.bias", name));
    for (int r = 0; r < rows; r++)
        layer_norm(to + r * D, D, w, b, (double)y->c->ln_eps);
    return to;
}

/* Columns h*dh.. of rows [n, H*dh]. */
static inline double *head(const struct config *c, const double *x, int n, int h)
{
    double *to = numbers(n * c->dh);

    for (int r = 0; r < n; r++)
        for (int e = 0; e < c->dh; e++)
            to[r * c->dh + e] = x[(r * c->H + h) * c->dh + e];
    return to;
}

static inline double *floats(const float *x, int n)
{
    double *to = numbers(n);

    to_doubles(to, x, x ? n : 0);
    return to;
}

/* W_r R[dist], all heads: [K, H*dh]. */
static inline double *pos_encoding(const struct layer *y)
{
    const int D = y->c->D, K = y->L + y->M;
    double *R = numbers(K * D);

    for (int n = 0; n < K; n++)
        for (int e = 0; e < D; e++) {
            const int dist = y->c->clamp_len ? min_int(n, y->c->clamp_len) : n;
            const double angle = dist * pow(10000, -2.0 * (e % (D / 2)) / D);
            R[n * D + e] = e < D / 2 ? sin(angle) : cos(angle);
        }
    return linear(y, "attn.r", R, K, D, y->c->H * y->c->dh);
}

/* The terms of the variant for head h. */
static inline void terms(const struct layer *y, int h, struct naive *n)
{
    const struct config *c = y->c;
    const int table = c->rel_rows * c->dh, at = c->rel_per_head ? h * table : 0;
    const char *const prefix = c->uv_per_layer ? "attn." : "";
    char u[32], w[32];

    if (strcmp(c->pos->name, "shaw") == 0) {
        n->clip = c->clip, n->rows = c->rel_rows;
        n->rel_k = floats(tensor(y, "attn.rel_k") + at, table);
        n->rel_v = floats(tensor(y, "attn.rel_v") + at, table);
    } else if (strcmp(c->pos->name, "xl") == 0) {
        snprintf(u, sizeof(u), "%sbias_u", prefix), snprintf(w, sizeof(w), "%sbias_v", prefix);
        n->rho = head(c, pos_encoding(y), y->L + y->M, h);
        if (!c->u_off)
            n->u = floats(tensor(y, u) + h * c->dh, c->dh);
        if (!c->v_off)
            n->w = floats(tensor(y, w) + h * c->dh, c->dh);
    }
}

/* One head without a softmax, products of elu + 1: o_h [L,dh]. */
static inline void attend_linearly(const struct layer *y, const double *q, const double *k,
                                   const double *v, double *o)
{
    const int d = y->c->dh;

    for (int i = 0; i < y->L; i++) {
        double den = (double)linear_of(y->c)->eps;
        memset(o + i * d, 0, sizeof(*o) * (size_t)d);
        for (int j = 0; j <= y->M + i; j++) {
            double w = 0;
            for (int e = 0; e < d; e++) {
                const double a = q[i * d + e], b = k[j * d + e];
                w += (a > 0 ? a + 1 : exp(a)) * (b > 0 ? b + 1 : exp(b));
            }
            for (int e = 0; e < d; e++)
                o[i * d + e] += w * v[j * d + e];
            den += w;
        }
        for (int e = 0; e < d; e++)
            o[i * d + e] /= den;
    }
}

/* The bare operator: queries from the last L rows of `from` [K,D]. */
static inline double *attention(const struct layer *y, const double *from)
{
    const struct config *c = y->c;
    const int HD = c->H * c->dh, L = y->L, M = y->M, K = L + M;
    double *q = linear(y, "attn.q", from + M * c->D, L, c->D, HD), *o = numbers(L * HD);
    double *k = linear(y, "attn.k", from, K, c->D, HD), *v = linear(y, "attn.v", from, K, c->D, HD);
    double *o_h = numbers(L * c->dh);

    for (int h = 0; h < c->H; h++) {
        double *q_h = head(c, q, L, h), *k_h = head(c, k, K, h), *v_h = head(c, v, K, h);
        struct naive n = {.L = L, .M = M, .d = c->dh, .causal = true, .window = c->window};
        n.scale = 1 / sqrt(c->dh), n.q = q_h, n.k = k_h, n.v = v_h;
        terms(y, h, &n);
        if (c->mixer)
            attend_linearly(y, q_h, k_h, v_h, o_h);
        else
            naive_attend(&n, o_h);
        for (int i = 0; i < L * c->dh; i++)
            o[(i / c->dh * c->H + h) * c->dh + i % c->dh] = o_h[i];
    }
    return linear(y, "attn.o", o, L, HD, c->D);
}

static inline double *feed_forward(const struct layer *y, const char *name, const double *x,
                                   int rows)
{
    double *hidden = linear(y, kept_text("%s.1", name), x, rows, y->c->D, y->c->F);

    for (int i = 0; i < rows * y->c->F; i++)
        hidden[i] = fmax(hidden[i], 0);
    return linear(y, kept_text("%s.2", name), hidden, rows, y->c->F, y->c->D);
}

/* x [rows,D] += h times the output of sub-layer y, through gate `at` if there is one. */
static inline void join(const struct layer *t, const char *at, double *x, double *y, int rows,
                        double h)
{
    const int D = t->c->D, n = rows * D;
    const char *const kind = t->c->gate ? t->c->gate->name : "plain";
    char name[32];
#define PRODUCT(w, of) (snprintf(name, sizeof(name), "%s." w, at), linear(t, name, of, rows, D, D))
    snprintf(name, sizeof(name), "%s.bg", at);
    const float *bg = tensor(t, name);

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
    } else if (strcmp(kind, "sigtanh") == 0) {
        const double *const a = PRODUCT("wg", y), *const b = PRODUCT("ug", y);
        for (int i = 0; i < n; i++)
            x[i] += sigma(a[i] - (double)bg[i % D]) * tanh(b[i]);
    } else if (strcmp(kind, "input") == 0 || strcmp(kind, "output") == 0 ||
               strcmp(kind, "highway") == 0) {
        const double *const a = PRODUCT("wg", x);
        for (int i = 0; i < n; i++) {
            const double t_i = sigma(a[i] + (bg ? (double)bg[i % D] : 0));
            const double less = sigma(a[i] - (bg ? (double)bg[i % D] : 0));
            x[i] = kind[0] == 'i'   ? t_i * x[i] + y[i]
                   : kind[0] == 'o' ? x[i] + less * y[i]
                                    : t_i * x[i] + (1 - t_i) * y[i];
        }
    } else {
        for (int i = 0; i < n; i++)
            x[i] += h * y[i];
    }
#undef PRODUCT
}

/* x, of which the wiring adds omega x to f: `ln` with its own name in place of "ln". */
static inline void weigh(const struct layer *y, const char *ln, double *x, int rows)
{
    if (y->c->wiring != WIRING_ADMIN)
        return;
    const float *const omega = tensor(y, kept_text("omega%s", ln + strlen("ln")));
    for (int i = 0; i < rows * y->c->D; i++)
        x[i] *= (double)omega[i % y->c->D];
}

static inline double factor(const struct layer *y, double h)
{
    return y->c->wiring == WIRING_REZERO ? (double)*tensor(y, "alpha") : h;
}

/* f if the wiring norms it, by `ln`_out. */
static inline double *outgoing(const struct layer *y, const char *ln, double *f, int rows)
{
    if (!wiring_norms_output(y->c->wiring))
        return f;
    return norm(y, kept_text("%s_out", ln), f, rows);
}

/* The norm `ln` of x if the wiring has it after the sum. */
static inline void settle(const struct layer *y, const char *ln, double *x, int rows)
{
    if (!wiring_norms_after(y->c->wiring))
        return;
    double *n = norm(y, ln, x, rows);
    memcpy(x, n, sizeof(*x) * (size_t)(rows * y->c->D));
}

/* h of the feed-forward `ff`, joined to x. */
static inline void feed(const struct layer *y, const char *ff, const char *ln, const char *gate,
                        double *x, int rows, double h)
{
    double *in = wiring_norms_first(y->c->wiring) ? norm(y, ln, x, rows) : copy(x, rows * y->c->D);
    double *f = outgoing(y, ln, feed_forward(y, ff, in, rows), rows);

    weigh(y, ln, x, rows);
    join(y, gate, x, f, rows, factor(y, h));
    settle(y, ln, x, rows);
}

/* z [L,D] from rows [m; x] [K,D]; memory is what entered attention, or is run with x. */
static inline double *by_hand(const struct layer *y, const double *rows, bool recompute)
{
    const struct config *c = y->c;
    const bool macaron = c->wiring == WIRING_MACARON_PRE || c->wiring == WIRING_MACARON_POST;
    const int L = y->L, M = y->M, K = L + M, from = recompute ? 0 : M;
    double *all = copy(rows, K * c->D);

    if (macaron)
        feed(y, "ff0", "ln0", "", all + from * c->D, K - from, 0.5);
    double *n = wiring_norms_first(c->wiring) ? norm(y, "ln1", all, K) : copy(all, K * c->D);
    double *a = outgoing(y, "ln1", attention(y, n), L), *z = copy(all + M * c->D, L * c->D);
    weigh(y, "ln1", z, L);
    join(y, "gate1", z, a, L, factor(y, 1));
    settle(y, "ln1", z, L);
    if (c->wiring == WIRING_PARALLEL) { /* the same rows enter both */
        double *x = copy(all + M * c->D, L * c->D), *in = norm(y, "ln2", x, L);
        double *f = feed_forward(y, "ff", in, L);
        join(y, "", z, f, L, 1);
        return z;
    }
    feed(y, "ff", "ln2", "gate2", z, L, macaron ? 0.5 : 1);
    return z;
}

/* Does this file cover the model? */
static inline bool by_hand_knows(const struct config *c)
{
    static const char *const known[] = {"none", "sinusoid", "shaw", "xl"};

    if (c->mixer && c->mixer->features != FEATURES_ELU)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(c->pos->name, known[i]) == 0)
            return c->norm_kind == NORM_LAYER && strcmp(c->subs, "sf") == 0 &&
                   strcmp(c->ffn->name, "relu") == 0 && c->kv_heads == c->H && !c->steps &&
                   !c->rnn_layers && !c->attn_extra && !c->masks.n && !c->rel_per_head &&
                   c->rel_v && !config_has_around(c);
    return false;
}
