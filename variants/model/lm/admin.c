/* SPDX-License-Identifier: MIT
 *
 * The pass that sets omega: admin.h. Sub-layers measure themselves (sublayer.profiled). */
#include "admin.h"
#include "encoder.h"

static void fill(const struct param *omega, float value)
{
    for (size_t i = 0; i < omega->n; i++)
        omega->data[i] = value;
}

/* Sub-layers that repeat others have the same omega, which is that of their first run. */
static void begin(const struct sublayers *s)
{
    for (int i = 0; i < s->once; i++) {
        fill(s->at[i].omega, 1);
        s->at[i].profiled = true;
    }
}

static void end(const struct sublayers *s, const struct engine *g)
{
    double sum = 0;

    for (int i = 0; i < s->once; i++) {
        struct sublayer *const t = &s->at[i];
        double m[] = {t->of_f.mean, t->of_f.square};
        if (i > 0)
            fill(t->omega, (float)sqrt(sum));
        if (g->mean)
            g->mean(g->mean_arg, m, 2);
        const double variance = m[1] - m[0] * m[0];
        sum += variance < 0 ? 0 : variance; /* rounding */
        t->profiled = false;
    }
}

void admin_profile(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L)
{
    const struct sublayers *const encoder = encoder_layers(m);

    if (!admin_profiles(m))
        return;
    begin(&m->sublayers);
    if (encoder)
        begin(encoder);
    lm_forward(m, g, tokens, B, L, L, NULL, NULL);
    end(&m->sublayers, g);
    if (encoder)
        end(encoder, g);
}
