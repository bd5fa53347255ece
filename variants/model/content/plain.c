/* SPDX-License-Identifier: MIT
 *
 * Attention row by row. */
#include "plain.h"

double plain_probs(const struct plain_row *r)
{
    const struct attn *const a = r->a;
    const float *const q = content_q(a, r->b, r->h, r->i);
    double most = -INFINITY, sum = 0;

    for (int x = 0; x < r->n; x++) {
        r->p[x] = (double)a->scale * content_dot(q, content_k(a, r->b, r->h, r->keys[x]), a->dh) +
                  (r->add ? r->add[x] : 0);
        most = fmax(most, r->p[x]);
    }
    for (int x = 0; x < r->n; x++)
        sum += r->p[x] = exp(r->p[x] - most);
    for (int x = 0; x < r->n; x++)
        r->p[x] /= sum;
    return r->n ? most + log(sum) : -INFINITY;
}

void plain_output(const struct plain_row *r, double by, float *o)
{
    for (int x = 0; x < r->n; x++)
        add_in_lanes(o, (float)(by * r->p[x]), content_v(r->a, r->b, r->h, r->keys[x]), r->a->dh);
}

void plain_grad(const struct plain_row *r, double by, const float *d_o, double d_lse,
                const struct attn_grad *d)
{
    const struct attn *const a = r->a;
    const float *const q = content_q(a, r->b, r->h, r->i);
    double delta = 0;

    for (int x = 0; x < r->n; x++)
        delta += by * r->p[x] * content_dot(d_o, content_v(a, r->b, r->h, r->keys[x]), a->dh);
    for (int x = 0; x < r->n; x++) {
        const float *const k = content_k(a, r->b, r->h, r->keys[x]);
        const float *const v = content_v(a, r->b, r->h, r->keys[x]);
        const double dp = by * content_dot(d_o, v, a->dh) - delta + d_lse;
        const float G = (float)((double)a->scale * r->p[x] * dp);
        add_in_lanes(d->d_v + (v - a->v), (float)(by * r->p[x]), d_o, a->dh);
        add_in_lanes(d->d_q + (q - a->q), G, k, a->dh);
        add_in_lanes(d->d_k + (k - a->k), G, q, a->dh);
    }
}
