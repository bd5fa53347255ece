/* SPDX-License-Identifier: MIT
 *
 * The columns that identify a case, and rows compared by them. */
#include "keys.h"

/* ---- axes --------------------------------------------------------------------------------- */

bool is_of_variant(int choice)
{
    return choice == CASE_mem_kind || (choice >= CASE_heads && choice <= CASE_d_inner) ||
           (choice >= CASE_BEFORE_MODEL && choice <= SETTINGS_CHOICE);
}

enum status axis_find(struct axis *a, const char *word, struct err *e)
{
    const int choice = chosen_find(word);
    const char *names[CHOICE_COLUMNS + 1] = {0};

    for (int i = 0; i < CHOICE_COLUMNS; i++)
        names[i] = chosen_at(i).name;
    if (choice < 0)
        return unknown_word(e, "axis", word, names, NULL);
    /* The cases of a group differ in the variant, the choices that it fixes, and the backend. */
    *a = (struct axis){names[choice], find_column(&tables[TABLE_LATENCY], names[choice]),
                       choice == CASE_variant || choice == CASE_backend || is_of_variant(choice)};
    return OK;
}

enum status axis_no_value(const struct axis *a, const char *base, const struct rows *latency,
                          const char *dir, struct err *e)
{
    const struct latency_row *row = latency->row;
    char list[160] = "", num[NUMBER_SIZE], padded[TEXT_SIZE + 4];

    for (size_t i = 0; i < latency->n; i++) {
        const char *value = row_field(&tables[TABLE_LATENCY], a->column, &row[i], num);
        snprintf(padded, sizeof(padded), "%s%.60s", *list ? ", " : "", value);
        if (*value && !strstr(list, value) && strlen(list) + strlen(padded) < sizeof(list))
            strcat(list, padded);
    }
    return fail(e, E_USAGE, "no row of %.200s has %s \"%.60s\"  -> %s", dir, a->word, base,
                *list ? list : "the axis does not apply to this run");
}

/* ---- keys --------------------------------------------------------------------------------- */

/* Who measured, when, and the outcome; the other key columns are sizes and settings of the run. */
static const char *const columns_of_record[] = {
    "schema",   "run_id",        "host_id", "case_id",   "started_at_utc",
    "status",   "status_detail", "impl",    "gemm_from", "rows_from",
    "isa_used", "threads_seen",  "cpus",    "repro",     NULL};
/* Perplexities of other weights or another text are not comparable. */
static const char *const of_text[] = {"checkpoint_xxh3", "corpus_xxh3", "tokens_scored", NULL};

/* Does the column identify a case, if the columns named in `but` (may be NULL) do not count? */
static bool is_key(const struct table *t, int i, const char *const *but)
{
    const char *name = t->columns[i].name;

    if (i >= KEY_COUNT)
        return t == &tables[TABLE_PERPLEXITY] && word_index(name, of_text) >= 0;
    if (but && word_index(name, but) >= 0)
        return false;
    if (but && word_index("variant", but) >= 0 && is_of_variant(chosen_find(name)))
        return false;
    return word_index(name, columns_of_record) < 0;
}

static bool same_field(const struct table *t, int i, const void *a, const void *b)
{
    char num[2][NUMBER_SIZE];

    return strcmp(row_field(t, i, a, num[0]), row_field(t, i, b, num[1])) == 0;
}

bool rows_alike(const struct table *t, const void *a, const void *b, const char *const *but)
{
    for (int i = 0; i < t->n; i++)
        if (is_key(t, i, but) && !same_field(t, i, a, b))
            return false;
    return true;
}

static char *key_of(const struct table *t, const void *row, const char *const *but)
{
    char num[NUMBER_SIZE];
    struct bytes key;
    FILE *const f = bytes_begin(&key);

    for (int i = 0; i < t->n; i++)
        if (is_key(t, i, but))
            fprintf(f, "%s=%s\n", t->columns[i].name, row_field(t, i, row, num));
    return bytes_end(f, &key);
}

struct keys keys_make(enum table_id table, const struct rows *rows, const struct axis *without)
{
    const struct table *t = &tables[table];
    const char *const but[] = {without ? t->columns[without->column].name : NULL, NULL};
    struct keys k = {.by_key = table == TABLE_PERPLEXITY,
                     .key = need_room(rows->n + 1, sizeof(*k.key)),
                     .case_id = need_room(rows->n + 1, sizeof(*k.case_id)),
                     .used = need_room(rows->n + 1, sizeof(*k.used))};

    for (; k.n < (int)rows->n; k.n++) {
        const void *row = (const char *)rows->row + (size_t)k.n * t->row_size;
        k.case_id[k.n] = row_text(t, row, "case_id");
        k.key[k.n] = key_of(t, row, but);
    }
    return k;
}

void keys_free(struct keys *k)
{
    for (int i = 0; i < k->n; i++)
        free(k->key[i]);
    free(k->key);
    free(k->case_id);
    free(k->used);
    *k = (struct keys){0};
}

int keys_match(struct keys *in, const struct keys *of, int i)
{
    int found = -1;

    for (int k = 0; k < in->n && found < 0 && !in->by_key; k++)
        if (strcmp(in->case_id[k], of->case_id[i]) == 0)
            found = k;
    if (found < 0) /* another build may write another repro line */
        for (int k = 0; k < in->n; k++)
            if (strcmp(in->key[k], of->key[i]) == 0)
                found = found == -1 ? k : -2;
    if (found < 0)
        return -1;
    in->used[found] = true;
    return found;
}

int keys_unused(const struct keys *k)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += !k->used[i];
    return n;
}

/* ---- words for people --------------------------------------------------------------------- */

/* Append a word to a label unless the value is empty, the default, or compared. */
static void add_word(char *buf, size_t size, const struct latency_row *row, int column,
                     const char *before, const char *usual, const char *const *but)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char num[NUMBER_SIZE];
    const char *value = row_field(t, column, row, num);

    if (*value && strcmp(value, usual) != 0 && is_key(t, column, but))
        text_append(buf, size, "%s%s%s", *buf ? " " : "", before, value);
}

void row_label(const struct latency_row *row, const struct axis *without, char *buf, size_t size)
{
    const struct table *t = &tables[TABLE_LATENCY];
    const char *const but[] = {without ? t->columns[without->column].name : NULL, NULL};

    buf[0] = '\0';
    add_word(buf, size, row, KEY_variant, "", "", but);
    add_word(buf, size, row, KEY_workload, "", "", but);
    add_word(buf, size, row, KEY_phase, "", phase_name[PHASE_FWD], but);
    add_word(buf, size, row, KEY_seq_tokens, "seq=", "", but);
    add_word(buf, size, row, KEY_mem_tokens, "mem=", "", but);
    add_word(buf, size, row, KEY_mem_kind, "", "", but);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        const struct choice *const choice = &model_choices[i];
        char before[48];
        snprintf(before, sizeof(before), "%s=", choice->name);
        if (choice->special && (choice->codec < CODEC_LIST || choice->words))
            add_word(buf, size, row, find_column(t, choice->name), before,
                     choice->words == kv_elem_name ? elem_name[ELEM_F32]
                     : choice->words               ? "none"
                                                   : "0",
                     but);
    }
    add_word(buf, size, row, KEY_batch_size, "batch=", "1", but);
    add_word(buf, size, row, KEY_layers, "layers=", "1", but);
    add_word(buf, size, row, KEY_threads, "threads=", "1", but);
    add_word(buf, size, row, KEY_backend, "", "", but);
}

/* ---- models ------------------------------------------------------------------------------- */

bool rows_same_model(const struct latency_row *a, const struct latency_row *b)
{
    const struct table *t = &tables[TABLE_LATENCY];
    bool same = strcmp(a->variant, b->variant) == 0;

    for (int i = 0; i < KEY_COUNT && same; i++)
        same = !is_of_variant(chosen_find(t->columns[i].name)) || same_field(t, i, a, b);
    return same;
}

/* Has another row of the variant, in the same workload, another value in this column? */
static bool tells_apart(const struct latency_row *row, const struct rows *latency, int column)
{
    const struct latency_row *other = latency->row;
    bool differs = false;

    for (size_t i = 0; i < latency->n && !differs; i++)
        differs = strcmp(row->variant, other[i].variant) == 0 &&
                  strcmp(row->workload, other[i].workload) == 0 &&
                  !same_field(&tables[TABLE_LATENCY], column, row, &other[i]);
    return differs;
}

void row_model_name(const struct latency_row *row, const struct rows *latency, char *buf,
                    size_t size)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char num[NUMBER_SIZE];

    snprintf(buf, size, "%s", row->variant);
    for (int i = 0; i < KEY_COUNT; i++) {
        const int choice = chosen_find(t->columns[i].name);
        const char *value = row_field(t, i, row, num);
        if (!is_of_variant(choice) || !*value || !tells_apart(row, latency, i))
            continue;
        const bool bare = choice == CASE_mem_kind || choice == SETTINGS_CHOICE;
        text_append(buf, size, " %s%s%s", bare ? "" : t->columns[i].name, bare ? "" : "=", value);
    }
}
