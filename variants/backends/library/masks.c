/* SPDX-License-Identifier: MIT
 *
 * Masks of the caller become those of the kernels. */
#include "fields.h"
#include "inner.h"

static enum status take_mask(struct mask *m, const struct ba_mask *from, struct err *e)
{
    struct ba_mask given, *const x = &given;

    TRY(take_struct(x, sizeof(*x), FIRST_SIZE(struct ba_mask, rows), from, "ba_mask", e));
    const struct number numbers[] = {
        {"window of a mask", x->window, 0, LIMIT_LENGTH},
        {"dilation of a mask", x->dilation, 0, x->window ? LIMIT_LENGTH : 0},
        {"block of a mask", x->block, 0, LIMIT_LENGTH},
        {"back of a mask", x->back, 0, x->block ? LIMIT_LENGTH : 0},
        {"memory of a mask", x->memory, 0, x->block ? LIMIT_LENGTH : 0},
        {"stride of a mask", x->stride, 0, LIMIT_LENGTH},
        {"fixed of a mask", x->fixed, 0, LIMIT_LENGTH},
        {"summary of a mask", x->summary, 0, x->fixed},
        {"global of a mask", x->global, 0, LIMIT_LENGTH},
        {"n_random of a mask", x->n_random, 0, x->block ? LIMIT_WIDTH : 0},
        {"random_blocks of a mask", x->random_blocks, 0, x->n_random ? LIMIT_LENGTH : 0},
        {"random_from of a mask", x->random_from, 0, INT64_MAX / 8},
        {"row_words of a mask", x->row_words, 0, x->rows ? LIMIT_LENGTH : 0},
        {"rect_rows of a mask", x->rect_rows, x->rect ? 1 : 0, x->rect ? LIMIT_LENGTH : 0},
        {"rect of a mask", x->rect, 0, LIMIT_LENGTH},
        {"row of a mask", x->row, x->rect, x->rect ? LIMIT_LENGTH : 0},
        {"margin_rows of a mask", x->margin_rows, 0, x->rect ? LIMIT_LENGTH : 0},
        {"margin of a mask", x->margin, 0, x->rect ? LIMIT_LENGTH : 0},
        {"reserved of a mask", x->reserved, 0, 0},
    };
    const bool rules = x->window || x->block || x->stride || x->fixed || x->global || x->rect;
    const struct pointer pointers[] = {
        {x->n_random && !x->random, x->random && !x->n_random, "random", " of a mask, by n_random"},
        {.needless = x->rows && rules, .name = "rows", .why = " of a mask and rules contradict"},
    };
    TRY(check_numbers(numbers, ARRAY_LEN(numbers), e));
    TRY(check_pointers(pointers, ARRAY_LEN(pointers), e));
    if (x->rect && x->row % x->rect)
        return fail(e, E_USAGE, "row of a mask is %d, rect %d  -> use a multiple of rect", x->row,
                    x->rect);
    *m = (struct mask){SAME_IN_MASK(SAME)};
    return OK;
}

enum status take_masks(struct ba_engine *engine, const struct ba_attention *a, struct err *e)
{
    const size_t step = a->n_masks > 0 ? a->masks->size : 0;

    for (int i = 0; i < a->n_masks; i++) {
        const struct ba_mask *const at = (const void *)((const char *)a->masks + step * (size_t)i);
        TRY(take_mask(&engine->masks[i], at, e));
        if (at->size != step)
            return fail(e, E_USAGE, "masks have different sizes  -> set them to one sizeof");
        if (at->rows && a->base != 0)
            return fail(e, E_USAGE, "base is %td, with rows of a mask  -> use 0", a->base);
    }
    for (int h = 0; a->mask_of_head && h < a->H; h++)
        if (a->mask_of_head[h] >= a->n_masks)
            return fail(e, E_USAGE, "mask_of_head[%d] is %d of %d masks  -> name one of them", h,
                        a->mask_of_head[h], a->n_masks);
    return OK;
}

enum status check_mask_rows(const struct attn *a, int n_masks, struct err *e)
{
    const int64_t last = (int64_t)(attn_keys(a) - 1) * (a->q_step ? a->k_step : 1);

    for (int i = 0; i < n_masks; i++)
        if (a->mask[i].rows && last / 64 >= a->mask[i].row_words)
            return fail(e, E_USAGE, "row_words of a mask is %d  -> %lld cover all keys",
                        a->mask[i].row_words, (long long)last / 64 + 1);
    return OK;
}
