/* SPDX-License-Identifier: MIT
 *
 * Sparse masks of a model: parsing, checks, and use in an attention. */
#include "masks.h"
#include "variants/base/rng.h"

/* ---- text --------------------------------------------------------------------------------- */

static const struct field {
    const char *name;
    size_t at;
    size_t rows; /* of a field that is written ROWSxCOLUMNS, where its rows are; else 0 */
} fields[] = {
    {"window", offsetof(struct mask, window), 0},
    {"dilation", offsetof(struct mask, dilation), 0},
    {"block", offsetof(struct mask, block), 0},
    {"back", offsetof(struct mask, back), 0},
    {"memory", offsetof(struct mask, memory), 0},
    {"stride", offsetof(struct mask, stride), 0},
    {"fixed", offsetof(struct mask, fixed), 0},
    {"summary", offsetof(struct mask, summary), 0},
    {"global", offsetof(struct mask, global), 0},
    {"random", offsetof(struct mask, n_random), 0},
    {"rect", offsetof(struct mask, rect), offsetof(struct mask, rect_rows)},
    {"row", offsetof(struct mask, row), 0},
    {"margin", offsetof(struct mask, margin), offsetof(struct mask, margin_rows)},
};

static int *number_at(struct mask *m, size_t at) { return (int *)((char *)m + at); }

static const struct field *field_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* One field at the beginning of text; how many characters it has, 0 = it is none. */
static int parse_field(struct mask *m, const char *text)
{
    char name[16] = "";
    int value = -1, rows = -1, end = 0;

    if (sscanf(text, "%15[a-z]=%9d%n", name, &value, &end) != 2)
        return 0;
    const struct field *const field = field_named(name);
    if (field && field->rows && sscanf(text, "%*[a-z]=%9dx%9d%n", &rows, &value, &end) != 2)
        return 0;
    if (!field || value < 0 || (field->rows && rows < 0) || (text[end] && !strchr(",;", text[end])))
        return 0;
    *number_at(m, field->at) = value;
    if (field->rows)
        *number_at(m, field->rows) = rows;
    return end;
}

static enum status parse_heads(struct masks *m, const char *text, struct err *e)
{
    const char *at = text;

    for (bool more = true; more; at++) {
        int which = 0, end = 0;
        if (m->n_heads == MASK_HEADS || sscanf(at, "%4d%n", &which, &end) != 1 || which < 0 ||
            which >= m->n || (at[end] && at[end] != ','))
            return fail(
                e, E_USAGE,
                "--mask-heads \"%.80s\": not up to %d numbers of masks below %d  -> such as 0,0,1",
                text, MASK_HEADS, m->n);
        m->head[m->n_heads++] = (uint8_t)which;
        at += end;
        more = *at == ',';
    }
    return OK;
}

static enum status parse_masks(struct masks *m, const char *text, struct err *e)
{
    const char *at = text;

    m->n = 1;
    for (bool more = true; more; at++) {
        const int end = parse_field(&m->at[m->n - 1], at);
        if (end == 0)
            return fail(e, E_USAGE,
                        "--mask \"%.80s\": cannot parse \"%.20s\"  -> use window, dilation, block, "
                        "back, memory, stride, fixed, summary, global, random, row, such as "
                        "window=64,global=4; rect, margin, such as rect=8x8",
                        text, at);
        at += end;
        more = *at != '\0';
        if (*at == ';' && m->n == MAX_MASKS)
            return fail(e, E_USAGE, "--mask \"%.80s\": more than %d masks  -> use fewer", text,
                        MAX_MASKS);
        m->n += *at == ';';
    }
    return OK;
}

enum status masks_parse(struct masks *m, const char *text, const char *heads, struct err *e)
{
    *m = (struct masks){0};
    if (strlen(text) >= MASK_TEXT)
        return fail(e, E_USAGE, "--mask has more than %d characters  -> use fewer masks",
                    MASK_TEXT - 1);
    if (*text)
        TRY(parse_masks(m, text, e));
    for (int k = 0; !*heads && k < m->n; k++)
        m->head[m->n_heads++] = (uint8_t)k;
    return *heads ? parse_heads(m, heads, e) : OK;
}

void masks_print(char text[MASK_TEXT], char heads[MASK_TEXT], const struct masks *m)
{
    size_t n = 0;

    *text = *heads = '\0';
    for (int k = 0; k < m->n; k++) {
        struct mask one = m->at[k];
        const char *between = k ? ";" : "";
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
            const struct field *const f = &fields[i];
            const int value = *number_at(&one, f->at);
            const int rows = f->rows ? *number_at(&one, f->rows) : 0;
            if (value == 0 && rows == 0)
                continue;
            n += (size_t)snprintf(text + n, MASK_TEXT - n, "%s%s=", between, f->name);
            CHECK(n < MASK_TEXT);
            n += (size_t)(f->rows ? snprintf(text + n, MASK_TEXT - n, "%dx%d", rows, value)
                                  : snprintf(text + n, MASK_TEXT - n, "%d", value));
            CHECK(n < MASK_TEXT);
            between = ",";
        }
        if (*between != ',') { /* all numbers are 0; no other name makes a shorter text */
            n += (size_t)snprintf(text + n, MASK_TEXT - n, "%sback=0", between);
            CHECK(n < MASK_TEXT);
        }
    }
    for (int k = 0; k < m->n_heads; k++)
        text_item(heads, MASK_TEXT, "%d", m->head[k]);
}

/* ---- windows of heads --------------------------------------------------------------------- */

enum status head_windows_parse(struct head_windows *w, const char *text, struct err *e)
{
    *w = (struct head_windows){0};
    for (const char *at = text; *at;) {
        int value = 0, end = 0;
        const bool next = at == text || at[-1] == ';';
        const int to = next ? w->n : w->n - 1;
        if (to == WINDOW_ROWS || w->heads[to] == WINDOW_HEADS ||
            sscanf(at, "%9d%n", &value, &end) != 1 || value < 0 ||
            (at[end] && !strchr(",;", at[end])) || (at[end] && !at[end + 1]))
            return fail(e, E_USAGE,
                        "head_windows \"%.60s\": not up to %d rows of %d numbers from 0  -> write "
                        "for example 64,256;512,0",
                        text, (int)WINDOW_ROWS, (int)WINDOW_HEADS);
        w->n = to + 1;
        w->at[to][w->heads[to]++] = value;
        at += end + (at[end] != '\0');
    }
    return OK;
}

void head_windows_print(char text[MASK_TEXT], const struct head_windows *w)
{
    size_t n = 0;

    *text = '\0';
    for (int l = 0; l < w->n; l++)
        for (int h = 0; h < w->heads[l]; h++) {
            n += (size_t)snprintf(text + n, MASK_TEXT - n, "%s%d",
                                  h   ? ","
                                  : l ? ";"
                                      : "",
                                  w->at[l][h]);
            CHECK(n < MASK_TEXT);
        }
}

/* ---- checks ------------------------------------------------------------------------------- */

enum { MOST_RANDOM = 4096 };

static const char *contradiction(const struct mask *m)
{
    if (!(m->rect_rows && m->rect) && (m->rect_rows || m->rect || m->row))
        return "rows need a rectangle of at least 1x1  -> add rect, such as rect=8x8,row=32";
    if ((m->margin_rows || m->margin) && !m->rect)
        return "margin without a rectangle  -> add rect and row";
    if (m->rect && (m->row == 0 || m->row % m->rect))
        return "rectangles do not fill a row  -> give row, a multiple of the columns of rect";
    if (mask_hides_nothing(m))
        return "hides nothing  -> use a window, block, stride, fixed, global or rect";
    if (m->dilation && !m->window)
        return "dilation without a window  -> add window";
    if ((m->back || m->memory || m->n_random) && !m->block)
        return "back, memory and random need blocks  -> add block";
    if (m->n_random > MOST_RANDOM)
        return "has too many random blocks  -> use at most 4096";
    if (m->fixed ? m->summary < 1 || m->summary > m->fixed : m->summary)
        return "fixed needs summary  -> give both, summary from 1 to fixed";
    return NULL;
}

enum status masks_check(const struct masks *m, const char *who, struct err *e)
{
    for (int k = 0; k < m->n; k++)
        if (contradiction(&m->at[k]))
            return fail(e, E_USAGE, "%s: mask %d: %s", who, k, contradiction(&m->at[k]));
    return OK;
}

/* ---- use in an attention ------------------------------------------------------------------ */

/* Does it show one contiguous range of keys up to the query? */
static bool plain_window(const struct mask *m)
{
    return m->window && m->dilation <= 1 &&
           !(m->block || m->stride || m->fixed || m->global || m->rect);
}

/* Number of blocks that L queries can touch. */
static int blocks_of(const struct mask *m, int L) { return (L - 1) / m->block + 2; }

void masks_reserve(const struct masks *m, int L, struct arena *arena, struct attn *a)
{
    if (m->n == 0)
        return;
    if (a->causal && m->n == 1 && plain_window(m->at)) {
        a->window = a->window ? min_int(a->window, m->at->window) : m->at->window;
        return;
    }
    struct mask *const at = arena_take(arena, PART_SCRATCH, (size_t)m->n * sizeof(*at));
    uint8_t *const of_head = arena_take(arena, PART_SCRATCH, (size_t)a->H);
    for (int k = 0; k < m->n; k++) {
        int32_t *random = NULL;
        if (m->at[k].n_random && !m->at[k].random)
            random = arena_take(arena, PART_SCRATCH,
                                (size_t)blocks_of(&m->at[k], L) * (size_t)m->at[k].n_random *
                                    sizeof(*random));
        if (!arena->base)
            continue;
        at[k] = m->at[k];
        if (random)
            at[k].random = random;
    }
    for (int h = 0; arena->base && h < a->H; h++)
        of_head[h] = m->head[h % m->n_heads];
    a->mask = at;
    a->mask_of_head = of_head;
}

struct attn masks_placeholder(const struct attn *a)
{
    static const struct mask some;
    struct attn copy = *a;

    copy.mask = a->mask ? &some : NULL;
    copy.mask_of_head = NULL;
    return copy;
}

int32_t masks_random_block(int nth, int64_t query_block, int n_random, int x)
{
    static const uint64_t SEED = 1;

    return query_block == 0
               ? -1
               : (int32_t)(rng_u32(SEED, (uint64_t)nth, (uint64_t)(query_block * n_random + x)) %
                           (uint64_t)query_block);
}

void masks_draw(const struct masks *m, int nth, struct attn *a)
{
    for (int k = 0; a->mask && k < m->n; k++) {
        struct mask *const to = (struct mask *)a->mask + k;
        if (to->n_random == 0 || m->at[k].random)
            continue;
        to->random_from = (a->base + a->M) / to->block;
        to->random_blocks = blocks_of(to, a->L);
        for (int q = 0; q < to->random_blocks; q++)
            for (int x = 0; x < to->n_random; x++)
                ((int32_t *)to->random)[(ptrdiff_t)q * to->n_random + x] =
                    masks_random_block(nth, to->random_from + q, to->n_random, x);
    }
}
