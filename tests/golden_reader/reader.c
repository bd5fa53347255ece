/* SPDX-License-Identifier: MIT
 *
 * Sizes and arrays of single parts. */
#include "reader.h"

enum status golden_part(struct run *r, const struct variant *v, const char *sizes, struct err *e)
{
    static const struct {
        char letter;
        const char *key;
    } keys[] = {{'D', "d_model"}, {'H', "n_head"}, {'d', "d_head"}, {'F', "d_inner"}};
    int size[ARRAY_LEN(keys)] = {0};
    double scale = 1;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strchr(sizes, keys[i].letter))
            TRY(golden_size(r, keys[i].key, GOLDEN_WIDE, &size[i], e));
    const int D = size[0], H = max_int(size[1], 1);
    r->c = config_default(v ? v : variants[0], D, H, size[2] ? size[2] : D, size[3] ? size[3] : D,
                          1, 0);
    if (!v)
        r->c.pos = pos_find("none");
    if (size[1]) {
        TRY(safetensors_real(r->s, "scale", 1, &scale, e));
        r->c.scale = (float)scale;
    }
    return golden_extent(r, e);
}

enum status golden_eps(struct run *r, struct err *e)
{
    double eps = 0;
    const enum status st = safetensors_real(r->s, "ln_eps", 1e-5, &eps, e);

    r->c.ln_eps = (float)eps;
    return st;
}

void params_rename(struct params *p, int first, const char *from, const char *to)
{
    for (int i = first; i < p->n; i++) {
        char *const name = p->v[i].name, *const at = strstr(name, from);
        char now[sizeof(p->v[i].name)];
        if (!at)
            continue;
        const int n =
            snprintf(now, sizeof(now), "%.*s%s%s", (int)(at - name), name, to, at + strlen(from));
        CHECK(n > 0 && (size_t)n < sizeof(now));
        memcpy(name, now, sizeof(now));
    }
}

void golden_bind_part(struct run *r, size_t n)
{
    params_place(&r->params, &r->arena);
    params_place_grad(&r->params, &r->arena);
    r->y = arena_f32(&r->arena, PART_ACTIVATIONS, n);
    r->d_x = arena_f32(&r->arena, PART_ACTIVATIONS, r->x->n);
}
