/* SPDX-License-Identifier: MIT
 *
 * The sizes of collaborative heads as numbers of their own. */
#include "collab.h"

enum { WIDEST = 1 << 20 };

static const struct choice collab_choices[] = {
    ROW_INT(struct collab, dk, "dk", 1, WIDEST,
            "coordinates of the queries and keys that heads share", .setting = true,
            .zero_is_absent = true),
    ROW_FLAG(struct collab, content_bias, "content_bias",
             "1: scores have a part of the key's row alone", .setting = true, .absent = "0"),
    {0},
};

/* As many coordinates by default. */
static int collab_usual_dk(int H, int dh) { return max_int(1, H * dh / 2); }

static void usual(const struct config *c, void *numbers)
{
    *(struct collab *)numbers = (struct collab){.dk = collab_usual_dk(c->H, c->dh)};
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct collab *const l = numbers;
    const char *const name = c->variant->name;

    if ((int64_t)c->H * l->dk > WIDEST)
        return fail(e, E_USAGE, "%s: %d heads of dk %d are too wide  -> use at most %d together",
                    name, c->H, l->dk, WIDEST);
    return OK;
}

const struct part_numbers collab_numbers = {collab_choices, .size = NUMBERS_SIZE(struct collab),
                                            .check = check, .usual = usual};
