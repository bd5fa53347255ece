/* SPDX-License-Identifier: MIT
 *
 * See vocab.h. */
#include "vocab.h"

#include <xxhash.h>

static enum status grow(struct vocab *v, int64_t id, struct err *e)
{
    size_t room = v->room ? (size_t)v->room : 256;

    while (room <= (size_t)id)
        room *= 2;
    struct token *const grown = realloc(v->token, room * sizeof(*grown));
    if (!grown)
        return fail(e, E_NOMEM, "no memory for %zu tokens", room);
    memset(grown + v->room, 0, (room - (size_t)v->room) * sizeof(*grown));
    v->token = grown;
    v->room = (int)room;
    return OK;
}

enum status vocab_put(struct vocab *v, int64_t id, const char *text, size_t n, bool apart,
                      struct err *e)
{
    if (id < 0 || id >= MAX_TOKENS)
        return fail(e, E_IO, "id %lld is not in 0..%d", (long long)id, MAX_TOKENS - 1);
    if (id >= v->room && grow(v, id, e) != OK)
        return E_NOMEM;
    v->n = max_int(v->n, (int)id + 1);
    struct token *const t = &v->token[id];
    if (t->text && (t->n != n || memcmp(t->text, text, n) != 0))
        return fail(e, E_IO, "id %lld is that of \"%.40s\" and of \"%.40s\"", (long long)id,
                    t->text, text);
    if (t->text)
        return OK;
    t->text = malloc(n + 1);
    if (!t->text)
        return fail(e, E_NOMEM, "no memory for a token of %zu bytes", n);
    memcpy(t->text, text, n);
    t->text[n] = '\0';
    t->n = n;
    t->apart = apart;
    return OK;
}

static size_t slot_of(const struct vocab *v, const char *text, size_t n)
{
    return (size_t)XXH3_64bits(text, n) & (v->slots - 1);
}

enum status vocab_index(struct vocab *v, struct err *e)
{
    v->slots = 16;
    while (v->slots < 2 * (size_t)v->n)
        v->slots *= 2;
    free(v->at);
    v->at = malloc(v->slots * sizeof(*v->at));
    if (!v->at)
        return fail(e, E_NOMEM, "no memory for a table of %d tokens", v->n);
    for (size_t i = 0; i < v->slots; i++)
        v->at[i] = -1;
    for (int id = 0; id < v->n; id++) {
        const struct token *const t = &v->token[id];
        if (!t->text || t->apart || vocab_find(v, t->text, t->n) >= 0)
            continue;
        size_t i = slot_of(v, t->text, t->n);
        while (v->at[i] >= 0)
            i = (i + 1) & (v->slots - 1);
        v->at[i] = id;
    }
    return OK;
}

int32_t vocab_find(const struct vocab *v, const char *text, size_t n)
{
    for (size_t i = slot_of(v, text, n); v->at[i] >= 0; i = (i + 1) & (v->slots - 1)) {
        const struct token *const t = &v->token[v->at[i]];
        if (t->n == n && memcmp(t->text, text, n) == 0)
            return v->at[i];
    }
    return -1;
}

void vocab_free(struct vocab *v)
{
    for (int i = 0; i < v->n; i++)
        free(v->token[i].text);
    free(v->token);
    free(v->at);
    *v = (struct vocab){0};
}
