/* SPDX-License-Identifier: MIT
 *
 * What the readers of all kinds of golden files take from metadata and inputs: sizes, the model, its
 * first inputs. */
#include "golden.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/config/settings.h"

bool golden_says_nothing(const char *text)
{
    return !*text || strcmp(text, "0") == 0 || strcmp(text, "none") == 0;
}

const struct tensor *golden_need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e)
{
    const struct tensor *t = safetensors_find(r->s, name);

    if (*st == OK && (!t || t->dtype != dtype || t->n != n))
        *st = safetensors_fail(r->s, e, "tensor \"%s\" is missing or does not fit its metadata",
                               name);
    return *st == OK ? t : NULL;
}

enum status golden_whole(const struct run *r, const char *key, int *out, struct err *e)
{
    return safetensors_int(r->s, key, 0, 0, GOLDEN_WIDE, out, e);
}

enum status golden_size(const struct run *r, const char *key, int most, int *out, struct err *e)
{
    if (!safetensors_meta(r->s, key))
        return safetensors_fail(r->s, e, "metadata %s is missing  -> add a whole number in 1..%d",
                                key, most);
    return safetensors_int(r->s, key, 0, 1, most, out, e);
}

const struct variant *golden_variant(struct run *r)
{
    return checkpoint_variant(r->s, &r->variant);
}

/* Where norms and sums stand, under two keys that must agree: `norm`, which is none where there is
 * no choice, and `wiring`. */
static enum status golden_wiring(struct run *r, struct err *e)
{
    const char *const wiring = safetensors_meta(r->s, "wiring");
    const char *const norm = safetensors_meta(r->s, "norm");
    struct err why;

    if (!wiring || golden_says_nothing(wiring))
        return OK;
    if (norm && !golden_says_nothing(norm) && strcmp(norm, wiring) != 0)
        return safetensors_fail(
            r->s, e, "metadata wiring is \"%.64s\", norm \"%.64s\"  -> the same", wiring, norm);
    if (config_set(&r->c, "norm", wiring, &why) != OK)
        return safetensors_fail(r->s, e, "metadata wiring: %s", why.msg);
    return checkpoint_check(r->s, &r->c, e);
}

enum status golden_norm_mode(struct run *r, struct err *e)
{
    const char *const mode = safetensors_meta(r->s, "pn_mode");

    if (!mode || strcmp(mode, "train") == 0)
        return OK;
    if (strcmp(mode, "eval") != 0 || safetensors_find(r->s, "in.nu"))
        return safetensors_fail(r->s, e, "pn_mode \"%.64s\"%s  -> train, or eval without in.nu",
                                mode, strcmp(mode, "eval") == 0 ? " with in.nu" : "");
    return config_set(&r->c, "pn_backward", "paper", e); /* the derivative, where nu is 0 */
}

enum status golden_config(struct run *r, struct err *e)
{
    TRY(checkpoint_config_as(r->s, "param.", golden_variant(r), &r->c, e));
    TRY(golden_wiring(r, e));
    return golden_norm_mode(r, e);
}

enum status golden_mask_random(struct run *r, int tokens, struct err *e)
{
    struct masks *const masks = &r->c.masks;

    for (int k = 0; k < masks->n; k++) {
        struct mask *const m = &masks->at[k];
        const struct tensor *const t =
            m->n_random ? safetensors_find(r->s, "in.mask_random") : NULL;
        if (!t)
            continue;
        if (t->dtype != DTYPE_I32 || t->rank != 2 || t->shape[1] != m->n_random ||
            t->shape[0] * (int64_t)m->block < tokens)
            return safetensors_fail(r->s, e, "in.mask_random does not fit masks and lengths");
        m->random = t->data;
        m->random_blocks = t->shape[0];
    }
    return OK;
}

enum status golden_rows(const struct run *r, struct err *e)
{
    const struct extent m = r->max;

    if (m.L > GOLDEN_WIDE || m.M > GOLDEN_WIDE || (int64_t)m.B * (m.L + m.M) > GOLDEN_ROWS)
        return safetensors_fail(r->s, e,
                                "batch %d, seq %d, mem %d  -> use at most %d tokens in all", m.B,
                                m.L, m.M, (int)GOLDEN_ROWS);
    return OK;
}

enum status golden_few(const struct run *r, double numbers, struct err *e)
{
    if (numbers > GOLDEN_NUMBERS)
        return safetensors_fail(
            r->s, e, "its sizes need arrays of %g numbers  -> lower them until %d are enough",
            numbers, (int)GOLDEN_NUMBERS);
    return OK;
}

enum status golden_extent(struct run *r, struct err *e)
{
    TRY(golden_size(r, "batch", GOLDEN_WIDE, &r->max.B, e));
    TRY(golden_size(r, "seq", GOLDEN_WIDE, &r->max.L, e));
    TRY(golden_whole(r, "mem", &r->max.M, e));
    return golden_rows(r, e);
}

enum status golden_inputs(struct run *r, int width, struct err *e)
{
    const size_t rows = (size_t)r->max.B * (size_t)r->max.L, D = (size_t)r->c.D;
    enum status st = OK;

    r->n_y = rows * (size_t)width;
    r->x = golden_need(r, "in.x", DTYPE_F32, rows * D, &st, e);
    if (r->max.M && !r->mem)
        r->mem =
            golden_need(r, "in.mem", DTYPE_F32, (size_t)r->max.B * (size_t)r->max.M * D, &st, e);
    if (r->grad)
        r->dy = golden_need(r, "in.dy", DTYPE_F32, r->n_y, &st, e);
    return st;
}
