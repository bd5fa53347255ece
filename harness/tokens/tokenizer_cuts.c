/* SPDX-License-Identifier: MIT
 *
 * Where tokens are cut out of a text. As in the publisher's library: the longest that begins first is
 * found; one that is to stand alone and does not is text, with what it covers; one that takes white
 * space takes what no token before has taken. The next one is searched behind the token's own text, so
 * that it may begin with white space that is taken: it is a token, too, and what follows it is text
 * again, unless it takes white space before it and nothing of it is left. */
#include "tokenizer_inner.h"

/* The longest of these tokens that stands at the beginning of the text; NULL = none. */
static const struct cut *cut_at(const struct cuts *c, const char *text, size_t n)
{
    const unsigned char first = (unsigned char)*text;

    for (int i = c->first[first]; i < c->first[first + 1]; i++)
        if (c->v[i].text.n <= n && memcmp(c->v[i].text.data, text, c->v[i].text.n) == 0)
            return &c->v[i];
    return NULL;
}

/* The last character of n > 0 bytes and its length. */
static int32_t last_of(const char *text, size_t n, size_t *length)
{
    size_t at = n - 1;

    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return utf8_next(text + at, n - at, length);
}

/* Are no letters of words beside it? */
static bool stands_alone(const char *text, size_t n, size_t from, size_t to)
{
    size_t length;

    return (from == 0 || !is_word(last_of(text, from, &length))) &&
           (to == n || !is_word(utf8_next(text + to, n - to, &length)));
}

static size_t white_before(const char *text, size_t at)
{
    size_t length;

    while (at > 0 && is_white(last_of(text, at, &length)))
        at -= length;
    return at;
}

static size_t white_behind(const char *text, size_t n, size_t at)
{
    size_t length;

    while (at < n && is_white(utf8_next(text + at, n - at, &length)))
        at += length;
    return at;
}

const struct cut *cuts_next(struct cut_scan *s, size_t *from, size_t *to)
{
    *from = s->left;
    while (s->at < s->n && s->cuts->n > 0) {
        const struct cut *const cut = cut_at(s->cuts, s->text + s->at, s->n - s->at);
        size_t begin = s->at, end = s->at + (cut ? cut->text.n : 1);
        s->at = end;
        if (!cut || (cut->single_word && !stands_alone(s->text, s->n, begin, end)))
            continue;
        if (cut->lstrip)
            begin = white_before(s->text, begin);
        if (cut->rstrip)
            end = white_behind(s->text, s->n, end);
        if (cut->lstrip && end <= *from)
            continue;
        *to = begin > *from ? begin : *from;
        s->left = end;
        return cut;
    }
    *to = s->n;
    s->left = s->n;
    return NULL;
}
