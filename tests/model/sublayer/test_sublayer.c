/* SPDX-License-Identifier: MIT
 *
 * The sub-layers of one layer against the equations written out in double: every variant, wiring
 * and gate, every kind of memory, on every usable backend. */
#include "tests/support/alone.h"
#include "tests/support/by_hand.h"

enum { B = 2, L = 7, M = 9, K = L + M };

static void open_layer(struct alone *y, const struct config *c, const char *backend,
                       enum mem_kind kind)
{
    *y = (struct alone){.g = open_engine(backend, 1), .c = *c, .max = {B, L, M}, .kind = kind};
    if (kind == MEM_RECOMPUTE)
        y->max = (struct extent){B, K, 0};
    if (c->pos->model_params)
        c->pos->model_params(c, &y->p);
    sublayers_init(&y->list, &y->c, &y->p, 0);
    alone_place(y);
    const struct param *const alpha = params_find(&y->p, "layers.0.alpha");
    if (alpha) /* starts near 0, where f would hardly count */
        *alpha->data = 0.75f;
    if (c->pos->pos_encoding)
        c->pos->pos_encoding(c, 0, K, y->list.pos_encoding);
    sublayers_build_tables(&y->list, &y->g);
}

/* z [B,L,D] from rows [B,K,D]; memory arrives in two pieces, or is run with the segment. */
static void run_layer(struct alone *y, enum mem_kind kind, const float *rows, float *z)
{
    const int D = y->list.at->c->D, fresh = kind == MEM_RECOMPUTE ? K : L;
    float *x = normals((size_t)(B * K * D), "piece", 0, 1);

    for (int done = 0; kind != MEM_RECOMPUTE && done < M; done += 5) {
        const int n = min_int(5, M - done);
        for (int b = 0; b < B; b++)
            memcpy(x + b * n * D, rows + (b * K + done) * D, sizeof(float) * (size_t)(n * D));
        const int at = sublayers_remembering(&y->list, 0);
        sublayer_remember(&y->g, &y->list.at[at], &y->list.work[at], x, B, n);
    }
    for (int b = 0; b < B; b++)
        memcpy(x + b * fresh * D, rows + (b * K + K - fresh) * D,
               sizeof(float) * (size_t)(fresh * D));
    float *const out = normals((size_t)(B * K * D), "out", 0, 1);
    sublayers_forward(&y->list, &y->g, out, x, B, fresh);
    for (int b = 0; b < B; b++)
        memcpy(z + b * L * D, out + (b * fresh + fresh - L) * D, sizeof(float) * (size_t)(L * D));
}

static void check_layer(const struct config *c, const char *backend, enum mem_kind kind)
{
    const int D = c->D;
    struct alone y;
    float *rows = normals((size_t)(B * K * D), "rows", 0, 1), got[B * L * 16], want[B * L * 16];

    cr_assert_leq(D, 16);
    open_layer(&y, c, backend, kind);
    run_layer(&y, kind, rows, got);
    for (int b = 0; b < B; b++) {
        double *in = floats(rows + b * K * D, K * D);
        double *z = by_hand(&(struct layer){c, &y.p, L, M}, in, kind == MEM_RECOMPUTE);
        to_floats(want + b * L * D, z, L * D);
    }
    const double error = case_error(got, want, (size_t)(B * L * D));
    cr_expect(error < 1.0, "%s, %s, norm %s, gate %s, %s, window %d, clamp %d: %.3g x its limit",
              backend, c->variant->name, wiring_name[c->wiring], c->gate ? c->gate->name : "none",
              mem_kind_name[kind], c->window, c->clamp_len, error);
}

EACH_FORM(sublayer, is_its_equations, false)
{
    const struct config first = wired(w, 0);

    if (!by_hand_knows(&first)) /* other schemes have tests of their own */
        return;
    for (int i = 0; backends[i]; i++)
        for (int turn = 0; turn < 4; turn++) {
            struct config c = wired(w, turn);
            c.N = 1;
            if (*c.order)
                strcpy(c.order, "sf");
            c.clamp_len = turn == 1 ? 4 : 0;
            c.window = turn == 2 ? 6 : 0;
            if (backend_usable(backends[i], NULL) != OK)
                continue;
            check_layer(&c, backends[i]->name,
                        !variant_mem(c.variant)->recurrent ? MEM_RECOMPUTE
                        : turn % 2                         ? MEM_KV
                                                           : MEM_HIDDEN);
        }
}
