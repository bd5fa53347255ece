/* SPDX-License-Identifier: MIT
 *
 * --filter. */
#include "filter.h"
#include "harness/util/range.h"
#include "harness/util/suggest.h"

#include <limits.h>
#include <string.h>

enum text_key {
    KEY_VARIANT,
    KEY_BACKEND,
    KEY_WORKLOAD,
    KEY_PHASE,
    KEY_MEM_KIND,
    KEY_GATE,
    KEY_NORM,
    KEY_FFN,
    KEY_NORM_KIND,
    KEY_RNN_CELL,
    KEY_HALT
};

#define NUMBER(field) offsetof(struct bench_case, field)

/* The words first, in the order of enum text_key; a number is an int of the cell, -1 where it does
 * not apply. Names on the command line, and the columns of the tables. */
static const struct {
    const char *name, *column;
    size_t at;
} keys[] = {
    {"variant", "variant", 0},
    {"backend", "backend", 0},
    {"workload", "workload", 0},
    {"phase", "phase", 0},
    {"mem_kind", "mem_kind", 0},
    {"gate", "gate", 0},
    {"norm", "norm", 0},
    {"ffn", "ffn", 0},
    {"norm_kind", "norm_kind", 0},
    {"rnn_cell", "rnn_cell", 0},
    {"halt", "halt", 0},
    {"seq", "seq_tokens", NUMBER(seq)},
    {"mem", "mem_tokens", NUMBER(mem)},
    {"batch", "batch_size", NUMBER(batch)},
    {"layers", "layers", NUMBER(layers)},
    {"d_model", "d_model", NUMBER(d_model)},
    {"heads", "heads", NUMBER(heads)},
    {"d_head", "d_head", NUMBER(d_head)},
    {"kv_heads", "kv_heads", NUMBER(kv_heads)},
    {"d_inner", "d_inner", NUMBER(d_inner)},
    {"clip", "clip", NUMBER(clip)},
    {"clamp_len", "clamp_len", NUMBER(clamp_len)},
    {"same_length", "same_length", NUMBER(same_length)},
    {"threads", "threads", NUMBER(threads)},
    {"seq_tokens", "seq_tokens", NUMBER(seq)},
    {"mem_tokens", "mem_tokens", NUMBER(mem)},
    {"batch_size", "batch_size", NUMBER(batch)},
};

enum { KEYS = ARRAY_LEN(keys), KEYS_SHOWN = KEYS - 3, WORD_KEYS = KEY_HALT + 1 };

/* The key named text[0..len); "mem-kind" is "mem_kind". -1 with an error where there is none. */
static int find_key(const char *text, size_t len, struct err *e)
{
    const char *names[KEYS_SHOWN + 1] = {0};
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)min_int((int)len, 31), text);
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return i;
    for (int i = 0; i < KEYS_SHOWN; i++)
        names[i] = keys[i].name;
    unknown_word(e, "filter key", name, names, NULL);
    return -1;
}

enum status filter_parse(struct filter *f, const char *text, struct err *e)
{
    const bool negate = *text == '!';
    const char *const name = text + negate;
    const size_t len = strcspn(name, ":<>=");
    const char *value = name + len;

    *f = (struct filter){.negate = negate, .op = FILTER_IS};
    if (!*value || len == 0)
        return fail(e, E_USAGE,
                    "--filter \"%.60s\": no comparison  -> write key:value, !key:value or key<=N",
                    text);
    f->key = find_key(name, len, e);
    if (f->key < 0)
        return E_USAGE;
    if (*value == '<' || *value == '>') {
        const bool or_equal = value[1] == '=';
        f->op = *value == '<' ? or_equal ? FILTER_LESS_EQUAL : FILTER_LESS
                : or_equal    ? FILTER_MORE_EQUAL
                              : FILTER_MORE;
        value += or_equal;
    }
    value++;
    if (!*value)
        return fail(e, E_USAGE, "--filter \"%.60s\": no value  -> write it behind the %c", text,
                    value[-1]);
    if (f->key >= WORD_KEYS)
        return number_parse(&f->number, "--filter", value, 0, INT_MAX, e);
    if (f->op != FILTER_IS)
        return fail(e, E_USAGE, "--filter \"%.60s\": %s is a word  -> write %s:%.40s", text,
                    keys[f->key].name, keys[f->key].name, value);
    f->text = value;
    return OK;
}

static const char *described_as(const struct bench_case *c, enum text_key key)
{
    struct case_words words;

    case_describe(&words, c);
    return key == KEY_FFN         ? words.ffn
           : key == KEY_NORM_KIND ? words.norm_kind
           : key == KEY_RNN_CELL  ? words.rnn_cell
                                  : words.halt;
}

static const char *word_of(const struct bench_case *c, enum text_key key)
{
    switch (key) {
    case KEY_VARIANT:
        return c->variant->name;
    case KEY_BACKEND:
        return c->backend->name;
    case KEY_WORKLOAD:
        return workload_name[c->workload];
    case KEY_PHASE:
        return phase_name[c->phase];
    case KEY_MEM_KIND:
        return mem_kind_name[c->mem_kind];
    case KEY_GATE:
        return c->gate ? c->gate->name : "";
    case KEY_NORM:
        return wiring_name[c->wiring];
    case KEY_FFN:
    case KEY_NORM_KIND:
    case KEY_RNN_CELL:
    case KEY_HALT:
        return described_as(c, key);
    }
    return "";
}

static bool compare(enum filter_op op, int a, int b)
{
    switch (op) {
    case FILTER_IS:
        return a == b;
    case FILTER_LESS:
        return a < b;
    case FILTER_LESS_EQUAL:
        return a <= b;
    case FILTER_MORE:
        return a > b;
    case FILTER_MORE_EQUAL:
        return a >= b;
    }
    return false;
}

bool filter_match(const struct filter *f, const struct bench_case *c)
{
    bool match;

    if (f->key < WORD_KEYS) {
        match = strcmp(word_of(c, (enum text_key)f->key), f->text) == 0;
    } else {
        const int n = *(const int *)((const char *)c + keys[f->key].at);
        match = n >= 0 && compare(f->op, n, f->number);
    }
    return match != f->negate;
}

bool filter_match_row(const struct filter *f, const struct table *t, const void *row)
{
    bool match;
    int i = 0;

    while (i < t->n && strcmp(t->columns[i].name, keys[f->key].column) != 0)
        i++;
    const char *const field = (const char *)row + (i < t->n ? t->columns[i].offset : 0);
    if (i == t->n) {
        match = false; /* a key that the table has no column for */
    } else if (f->key < WORD_KEYS) {
        match = strcmp(field, f->text) == 0;
    } else {
        const int64_t n = *(const int64_t *)field;
        match = n != I64_EMPTY && compare(f->op, (int)n, f->number);
    }
    return match != f->negate;
}
