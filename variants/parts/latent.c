/* SPDX-License-Identifier: MIT
 *
 * The sizes of latent attention as numbers of its own. */
#include "latent.h"

const char *const mla_form_name[MLA_FORMS + 1] = {"expanded", "absorbed", NULL};

enum { WIDEST = 1 << 20 };

static const struct choice latent_choices[] = {
    ROW_INT(struct latent, nope, "d_nope", 1, WIDEST,
            "coordinates of a query and a key that are not rotated", .setting = true,
            .zero_is_absent = true),
    ROW_INT(struct latent, rope, "d_rope", 2, WIDEST,
            "coordinates of a query and a key that are rotated", .setting = true,
            .zero_is_absent = true),
    ROW_INT(struct latent, rank, "kv_rank", 1, WIDEST, "width of a latent", .setting = true,
            .zero_is_absent = true),
    ROW_INT(struct latent, q_rank, "q_rank", 0, WIDEST,
            "width that queries are compressed to, 0 = not", .setting = true, .absent = "0",
            .tiny = "0|0|4|4"),
    {0},
};

int latent_rope(int dh) { return 2 * max_int(1, dh / 6); }

static void usual(const struct config *c, void *numbers)
{
    const int rope = latent_rope(c->dh);

    *(struct latent *)numbers =
        (struct latent){.nope = c->dh - rope, .rope = rope, .rank = max_int(1, c->D / 2)};
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct latent *const l = numbers;
    const char *const name = c->variant->name;

    if (l->nope + l->rope != c->dh)
        return fail(
            e, E_USAGE,
            "%s: d_nope %d and d_rope %d of a head of width %d  -> use --d-head %d, or others",
            name, l->nope, l->rope, c->dh, l->nope + l->rope);
    if (c->dv == 0 && c->variant->d_value) /* files leave 0 out, which is the usual width there */
        return fail(e, E_USAGE, "%s: d_value 0 is not a width  -> use --set d_value=%d, or another",
                    name, c->variant->d_value(c->D, c->H, c->dh));
    if ((int64_t)c->H * (l->rank + l->rope) > WIDEST ||
        (int64_t)c->H * (l->nope + (int64_t)config_dv(c)) > WIDEST)
        return fail(e, E_USAGE,
                    "%s: %d heads of kv_rank %d or d_nope %d are too wide  -> use fewer", name,
                    c->H, l->rank, l->nope);
    return OK;
}

const struct part_numbers latent_numbers = {latent_choices, .size = NUMBERS_SIZE(struct latent),
                                            .check = check, .usual = usual};
