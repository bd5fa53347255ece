/* SPDX-License-Identifier: MIT
 *
 * Files of weights and what is read from them, in memory that is kept until the test ends. What
 * work space begins with: model.h. */
#pragma once

#include "failure.h"
#include "variants/model/import/weights.h"

/* The tensors of a file. */
static inline struct safetensors tensors_of(const char *path)
{
    struct safetensors s;

    MUST(safetensors_open(&s, path, &failure));
    kept_copy(&s, sizeof(s));
    return s;
}

/* Memory for parameters that are declared. */
static inline void place_params(struct params *p)
{
    struct arena a = {0};

    params_place(p, &a);
    MUST(arena_place(&a, HUGE_NEVER, NULL, NULL, &failure));
    params_place(p, &a);
    kept_copy(p, sizeof(*p));
}

/* A model with memory for its parameters alone. */
static inline void place_model(struct lm *m, const struct config *c)
{
    MUST(lm_init(m, c, &failure));
    place_params(&m->params);
    kept_copy(m, sizeof(*m));
}

/* Such a model with the weights of a file. */
static inline void load_model(struct lm *m, const char *path)
{
    struct weights w;

    MUST(weights_open(&w, path, &failure));
    place_model(m, &w.config);
    MUST(weights_load(&w, &m->params, &failure));
    weights_close(&w);
}

/* A model that the reference can run, in the types of its config. */
static inline void bind_model(struct lm *m, struct engine *g, const struct config *c,
                              enum mem_kind kind, struct extent max)
{
    struct arena a = {0};

    MUST(engine_open(g, "ref", 1, NULL, &failure));
    MUST(lm_init(m, c, &failure));
    MUST(params_hold(&m->params, c->dtype, c->act_dtype, g, &failure));
    for (int pass = 0; pass < 2; pass++) {
        MUST(lm_bind(m, g, kind, max, &a, &failure));
        if (pass == 0)
            MUST(arena_place(&a, HUGE_NEVER, NULL, NULL, &failure));
    }
    kept_copy(m, sizeof(*m));
}
