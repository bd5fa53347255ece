/* SPDX-License-Identifier: MIT
 *
 * The table of sources, and their texts. */
#include "synthetic.h"

static const struct source_kind *const sources[] = {
    &source_copy,      &source_recall,      &source_mqar,         &source_fuzzy,  &source_noisy,
    &source_selcopy,   &source_compression, &source_memorisation, &source_cue,    &source_flipflop,
    &source_group,     &source_markov,      &source_dyck,         &source_lookup, &source_reverse,
    &source_translate, &source_sort,
};

/* ---- texts -------------------------------------------------------------------------------- */

static const struct source_kind *kind_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (keyed_is(text, sources[i]->name))
            return sources[i];
    return NULL;
}

bool synthetic_named(const char *text) { return kind_of(text) != NULL; }

static struct keyed_name named(const struct source_kind *kind)
{
    return (struct keyed_name){"source", kind->name, kind->keys};
}

bool synthetic_source(int i, char text[KEYED_TEXT], const char **about)
{
    if (i >= (int)ARRAY_LEN(sources))
        return false;
    const struct keyed_name name = named(sources[i]);
    keyed_usual(text, &name);
    *about = sources[i]->about;
    return true;
}

enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e)
{
    enum { SYMBOLS = 256 };
    struct err why;

    *s = (struct synthetic){.kind = kind_of(text)};
    CHECK(s->kind);
    const struct keyed_name name = named(s->kind);
    TRY(keyed_read(&name, text, s->value, &s->seed, e));
    if (s->kind->check && s->kind->check(s, &why) != OK)
        return fail(e, E_USAGE, "source \"%.120s\": %s", text, why.msg);
    if (synthetic_vocab(s) > SYMBOLS)
        return fail(e, E_USAGE, "source \"%.120s\": %d symbols  -> use %d at most", text,
                    synthetic_vocab(s), (int)SYMBOLS);
    return OK;
}

int synthetic_vocab(const struct synthetic *s) { return s->kind->vocab(s); }

void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n)
{
    s->kind->fill(s, (uint64_t)split + SPLIT_COUNT * s->seed, symbols, n);
}

/* ---- floors ------------------------------------------------------------------------------- */

size_t synthetic_reach(bool recompute, int N, int M, int L, int i)
{
    const size_t n = (size_t)N, m = (size_t)M, l = (size_t)L;
    const size_t past = recompute || M == 0 ? m : n * m + (n - 1) * (l - 1);

    return past + (size_t)i + 1;
}

double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach,
                     struct source_memo *memo)
{
    struct source_memo none = {0};

    CHECK(reach <= at);
    return s->kind->nll(s, symbols, at, (struct source_view){reach, memo ? memo : &none});
}

bool synthetic_asks(const char *text)
{
    const struct source_kind *const kind = kind_of(text);

    return kind && kind->answers;
}

struct source_pair synthetic_pair(const struct synthetic *s)
{
    return s->kind->pair ? s->kind->pair(s) : (struct source_pair){0};
}

const char *synthetic_pairs(char text[KEYED_TEXT])
{
    int n = 0;

    snprintf(text, KEYED_TEXT, "--corpus");
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (sources[i]->pair)
            text_append(text, KEYED_TEXT, "%s %s:", n++ ? "," : "", sources[i]->name);
    return text;
}

bool synthetic_answers(const struct synthetic *s, const uint8_t *symbols, size_t at)
{
    return s->kind->answers && s->kind->answers(s, symbols, at);
}
