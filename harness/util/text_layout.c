/* SPDX-License-Identifier: MIT
 *
 * Aligned columns that fit the terminal. */
#include "text_layout.h"
#include "terminal.h"

enum { GAP = 2 };

/* ---- widths ---------------------------------------------------------------------------------- */

/* `tight`: texts wrap even where a column would rather not. */
static int least_of(const struct text_table_column *c, int natural, bool tight)
{
    enum { TIGHT = 8 };
    const int least = c->least > 0 ? c->least : tight && !c->number ? TIGHT : 0;

    return least > 0 ? min_int(natural, max_int(least, terminal_columns(c->name))) : natural;
}

static long least_sum(const struct text_layout *l, const struct text_table_column *column,
                      const int *natural, bool tight)
{
    long sum = -GAP;

    for (int k = 0; k < l->n; k++)
        sum += GAP + least_of(&column[l->at[k]], natural[l->at[k]], tight);
    return sum;
}

/* The column that is spared most easily, of several the last; false if there is none. */
static bool leave_out_one(struct text_layout *l, const struct text_table_column *column)
{
    int left_out = 0, k = 0;

    for (int i = 1; i < l->n; i++)
        if (column[l->at[i]].spare >= column[l->at[k]].spare)
            k = i;
    if (l->n == 0 || !column[l->at[k]].spare)
        return false;
    while (l->left_out[left_out])
        left_out++;
    l->left_out[left_out] = column[l->at[k]].name;
    memmove(l->at + k, l->at + k + 1, (size_t)(l->n - k - 1) * sizeof(*l->at));
    l->n--;
    return true;
}

void text_layout_fit(struct text_layout *l, const struct text_table_column *column,
                     const int *natural, int n, int width)
{
    *l = (struct text_layout){.n = n};
    for (int k = 0; k < n; k++)
        l->at[k] = k;
    while (least_sum(l, column, natural, false) > width && leave_out_one(l, column))
        ;
    const bool tight = least_sum(l, column, natural, false) > width;
    long room = width - least_sum(l, column, natural, tight);
    for (int k = 0; k < l->n; k++)
        l->width[k] = least_of(&column[l->at[k]], natural[l->at[k]], tight);
    for (bool more = true; more;) { /* all that wrap grow alike */
        more = false;
        for (int k = 0; k < l->n && room > 0; k++)
            if (l->width[k] < natural[l->at[k]]) {
                l->width[k]++;
                room--;
                more = true;
            }
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Bytes of the text that fit into so many columns: up to the last blank, or after a comma or slash;
 * else inside a word. */
static size_t fitting(const char *text, int columns)
{
    size_t n = 0, end = 0;
    int used = 0;

    while (text[n]) {
        size_t next = n + 1;
        while (((unsigned char)text[next] & 0xc0) == 0x80)
            next++;
        if (++used > columns)
            break;
        if (strchr(",/;", text[n]))
            end = next;
        n = next;
        if (text[n] == ' ')
            end = n;
    }
    return !text[n] || end == 0 ? n : end;
}

void text_layout_print(FILE *f, const struct text_layout *l, const struct text_table_column *column,
                       const char *const *text)
{
    const char *rest[TEXT_TABLE_COLUMNS];
    bool more = true;

    for (int k = 0; k < l->n; k++)
        rest[k] = text[l->at[k]];
    while (more) {
        int pending = 0; /* blanks to write before the next text */
        more = false;
        for (int k = 0; k < l->n; k++) {
            const bool number = column[l->at[k]].number;
            const size_t n = fitting(rest[k], max_int(1, l->width[k]));
            char piece[4096];
            snprintf(piece, sizeof(piece), "%.*s", (int)n, rest[k]);
            const int pad = l->width[k] - terminal_columns(piece);
            rest[k] += n + strspn(rest[k] + n, " ");
            more = more || *rest[k];
            pending += (k ? GAP : 0) + (number ? pad : 0);
            if (*piece) {
                fprintf(f, "%*s", pending, "");
                text_print(f, piece);
                pending = 0;
            }
            pending += number ? 0 : pad;
        }
        fputc('\n', f);
    }
}
