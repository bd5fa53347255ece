/* SPDX-License-Identifier: MIT
 *
 * Perplexity against its cost, in time and in bytes. */
#include "figure.h"

/* Does the column differ among the rows of the checkpoint? */
static bool differs(const struct column *c, const struct perplexity_row *row,
                    const struct plot_data *d)
{
    const struct perplexity_row *const v = d->table[TABLE_PERPLEXITY].row;

    for (size_t i = 0; i < d->table[TABLE_PERPLEXITY].n; i++)
        if (strcmp(v[i].checkpoint, row->checkpoint) == 0 &&
            strcmp(v[i].variant, row->variant) == 0 && !plot_same_value(c, &v[i], row))
            return true;
    return false;
}

/* What the checkpoint was scored with, after the context length, or alone if that is the same. */
static void name_tuned(struct plot_point *p, const struct perplexity_row *row,
                       const struct plot_data *d)
{
    const struct table *const t = &tables[TABLE_PERPLEXITY];
    char text[PLOT_TEXT] = "", num[NUMBER_SIZE];

    for (int i = 0; i < t->n; i++)
        if (plot_role(t, &t->columns[i]) == ROLE_TUNED && differs(&t->columns[i], row, d))
            text_join(text, sizeof(text), " ", row_field(t, i, row, num));
    if (*text && !differs(plot_column(t, "mem_tokens"), row, d))
        p->label[0] = '\0';
    text_join(p->label, PLOT_TEXT, ", ", text);
}

bool perplexity_time(struct plot_point *p, const void *row, const struct plot_data *d)
{
    const struct perplexity_row *const r = row;

    name_tuned(p, r, d);
    p->x = 1e6 / r->tokens_per_s;
    return r->tokens_per_s > 0;
}

/* Of the model with the same choices and shape, in the same run: the value of the row with the same
 * threads, else the value that all other rows agree on. */
bool perplexity_bytes(struct plot_point *p, const void *row, const struct plot_data *d)
{
    const struct perplexity_row *const r = row;
    const struct memory_row *const v = d->table[TABLE_MEMORY].row;
    double found = NAN;
    bool agreed = true;

    for (size_t i = 0; i < d->table[TABLE_MEMORY].n; i++) {
        const struct memory_row *const m = &v[i];
        const double bytes = (double)m->arena_peak_bytes;
        if (strcmp(m->status, row_status_name[ROW_OK]) != 0 || m->arena_peak_bytes == I64_EMPTY ||
            strcmp(m->variant, r->variant) != 0 || strcmp(m->backend, r->backend) != 0 ||
            !plot_same(m, r, ROLE_TASK | ROLE_SIZE | ROLE_MEMORY | ROLE_MODEL))
            continue;
        if (m->threads == r->threads) {
            p->x = bytes;
            return true;
        }
        agreed = agreed && (isnan(found) || found == bytes);
        found = bytes;
    }
    p->x = found;
    return agreed;
}

/* The points that no other point of their panel beats in both, again, as kind 1. */
void perplexity_front(struct plot *p, const struct plot_data *d)
{
    const int n = p->n;

    for (int i = 0; i < n; i++) {
        struct plot_point a = p->point[i];
        bool beaten = false;
        for (int k = 0; k < n && !beaten; k++) {
            const struct plot_point *const b = &p->point[k];
            beaten = b->row == a.row && b->column == a.column && b->x <= a.x && b->y <= a.y &&
                     (b->x < a.x || b->y < a.y);
        }
        a.kind = 1;
        if (!beaten)
            plot_add(p, &a);
    }
}
