/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences as their equations, one key after the other, in double. */
#include "variants/backends/recur.h"

/* ---- the state of one sequence and head --------------------------------------------------- */

struct state {
    double *S, *z; /* [dk,dv] [dk] */
    double m;
};

static size_t state_doubles(const struct recur *r)
{
    return (size_t)r->dk * (size_t)r->dv + (size_t)r->dk + 1;
}

static void copy(const struct recur *r, struct state *to, const struct state *from)
{
    memcpy(to->S, from->S, (size_t)r->dk * (size_t)r->dv * sizeof(double));
    memcpy(to->z, from->z, (size_t)r->dk * sizeof(double));
    to->m = from->m;
}

static void begin(const struct recur *r, int b, int hs, struct state *s)
{
    const ptrdiff_t at = recur_state(r, b, hs), n = (ptrdiff_t)r->dk * r->dv;

    for (ptrdiff_t e = 0; e < n; e++)
        s->S[e] = r->s0 ? (double)r->s0[at * n + e] : 0;
    for (int x = 0; x < r->dk; x++)
        s->z[x] = r->z0 ? (double)r->z0[at * r->dk + x] : 0;
    s->m = r->m0 ? (double)r->m0[at] : -INFINITY;
}

static void end(const struct recur *r, int b, int hs, const struct state *s)
{
    const ptrdiff_t at = recur_state(r, b, hs), n = (ptrdiff_t)r->dk * r->dv;

    for (ptrdiff_t e = 0; r->s1 && e < n; e++)
        r->s1[at * n + e] = (float)s->S[e];
    for (int x = 0; r->z1 && x < r->dk; x++)
        r->z1[at * r->dk + x] = (float)s->z[x];
    if (r->m1)
        r->m1[at] = (float)s->m;
}

/* ---- one key ------------------------------------------------------------------------------ */

static double operand(const struct recur *r, float x) { return (double)recur_operand(r, x); }

static double key(const struct recur *r, int b, int t, int hs, int x)
{
    return r->k.at ? operand(r, recur_at(&r->k, b, t, hs)[x]) : 1;
}

/* Log decay of channel x. */
static double log_decay(const struct recur *r, int b, int t, int hs, int x)
{
    return r->g_width == 0 ? 0 : (double)recur_at(&r->g, b, t, hs)[r->g_width == 1 ? 0 : x];
}

/* The key's effect on a state: decays w [dk], and what multiplies its write. */
struct key_step {
    double *w, *x, *v; /* [dk], and [dv]: what an erase reads, the value */
    double write, beta;
    double m; /* after the step */
};

static void weigh(const struct recur *r, int b, int t, int hs, const struct state *before,
                  struct key_step *k)
{
    k->write = 1;
    k->m = before->m;
    if (r->i.at) {
        const double i = (double)*recur_at(&r->i, b, t, hs), g = log_decay(r, b, t, hs, 0);
        k->m = fmax(g + before->m, i);
        k->write = exp(i - k->m);
    }
    for (int x = 0; x < r->dk; x++)
        k->w[x] = exp(log_decay(r, b, t, hs, x) + (r->i.at ? before->m - k->m : 0));
    k->beta = r->beta.at ? (double)*recur_at(&r->beta, b, t, hs) : 0;
    for (int e = 0; e < r->dv; e++)
        k->v[e] = operand(r, recur_at(&r->v, b, t, hs)[e]);
}

/* x = S^T y over the rows of S times `w` (NULL = 1). */
static void read_state(const struct recur *r, const struct state *s, const double *w,
                       const float *y, double *x)
{
    for (int e = 0; e < r->dv; e++)
        x[e] = 0;
    for (int n = 0; n < r->dk; n++) {
        const double f = (y ? operand(r, y[n]) : 1) * (w ? w[n] : 1);
        for (int e = 0; e < r->dv; e++)
            x[e] += f * s->S[n * r->dv + e];
    }
}

/* From S_{t-1} to S_t. */
static void step(const struct recur *r, int b, int t, int hs, struct state *s, struct key_step *k)
{
    const float *const fb = r->b.at ? recur_at(&r->b, b, t, hs) : NULL;

    weigh(r, b, t, hs, s, k);
    if (r->beta.at)
        read_state(r, s, k->w, r->k.at ? recur_at(&r->k, b, t, hs) : NULL, k->x);
    else if (r->a.at)
        read_state(r, s, NULL, recur_at(&r->a, b, t, hs), k->x);
    for (int n = 0; n < r->dk; n++) {
        const double kn = key(r, b, t, hs, n);
        double *const row = s->S + n * r->dv;
        for (int e = 0; e < r->dv; e++) {
            row[e] *= k->w[n];
            if (r->beta.at)
                row[e] += k->beta * kn * (k->v[e] - k->x[e]);
            else
                row[e] += k->write * kn * k->v[e];
            if (fb)
                row[e] += operand(r, fb[n]) * k->x[e];
        }
        s->z[n] = k->w[n] * s->z[n] + k->write * kn;
    }
    s->m = k->m;
}

/* ---- outputs ------------------------------------------------------------------------------ */

static double query(const struct recur *r, int b, int i, int h, int x)
{
    return (double)r->scale * (r->q.at ? operand(r, recur_at(&r->q, b, i, h)[x]) : 1);
}

static double dot_z(const struct recur *r, int b, int i, int h, const struct state *s)
{
    double n = 0;

    for (int x = 0; x < r->dk; x++)
        n += query(r, b, i, h, x) * s->z[x];
    return n;
}

/* The least divisor of the mLSTM, 1 in units of the state. */
static double least(const struct recur *r, double m) { return r->i.at ? exp(-m) : 1; }

static double divisor(const struct recur *r, double n, double m)
{
    return r->norm == RECUR_SUM     ? n + (double)r->eps
           : r->norm == RECUR_MLSTM ? fmax(fabs(n), least(r, m))
                                    : 1;
}

/* sum_n q_n u_n k_n */
static double bonus(const struct recur *r, int b, int i, int h, int hs)
{
    double sum = 0;

    for (int x = 0; r->u && x < r->dk; x++)
        sum += query(r, b, i, h, x) * (double)r->u[h * r->dk + x] * key(r, b, r->M + i, hs, x);
    return sum;
}

/* Row i of head h from the state that it reads: after the step, or before it with a bonus. */
static void output(const struct recur *r, int b, int i, int h, int hs, const struct state *s)
{
    const ptrdiff_t at = ((ptrdiff_t)b * r->L + i) * r->H + h;
    const double den = divisor(r, r->norm ? dot_z(r, b, i, h, s) : 0, s->m);
    const double now = bonus(r, b, i, h, hs);
    const float *v = recur_at(&r->v, b, r->M + i, hs);

    for (int e = 0; e < r->dv; e++) {
        double o = now * operand(r, v[e]);
        for (int x = 0; x < r->dk; x++)
            o += query(r, b, i, h, x) * s->S[x * r->dv + e];
        r->o[at * r->dv + e] = (float)(o / den);
    }
    if (r->den)
        r->den[at] = (float)den;
}

static void outputs(const struct recur *r, int b, int i, int hs, const struct state *s)
{
    const int n = r->H / r->Hs;

    for (int h = hs * n; h < (hs + 1) * n; h++)
        output(r, b, i, h, hs, s);
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Doubles of a thread: a state, and a key's. */
static size_t forward_doubles(const struct recur *r)
{
    return state_doubles(r) + (size_t)r->dk + 2 * (size_t)r->dv;
}

static struct state state_in(const struct recur *r, double *room)
{
    return (struct state){.S = room, .z = room + (ptrdiff_t)r->dk * r->dv};
}

static void forward(const struct engine *g, const struct recur *r, void *scratch)
{
    const size_t doubles = forward_doubles(r);

#pragma omp parallel for num_threads(g->threads) collapse(2) schedule(static)
    for (int b = 0; b < r->B; b++)
        for (int hs = 0; hs < r->Hs; hs++) {
            double *const room = (double *)scratch + doubles * (size_t)omp_get_thread_num();
            double *const w = room + state_doubles(r);
            struct state s = state_in(r, room);
            struct key_step k = {.w = w, .x = w + r->dk, .v = w + r->dk + r->dv};
            begin(r, b, hs, &s);
            for (int t = 0; t < r->M + r->L; t++) {
                if (r->u && t >= r->M)
                    outputs(r, b, t - r->M, hs, &s);
                step(r, b, t, hs, &s, &k);
                if (!r->u && t >= r->M)
                    outputs(r, b, t - r->M, hs, &s);
            }
            end(r, b, hs, &s);
        }
}

/* ---- backward -----------------------------------------------------------------------------
 *
 * The reverse recurrence needs the state at every key. States are kept every BLOCK keys and
 * computed again inside a block. */

enum { BLOCK = 64 };

struct reverse {
    const struct recur *r;
    const struct recur_grad *d;
    int b, hs;
    struct state kept[BLOCK + 1]; /* before each key of the block, and after its last */
    struct key_step k;
    double *d_S, *dz;      /* [dk,dv] [dk] gradient of the state after the key */
    double *before;        /* [dk,dv] what the key reads of the state before it */
    double *dk, *dv, *row; /* [dk] [dv] [dv] */
};

static size_t blocks_of(const struct recur *r) { return (size_t)(r->M + r->L) / BLOCK + 1; }

static size_t backward_doubles(const struct recur *r)
{
    const size_t s = (size_t)r->dk * (size_t)r->dv;

    return (BLOCK + 1 + blocks_of(r)) * state_doubles(r) + 2 * s + 3 * (size_t)r->dk +
           4 * (size_t)r->dv;
}

static void add(float *at, double x) { *at = (float)((double)*at + x); }

/* The gradients of row i of head h: of q, and what they add to those of the state and the key. */
static void output_grad(struct reverse *v, int i, int h, const struct state *after,
                        const struct state *prior)
{
    const struct recur *r = v->r;
    const ptrdiff_t at = ((ptrdiff_t)v->b * r->L + i) * r->H + h;
    const float *const d_o = v->d->d_o + at * r->dv, *const o = r->o + at * r->dv;
    const float *const value = recur_at(&r->v, v->b, r->M + i, v->hs);
    const struct state *const s = r->u ? prior : after;
    const double n = r->norm ? dot_z(r, v->b, i, h, s) : 0, den = divisor(r, n, s->m);
    double d_n = 0, e = 0;
    const double now = bonus(r, v->b, i, h, v->hs);

    for (int c = 0; c < r->dv; c++) {
        d_n -= (double)d_o[c] * (double)o[c] / den;
        e += (double)d_o[c] * (double)value[c];
        if (r->u)
            v->dv[c] += now * (double)d_o[c];
    }
    if (r->norm == RECUR_MLSTM)
        d_n = fabs(n) > least(r, s->m) ? copysign(d_n, d_n * n) : 0;
    for (int x = 0; x < r->dk; x++) {
        const double q = query(r, v->b, i, h, x), kx = key(r, v->b, r->M + i, v->hs, x);
        double *const to = (r->u ? v->before : v->d_S) + (ptrdiff_t)x * r->dv;
        double dq = 0;
        for (int c = 0; c < r->dv; c++) {
            dq += s->S[x * r->dv + c] * (double)d_o[c] / den;
            to[c] += q * (double)d_o[c] / den;
        }
        if (r->norm) {
            dq += d_n * s->z[x];
            v->dz[x] += d_n * q;
        }
        if (r->u) {
            const double u = (double)r->u[h * r->dk + x];
            dq += e * u * kx;
            v->dk[x] += e * u * q;
            if (v->d->d_u)
                add(&v->d->d_u[h * r->dk + x], e * q * kx);
        }
        if (v->d->d_q)
            add(recur_grad_at(v->d->d_q, &r->q, v->b, i, h) + x, (double)r->scale * dq);
    }
}

/* Back over the erase of key t: d of beta, a, b and v, and what d_S becomes. */
static void erase_grad(struct reverse *v, int t, const struct state *prior)
{
    const struct recur *r = v->r;
    const struct recur_grad *d = v->d;
    const float *const value = recur_at(&r->v, v->b, t, v->hs);
    double d_beta = 0;

    for (int c = 0; c < r->dv; c++) {
        double sum = 0;
        for (int x = 0; x < r->dk; x++)
            sum += v->d_S[x * r->dv + c] * (r->a.at ? (double)recur_at(&r->b, v->b, t, v->hs)[x]
                                                    : key(r, v->b, t, v->hs, x));
        v->row[c] = sum; /* d_S^T k, or dx = d_S^T b */
    }
    if (r->beta.at) {
        for (int c = 0; c < r->dv; c++) {
            d_beta += v->row[c] * ((double)value[c] - v->k.x[c]);
            v->row[c] *= v->k.beta;
            v->dv[c] += v->row[c];
        }
        for (int x = 0; x < r->dk; x++) {
            const double kx = key(r, v->b, t, v->hs, x);
            double sum = 0;
            for (int c = 0; c < r->dv; c++) {
                double *const d_S = &v->d_S[x * r->dv + c];
                sum += v->k.beta * *d_S * ((double)value[c] - v->k.x[c]) -
                       v->k.w[x] * prior->S[x * r->dv + c] * v->row[c];
                *d_S -= kx * v->row[c];
            }
            v->dk[x] += sum;
        }
        if (d->d_beta)
            add(recur_grad_at(d->d_beta, &r->beta, v->b, t, v->hs), d_beta);
        return;
    }
    for (int x = 0; x < r->dk; x++) {
        const double a = (double)recur_at(&r->a, v->b, t, v->hs)[x];
        double d_a = 0, d_b = 0;
        for (int c = 0; c < r->dv; c++) {
            d_a += prior->S[x * r->dv + c] * v->row[c];
            d_b += v->d_S[x * r->dv + c] * v->k.x[c];
            v->before[x * r->dv + c] += a * v->row[c];
        }
        if (d->d_a)
            add(recur_grad_at(d->d_a, &r->a, v->b, t, v->hs) + x, d_a);
        if (d->d_b)
            add(recur_grad_at(d->d_b, &r->b, v->b, t, v->hs) + x, d_b);
    }
}

/* The write k v^T of key t and of z. */
static void write_grad(struct reverse *v, int t)
{
    const struct recur *r = v->r;
    const float *const value = recur_at(&r->v, v->b, t, v->hs);
    double d_i = 0;

    for (int x = 0; x < r->dk; x++) {
        const double kx = key(r, v->b, t, v->hs, x);
        double sum = r->norm ? v->dz[x] : 0;
        for (int c = 0; c < r->dv; c++) {
            sum += v->d_S[x * r->dv + c] * (double)value[c];
            v->dv[c] += v->k.write * v->d_S[x * r->dv + c] * kx;
        }
        v->dk[x] += v->k.write * sum;
        d_i += v->k.write * sum * kx;
    }
    if (v->d->d_i)
        add(recur_grad_at(v->d->d_i, &r->i, v->b, t, v->hs), d_i);
}

/* From the gradient of S' to that of the state before the key. */
static void decay_grad(struct reverse *v, int t, const struct state *prior)
{
    const struct recur *r = v->r;
    float *const d_g = v->d->d_g ? recur_grad_at(v->d->d_g, &r->g, v->b, t, v->hs) : NULL;

    for (int x = 0; x < r->dk; x++) {
        double sum = r->norm ? v->dz[x] * v->k.w[x] * prior->z[x] : 0;
        for (int c = 0; c < r->dv; c++) {
            double *const d_S = &v->d_S[x * r->dv + c];
            sum += *d_S * v->k.w[x] * prior->S[x * r->dv + c];
            *d_S = v->k.w[x] * *d_S + v->before[x * r->dv + c];
        }
        v->dz[x] *= v->k.w[x];
        if (d_g && r->g_width > 0)
            add(d_g + (r->g_width == 1 ? 0 : x), sum);
    }
}

static void key_grad(struct reverse *v, int t, const struct state *prior, const struct state *after)
{
    const struct recur *r = v->r;
    const int n = r->H / r->Hs;

    memset(v->before, 0, (size_t)r->dk * (size_t)r->dv * sizeof(double));
    memset(v->dk, 0, (size_t)r->dk * sizeof(double));
    memset(v->dv, 0, (size_t)r->dv * sizeof(double));
    for (int h = v->hs * n; t >= r->M && h < (v->hs + 1) * n; h++)
        output_grad(v, t - r->M, h, after, prior);
    weigh(r, v->b, t, v->hs, prior, &v->k);
    if (r->beta.at) {
        read_state(r, prior, v->k.w, r->k.at ? recur_at(&r->k, v->b, t, v->hs) : NULL, v->k.x);
        erase_grad(v, t, prior);
    } else {
        if (r->a.at) {
            read_state(r, prior, NULL, recur_at(&r->a, v->b, t, v->hs), v->k.x);
            erase_grad(v, t, prior);
        }
        write_grad(v, t);
    }
    for (int x = 0; v->d->d_k && x < r->dk; x++)
        add(recur_grad_at(v->d->d_k, &r->k, v->b, t, v->hs) + x, v->dk[x]);
    for (int c = 0; v->d->d_v && c < r->dv; c++)
        add(recur_grad_at(v->d->d_v, &r->v, v->b, t, v->hs) + c, v->dv[c]);
    decay_grad(v, t, prior);
}

/* One sequence and state head. */
static void reverse(const struct recur *r, const struct recur_grad *d, int b, int hs, double *room)
{
    const int K = r->M + r->L;
    const size_t n = state_doubles(r), s = (size_t)r->dk * (size_t)r->dv;
    struct reverse v = {.r = r, .d = d, .b = b, .hs = hs};
    double *at = room + n * blocks_of(r);
    const ptrdiff_t state = recur_state(r, b, hs) * (ptrdiff_t)s;

    for (int i = 0; i <= BLOCK; i++, at += n)
        v.kept[i] = state_in(r, at);
    v.d_S = at;
    v.before = v.d_S + s;
    v.dz = v.before + s;
    v.dk = v.dz + r->dk;
    v.k.w = v.dk + r->dk;
    v.dv = v.k.w + r->dk;
    v.row = v.dv + r->dv;
    v.k.x = v.row + r->dv;
    v.k.v = v.k.x + r->dv;

    struct state now = v.kept[0];
    begin(r, b, hs, &now);
    for (int t = 0; t < K; t++) {
        if (t % BLOCK == 0) {
            struct state to = state_in(r, room + n * (size_t)(t / BLOCK));
            copy(r, &to, &now);
            room[n * (size_t)(t / BLOCK) + n - 1] = to.m;
        }
        step(r, b, t, hs, &now, &v.k);
    }
    for (size_t e = 0; e < s; e++)
        v.d_S[e] = d->d_s1 ? (double)d->d_s1[state + (ptrdiff_t)e] : 0;
    memset(v.dz, 0, (size_t)r->dk * sizeof(double));
    for (int first = K > 0 ? (K - 1) / BLOCK * BLOCK : -1; first >= 0; first -= BLOCK) {
        const int last = first + BLOCK < K ? first + BLOCK : K;
        struct state from = state_in(r, room + n * (size_t)(first / BLOCK));
        from.m = room[n * (size_t)(first / BLOCK) + n - 1];
        copy(r, &v.kept[0], &from);
        for (int t = first; t < last; t++) {
            copy(r, &v.kept[t - first + 1], &v.kept[t - first]);
            step(r, b, t, hs, &v.kept[t - first + 1], &v.k);
        }
        for (int t = last - 1; t >= first; t--)
            key_grad(&v, t, &v.kept[t - first], &v.kept[t - first + 1]);
    }
    for (size_t e = 0; d->d_s0 && e < s; e++)
        d->d_s0[state + (ptrdiff_t)e] = (float)v.d_S[e];
    for (int x = 0; d->d_z0 && x < r->dk; x++)
        d->d_z0[recur_state(r, b, hs) * r->dk + x] = (float)v.dz[x];
}

static void backward(const struct engine *g, const struct recur *r, const struct recur_grad *d,
                     void *scratch)
{
    const size_t doubles = backward_doubles(r);
    const int parts = recur_parts(r, d);

    recur_clear(r, d);
#pragma omp parallel for num_threads(g->threads) schedule(static)
    for (int i = 0; i < parts; i++) {
        const struct recur_part p = recur_part(r, d, i);
        for (int b = p.b0; b < p.b1; b++)
            for (int hs = p.h0; hs < p.h1; hs++)
                reverse(r, d, b, hs, (double *)scratch + doubles * (size_t)omp_get_thread_num());
    }
}

static bool accepts(const struct recur *r, bool backward) { return true; }

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (backward ? backward_doubles(r) : forward_doubles(r)) * sizeof(double) * (size_t)threads;
}

const struct recur_impl recur_ref = {"ref", accepts, need, forward, backward};
