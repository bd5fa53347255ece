/* SPDX-License-Identifier: MIT
 *
 * Settings: finding them among the rows of the parts, and their text. */
#include "settings.h"
#include "choices.h"
#include "keys.h"
#include "variants/model/attention/around.h"
#include "variants/parts/mem.h"
#include "variants/parts/norm.h"

/* ---- rows --------------------------------------------------------------------------------- */

/* What each part has of its own. */
#define AROUND(name) &name.numbers,
#define FFN(name) &ffn_##name.numbers,
#define MIXER(name) &mixer_##name.numbers,
#define MEM(name) &mem_##name.numbers,
#define EXTRA(name) &extra_##name.numbers,
#define POSITION(name) &pos_##name.numbers,
#define QKV_MAP(name) &qkv_map_##name.numbers,
#define GATE(name) &gate_##name.numbers,
#define NORM(kind) &norm_numbers[kind],
static const struct part_numbers *const *const of_parts[] = {
    AROUND_PARTS(AROUND) FFNS(FFN) MIXERS(MIXER) MEMS(MEM) EXTRAS(EXTRA) POSITIONS(POSITION)
        QKV_MAPS(QKV_MAP) GATES(GATE) NORM(NORM_ADA) NORM(NORM_POWER)};

/* The rows of the i-th part; NULL where it has none or shares those of one before it. */
static const struct choice *part_rows(size_t i)
{
    const struct part_numbers *const numbers = *of_parts[i];

    for (size_t k = 0; numbers && k < i; k++)
        if (*of_parts[k] && (*of_parts[k])->choices == numbers->choices)
            return NULL;
    return numbers ? numbers->choices : NULL;
}

/* The next row of all, a setting or not. */
static const struct choice *next_row(struct settings *walk)
{
    if (walk->key >= 0) {
        const struct choice *const row = model_key(walk->key++);
        if (row)
            return row;
        walk->key = -1;
    }
    while (!walk->row || !walk->row->name) {
        if (walk->parts == ARRAY_LEN(of_parts))
            return NULL;
        walk->row = part_rows(walk->parts++);
    }
    return walk->row++;
}

const struct choice *setting_next(struct settings *walk)
{
    const struct choice *row;

    do
        row = next_row(walk);
    while (row && !row->setting);
    return row;
}

const struct choice *row_of_key(const char *key)
{
    struct settings all = {0};
    const struct choice *row;

    do
        row = next_row(&all);
    while (row && strcmp(choice_key(row), key) != 0);
    return row;
}

static const struct choice *find(const char *name)
{
    const struct choice *row;

    for (struct settings all = {0}; (row = setting_next(&all));)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static bool is_in(const struct choice *row, const struct choice *rows)
{
    for (; rows && rows->name; rows++)
        if (rows == row)
            return true;
    return false;
}

/* The struct of a model that the row belongs to; NULL where the model has no such part. */
static const void *base_of(const struct choice *row, const struct config *c)
{
    if (is_model_key(row))
        return c;
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        if (numbers && is_in(row, numbers->choices))
            return config_numbers(c, s);
    }
    return NULL;
}

static bool applies(const struct choice *row, const struct config *c, bool core)
{
    return base_of(row, c) && choice_applies(row, c, core ? SCOPE_CORE : SCOPE_MODEL);
}

bool setting_belongs(const struct choice *row, const struct config *c) { return base_of(row, c); }

bool setting_applies(const struct choice *row, const struct config *c)
{
    return applies(row, c, false);
}

static enum status set(struct config *c, const struct choice *row, const char *text, struct err *e)
{
    const ptrdiff_t at = (const char *)base_of(row, c) - (const char *)c;

    return choice_parse(row, (char *)c + at, text, e);
}

enum status config_set(struct config *c, const char *key, const char *text, struct err *e)
{
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++)
        if (strcmp(choice_key(row), key) == 0)
            return choice_parse(row, c, text, e);
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            if (strcmp(choice_key(row), key) == 0 && !choice_is_idle(row, c))
                return choice_parse(row, c->numbers[s].bytes, text, e);
    }
    return fail(e, E_USAGE, "%s: has no %s  -> see its parts", c->variant->name, key);
}

/* ---- text --------------------------------------------------------------------------------- */

static enum status unreadable(const char *text, const char *at, struct err *e)
{
    const struct choice *row;
    const size_t n = strcspn(at, "=,");
    char names[160] = "";
    bool known = false;

    for (struct settings all = {0}; (row = setting_next(&all));) {
        known = known || (strlen(row->name) == n && memcmp(row->name, at, n) == 0);
        if (strlen(names) + strlen(row->name) + sizeof(", ") <= sizeof(names))
            text_append(names, sizeof(names), "%s%s", *names ? ", " : "", row->name);
    }
    if (at[n] == '=' && n > 0 && !known)
        return fail(e, E_USAGE, "--set \"%.80s\": no setting %.*s  -> use one of %s ...", text,
                    n < 30 ? (int)n : 30, at, names);
    return fail(e, E_USAGE, "--set \"%.80s\": cannot read \"%.30s\"  -> write NAME=VALUE,...", text,
                at);
}

/* A list inside a value has colons, as commas end the value. */
static void swap(char *value, char from, char to)
{
    for (char *at = value; (at = strchr(at, from));)
        *at = to;
}

/* "NAME=VALUE" as it stands in a text. */
struct assignment {
    const struct choice *row;
    char name[24], value[64];
};

/* Read one at `at`, whatever its name. Returns its length, 0 where it is none. */
static int read_words(const char *at, struct assignment *to)
{
    int end = 0;

    if (sscanf(at, "%23[a-z0-9_]=%63[^,]%n", to->name, to->value, &end) != 2 ||
        (at[end] && at[end] != ','))
        return 0;
    swap(to->value, ':', ',');
    return end;
}

/* The same of a setting. */
static int read_one(const char *at, struct assignment *to)
{
    const int end = read_words(at, to);

    to->row = end ? find(to->name) : NULL;
    return to->row ? end : 0;
}

static bool is_left_out(const struct choice *row, const char *word)
{
    for (int i = 0; row->codec == CODEC_WORD && i < row->least; i++)
        if (strcmp(row->words[i], word) == 0)
            return true;
    return false;
}

/* Could some model have it? */
static enum status check_value(const struct assignment *a, struct err *e)
{
    struct config any = {0}; /* as large as any part's struct */
    struct err why = {""};

    if (is_left_out(a->row, a->value))
        return fail(e, E_USAGE, "--set %s=%s: it would not be there  -> choose another variant",
                    a->row->name, a->value);
    if (choice_parse(a->row, &any, a->value, &why) == OK)
        return OK;
    const char *const advice = strstr(why.msg, "  -> ");
    return fail(e, E_USAGE, "--set %s=%.40s%s%s%s", a->row->name, a->value,
                a->row->help ? ": " : "", a->row->help ? a->row->help : "",
                advice ? advice : why.msg);
}

static enum status check_text(const char *text, struct err *e)
{
    if (strlen(text) >= SETTINGS_TEXT / 2) /* as many again may be printed unasked */
        return fail(e, E_USAGE, "--set: %zu characters are too many  -> use %d at most",
                    strlen(text), SETTINGS_TEXT / 2 - 1);
    for (const char *at = text; *text; at++) {
        struct assignment a = {0};
        const int end = read_one(at, &a);
        TRY(end == 0 ? unreadable(text, at, e) : check_value(&a, e));
        at += end;
        if (!*at)
            break;
    }
    return OK;
}

/* The last value that a checked text gives it; false where it gives none. Names are compared first:
 * to look one up among all settings takes longer. */
static bool value_in(const char *text, const struct choice *wanted, struct assignment *to)
{
    bool found = false;

    for (const char *at = text; *text; at++) {
        struct assignment a = {0};
        at += read_words(at, &a);
        if (strcmp(a.name, wanted->name) == 0 && find(a.name) == wanted) {
            *to = a;
            found = true;
        }
        if (!*at)
            break;
    }
    return found;
}

const struct choice *settings_untaken(const char *text, const bool taken[SETTINGS_MOST])
{
    const struct choice *row;
    struct assignment a;
    int i = 0;

    for (struct settings all = {0}; (row = setting_next(&all)); i++) {
        CHECK(i < SETTINGS_MOST);
        if (!taken[i] && value_in(text, row, &a))
            return row;
    }
    return NULL;
}

enum status settings_parse(struct config *c, const char *text, bool core, struct err *e)
{
    const struct choice *row;

    TRY(check_text(text, e));
    for (struct settings all = {0}; (row = setting_next(&all));) {
        struct assignment a;
        if (value_in(text, row, &a) && applies(row, c, core))
            TRY(set(c, row, a.value, e));
    }
    return OK;
}

enum status settings_fit(const struct config *c, struct err *e)
{
    const int cmem = compressive_of(c)->rows;

    if (cmem > 0 && cmem >= c->mem_len)
        return fail(e, E_USAGE, "--set cmem=%d of %d rows of memory  -> use fewer", cmem,
                    c->mem_len);
    return OK;
}

/* The same parts without settings. */
static struct config without_settings(const struct config *c)
{
    const struct config own = config_default(c->variant, c->D, c->H, c->dh, c->F, c->N, c->V);
    const struct choice *row;
    struct config plain = *c;

    config_numbers_reset(&plain);
    for (struct settings all = {0}; (row = setting_next(&all));) {
        char text[CHOICE_TEXT];
        if (!is_model_key(row))
            continue;
        choice_print(text, row, &own);
        CHECK(choice_parse(row, &plain, text, NULL) == OK);
    }
    plain.enc_layers = c->enc_layers ? c->N : 0; /* no variant has them, a workload does */
    return plain;
}

void settings_print(char text[SETTINGS_TEXT], const struct config *c, bool changed, bool core)
{
    const struct config plain = without_settings(c);
    const struct choice *row;

    *text = '\0';
    for (struct settings all = {0}; (row = setting_next(&all));) {
        char value[CHOICE_TEXT];
        const char *const base = base_of(row, c);
        if (!base || !choice_applies(row, c, core ? SCOPE_CORE : SCOPE_MODEL))
            continue;
        /* the same place of a model with the same parts */
        if ((changed || row->if_changed) &&
            choice_equal(row, base, (const char *)&plain + (base - (const char *)c)))
            continue;
        choice_print(value, row, base);
        swap(value, ',', ':');
        text_item(text, SETTINGS_TEXT, "%s=%s", row->name, value);
    }
}

bool model_choices_equal(const struct config *a, const struct config *b, enum scope scope)
{
    char text[2][CHOICE_TEXT];

    if (a->variant != b->variant)
        return false;
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        model_choice_print(text[0], i, a, scope);
        model_choice_print(text[1], i, b, scope);
        if (strcmp(text[0], text[1]) != 0)
            return false;
    }
    settings_print(text[0], a, false, scope == SCOPE_CORE);
    settings_print(text[1], b, false, scope == SCOPE_CORE);
    return strcmp(text[0], text[1]) == 0;
}
