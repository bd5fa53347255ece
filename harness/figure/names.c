/* SPDX-License-Identifier: MIT
 *
 * Names of variants and backends, in the program's order, and of panels and series. These are named
 * by what distinguishes their rows, and by nothing else. */
#include "figure.h"

#include "harness/table/keys.h"

#include <xxhash.h>

/* ---- styles ------------------------------------------------------------------------------- */

/* An unknown name has its own index, the same in each figure. */
static int foreign_style(const char *name, int known)
{
    return known + (int)(XXH3_64bits(name, strlen(name)) % 97);
}

int plot_variant_style(const char *name)
{
    int n = 0;

    while (variants[n] && strcmp(variants[n]->name, name) != 0)
        n++;
    return variants[n] ? n : foreign_style(name, n);
}

int plot_backend_style(const char *name)
{
    int n = 0;

    while (backends[n] && strcmp(backends[n]->name, name) != 0)
        n++;
    return backends[n] ? n : foreign_style(name, n);
}

bool plot_is_reference(const char *name)
{
    const struct backend *const b = backend_find(name);
    return b && !b->inherits;
}

int plot_name(struct plot_names *names, const char *text, int style)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->v[i].text, text) == 0)
            return i;
    GROW_SMALL(names->v, names->n);
    struct plot_name *const name = &names->v[names->n];
    *name = (struct plot_name){.style = style, .order = names->n};
    text_put(name->text, PLOT_TEXT, text);
    return names->n++;
}

/* ---- roles -------------------------------------------------------------------------------- */

/* Any other choice is one of the model. Panels of a backend and series of a variant already have
 * those two in their names. */
static const struct {
    unsigned role;
    const char *columns; /* between blanks */
} roles[] = {
    {0, " variant backend "},
    {ROLE_TASK, " workload seq_tokens mem_tokens "},
    {ROLE_SIZE, " batch_size layers d_model heads d_head d_inner "},
    {ROLE_CONDITION, " phase dtype threads pin membind cache_mode "},
    {ROLE_MEMORY, " mem_kind "},
};

/* Columns of perplexity.csv that do not belong to its key. */
static const char TEXT_SCORED[] = " corpus split unit ", WEIGHTS[] = " checkpoint ";

static bool among(const char *name, const char *columns)
{
    const size_t n = strlen(name);

    for (const char *at = columns; (at = strstr(at, name)); at++)
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

unsigned plot_role(const struct table *t, const struct column *c)
{
    const bool perplexity = t == &tables[TABLE_PERPLEXITY];

    if (!perplexity && t != &tables[TABLE_LATENCY] && t != &tables[TABLE_MEMORY])
        return 0;
    if (c - t->columns >= KEY_COUNT)
        return !perplexity                   ? 0
               : among(c->name, TEXT_SCORED) ? ROLE_TASK
               : among(c->name, WEIGHTS)     ? ROLE_MODEL
                                             : 0;
    /* The element type among them: one checkpoint in several is one line. */
    const int chosen = chosen_find(c->name), model = chosen - CASE_BEFORE_MODEL;
    if (perplexity && model >= 0 && model < MODEL_CHOICE_COUNT && model_choices[model].at_eval)
        return ROLE_TUNED;
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (among(c->name, roles[i].columns))
            return roles[i].role;
    return chosen >= 0 ? ROLE_MODEL : 0;
}

const char *plot_role_name(unsigned role)
{
    return role == ROLE_TASK        ? "task"
           : role == ROLE_SIZE      ? "size"
           : role == ROLE_CONDITION ? "condition"
           : role == ROLE_MEMORY    ? "memory"
           : role == ROLE_MODEL     ? "model"
           : role == ROLE_TUNED     ? "model"
                                    : "";
}

/* ---- values ------------------------------------------------------------------------------- */

const struct column *plot_column(const struct table *t, const char *name)
{
    for (int i = 0; name && i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

double plot_number(const struct table *t, const void *row, const char *column)
{
    const struct column *const c = plot_column(t, column);
    double x = NAN;
    int64_t whole;

    if (c && c->type == COLUMN_REAL)
        memcpy(&x, (const char *)row + c->offset, sizeof(x));
    if (!c || c->type != COLUMN_I64)
        return x;
    memcpy(&whole, (const char *)row + c->offset, sizeof(whole));
    return whole == I64_EMPTY ? NAN : (double)whole;
}

/* "seq_tokens" is "seq" before its number. */
static int short_name(const char *column)
{
    static const char *const units[] = {"_tokens", "_size", "_len"};

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (text_ends(column, units[i]))
            return (int)(strlen(column) - strlen(units[i]));
    return (int)strlen(column);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void plot_value(char *buf, size_t size, const struct table *t, const void *row,
                const struct column *c)
{
    char num[NUMBER_SIZE];
    const char *value = row_field(t, (int)(c - t->columns), row, num);
    const char *const slash = strrchr(value, '/'); /* of a path, the last part */

    if (slash && slash[1])
        value = slash + 1;
    else if (*value && !is_letter(*value)) {
        snprintf(buf, size, "%.*s %s", short_name(c->name), c->name, value);
        return;
    }
    snprintf(buf, size, "%s", value);
}

/* ---- rows --------------------------------------------------------------------------------- */

bool plot_leaves_out_reference(const struct plot_data *d, enum table_id id)
{
    const struct table *const t = &tables[id];
    bool reference = false, others = false;

    if (id > TABLE_PERPLEXITY || (d->base && plot_is_reference(d->base)))
        return false;
    for (size_t i = 0; i < d->table[id].n; i++) {
        const void *const row = (const char *)d->table[id].row + i * t->row_size;
        const bool is = plot_is_reference(row_text(t, row, "backend"));
        reference = reference || is;
        others =
            others || (!is && strcmp(row_text(t, row, "status"), row_status_name[ROW_OK]) == 0);
    }
    return reference && others;
}

bool plot_has_time(const void *row, const struct plot_data *d, const void *unused)
{
    return ((const struct latency_row *)row)->median_ns > 0;
}

struct picked plot_pick(const struct plot_data *d, enum table_id id, plot_wanted *wanted,
                        const void *arg)
{
    const struct table *const t = &tables[id];
    const struct rows *const all = &d->table[id];
    const bool but_reference = plot_leaves_out_reference(d, id);
    struct picked k = {.table = t, .row = need_room(all->n + 1, sizeof(*k.row))};

    for (size_t i = 0; i < all->n; i++) {
        const void *const row = (const char *)all->row + i * t->row_size;
        if (strcmp(row_text(t, row, "status"), row_status_name[ROW_OK]) == 0 &&
            !(but_reference && plot_is_reference(row_text(t, row, "backend"))) &&
            wanted(row, d, arg))
            k.row[k.n++] = row;
    }
    return k;
}

bool plot_same_value(const struct column *c, const void *a, const void *b)
{
    const char *const x = (const char *)a + c->offset, *const y = (const char *)b + c->offset;

    return c->type == COLUMN_TEXT ? strcmp(x, y) == 0 : memcmp(x, y, c->size) == 0;
}

bool plot_same(const void *a, const void *b, unsigned wanted)
{
    const struct table *const t = &tables[TABLE_LATENCY]; /* the key comes first in all tables */

    for (int i = 0; i < KEY_COUNT; i++)
        if (!plot_same_value(&t->columns[i], a, b) && (plot_role(t, &t->columns[i]) & wanted))
            return false;
    return true;
}

/* Do peers of row i, rows that must be equal in these two (NULL: need not), differ from it? */
static bool varies(const struct picked *k, int i, const struct column *c,
                   const struct column *workload, const struct column *variant)
{
    for (int j = 0; j < k->n; j++)
        if (!plot_same_value(c, k->row[i], k->row[j]) &&
            (c == workload || plot_same_value(workload, k->row[i], k->row[j])) &&
            (!variant || plot_same_value(variant, k->row[i], k->row[j])))
            return true;
    return false;
}

void plot_label(char buf[PLOT_TEXT], const struct picked *k, int i, unsigned wanted,
                const char *const *but, bool variant)
{
    const struct table *const t = k->table;
    const struct column *const workload = plot_column(t, "workload");
    const struct column *const of = plot_column(t, "variant");

    buf[0] = '\0';
    for (int at = 0; at < t->n; at++) {
        const struct column *const c = &t->columns[at];
        char value[PLOT_TEXT];
        bool left_out = !(plot_role(t, c) & wanted);
        for (int b = 0; but && but[b]; b++)
            left_out = left_out || strcmp(c->name, but[b]) == 0;
        const bool same = variant || is_of_variant(chosen_find(c->name));
        if (left_out || !varies(k, i, c, workload, same ? of : NULL))
            continue;
        plot_value(value, sizeof(value), t, k->row[i], c);
        text_join(buf, PLOT_TEXT, " ", value);
    }
}
