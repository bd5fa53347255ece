/* SPDX-License-Identifier: MIT
 *
 * Running a byte-pair tokenizer: cut at added tokens, normalize what lies between, cut at those
 * that are compared with normalized text, cut into words, merge each. */
#include "tokenizer_inner.h"

#include "harness/util/grow.h"
#include "harness/util/text.h"
#include "variants/base/gguf.h"
#include "variants/base/lfs_pointer.h"

enum status tokenizer_bad(const struct tokenizer *t, struct err *e, const char *fmt, ...)
{
    char what[sizeof(e->msg)];

    VPRINT(what, sizeof(what), fmt);
    return fail(e, E_IO, "tokenizer %s: %s", t->dir, what);
}

/* ---- opening ------------------------------------------------------------------------------ */

enum status tokenizer_file(const struct tokenizer *t, const char *name, struct bytes *out,
                           struct err *e)
{
    char path[FILE_PATH];
    struct stat s;

    TRY(file_join(path, t->dir, name, e));
    if (stat(path, &s) == 0 && s.st_size > TOKENS_FILE_MOST)
        return tokenizer_bad(t, e, "%s has %lld bytes  -> use a file of at most %d", name,
                             (long long)s.st_size, TOKENS_FILE_MOST);
    const enum status read = file_read(out, path, e);
    if (read != OK || !is_lfs_pointer(out->data, out->n))
        return read;
    free(out->data);
    *out = (struct bytes){0};
    return tokenizer_bad(t, e, "%s is " LFS_POINTER_SAYS, name);
}

bool tokenizer_has(const struct tokenizer *t, const char *name)
{
    char path[FILE_PATH];

    return file_join(path, t->dir, name, NULL) == OK && access(path, F_OK) == 0;
}

static enum status read_files(struct tokenizer *t, struct err *e)
{
    if (gguf_is(t->dir) || tokenizer_has(t, "tokenizer.json"))
        return tokenizer_read_json(t, e);
    if (tokenizer_has(t, "vocab.json"))
        return tokenizer_read_pair(t, e);
    if (tokenizer_has(t, "vocab.txt"))
        return tokenizer_read_words(t, e);
    if (tokenizer_has(t, "vocab.pkl") || tokenizer_has(t, "vocab.bin"))
        return tokenizer_bad(t, e, "a pickle is not read  -> give vocab.txt, one word a line");
    return tokenizer_bad(
        t, e, "has no tokenizer  -> add tokenizer.json, vocab.json with merges.txt, or vocab.txt");
}

enum status tokenizer_open(struct tokenizer **t, const char *dir, struct err *e)
{
    struct tokenizer *const new = need_room(1, sizeof(*new));

    *t = NULL;
    new->dir = need_text("%s", dir);
    new->eos = new->unk = new->begin = new->end = -1;
    enum status st = read_files(new, e);
    if (st == OK && !new->lists_words)
        st = tokenizer_read_front(new, e);
    if (st == OK)
        *t = new;
    else
        tokenizer_close(new);
    return st;
}

static void free_cuts(struct cuts *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->v[i].text.data);
    free(c->v);
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n_normalizers; i++) {
        free(t->normalizer[i].from);
        free(t->normalizer[i].to);
    }
    for (int i = 0; i < t->n_cutters; i++)
        words_close(&t->cutter[i].words);
    json_decref(t->added);
    free_cuts(&t->before);
    free_cuts(&t->after);
    vocab_free(&t->vocab);
    merges_free(&t->merges);
    bpe_free(&t->work);
    free(t->dir);
    free(t);
}

int tokenizer_vocab(const struct tokenizer *t) { return t->vocab.n; }

bool tokenizer_lists_words(const struct tokenizer *t) { return t->lists_words; }

const int32_t *tokenizer_prefix(const struct tokenizer *t, int *n)
{
    *n = t->n_prefix;
    return t->prefix;
}

enum switched tokenizer_switched(const struct tokenizer *t) { return t->switched; }

int32_t tokenizer_begin(const struct tokenizer *t) { return t->lists_words ? t->eos : t->begin; }

/* ---- encoding ----------------------------------------------------------------------------- */

enum status ids_append(struct ids *out, int32_t id, struct err *e)
{
    TRY(GROW(out->v, out->n, e));

    out->v[out->n++] = id;
    return OK;
}

static enum status encode_word(struct tokenizer *t, const char *word, size_t n, struct ids *out,
                               struct err *e)
{
    const int32_t whole = t->whole_first ? vocab_find(&t->vocab, word, n) : -1;
    size_t length;

    if (whole >= 0)
        return ids_append(out, whole, e);
    enum status st = bpe_begin(&t->work, n, e);
    for (size_t at = 0; st == OK && at < n; at += length) {
        length = 1;
        if (!t->bytes)
            (void)utf8_next(word + at, n - at, &length);
        const int32_t id = t->bytes ? -1 : vocab_find(&t->vocab, word + at, length);
        for (size_t i = 0; id < 0 && i < length; i++)
            bpe_add(&t->work, t->byte[(unsigned char)word[at + i]]);
        if (id >= 0)
            bpe_add(&t->work, id);
    }
    if (st != OK || n == 0)
        return st;
    bpe_run(&t->work, &t->merges);
    for (int32_t i = 0; st == OK && i >= 0; i = t->work.symbol[i].after)
        st = ids_append(out, t->work.symbol[i].id, e);
    return st;
}

/* As the cutter sees it: its blanks in place of spaces, and one in front where it is wanted. */
static enum status blanks(const struct cutter *c, const char *text, size_t n, bool first,
                          struct bytes *out, struct err *e)
{
    const size_t blank = strlen(c->text);
    const bool begins =
        (n >= blank && memcmp(text, c->text, blank) == 0) || (c->replaces && *text == ' ');
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    if (!begins && (c->blank == BLANK_EACH || (c->blank == BLANK_FIRST && first)))
        fputs(c->text, f);
    if (c->replaces)
        text_replaced(f, text, n, " ", c->text);
    else
        fwrite(text, 1, n, f);
    return bytes_close(f, out, e);
}

/* A cutter at work on a piece; `made` is the piece as it sees it, NULL = as it is. */
struct cutting {
    struct word_scan scan;
    struct bytes made;
};

static enum status begin_cutting(struct cutting *k, const struct cutter *c, const char *text,
                                 size_t n, bool first, struct err *e)
{
    k->made = (struct bytes){0};
    if (c->replaces || c->blank) {
        TRY(blanks(c, text, n, first, &k->made, e));
        text = k->made.data;
        n = k->made.n;
    }
    return word_scan(&k->scan, &c->words, text, n, e);
}

/* A piece between added tokens, by one cutter behind the other; `first`: it begins the text, which
 * only the first cutter asks for. */
static enum status encode_piece(struct tokenizer *t, const char *text, size_t n, bool first,
                                struct ids *out, struct err *e)
{
    struct cutting at[MAX_CUTTERS];
    int deep = 0; /* cutters at work */

    if (n == 0)
        return OK;
    if (t->n_cutters == 0)
        return encode_word(t, text, n, out, e);
    enum status st = begin_cutting(&at[deep++], &t->cutter[0], text, n, first, e);
    while (deep > 0) {
        const char *word;
        if (st == OK)
            st = word_next(&at[deep - 1].scan, &word, &n, e);
        if (st != OK || n == 0)
            free(at[--deep].made.data);
        else if (deep == t->n_cutters)
            st = encode_word(t, word, n, out, e);
        else {
            st = begin_cutting(&at[deep], &t->cutter[deep], word, n, false, e);
            deep++;
        }
    }
    return st;
}

/* Text that is normalized. */
static enum status encode_normal(struct tokenizer *t, const char *text, size_t n, bool first,
                                 struct ids *out, struct err *e)
{
    struct cut_scan scan = {.cuts = &t->after, .text = text, .n = n};
    const struct cut *cut;

    do {
        size_t from, to;
        cut = cuts_next(&scan, &from, &to);
        TRY(encode_piece(t, text + from, to - from, first, out, e));
        if (cut)
            TRY(ids_append(out, cut->id, e));
        first = false;
    } while (cut);
    return OK;
}

/* Composition changes nothing below U+0300, whose first byte is 0xcc. */
static bool is_composed(const char *text, size_t n)
{
    size_t i = 0;

    while (i < n && (unsigned char)text[i] < 0xcc)
        i++;
    return i == n;
}

static enum status normalize_by(const struct normalizer *by, const char *text, size_t n,
                                struct bytes *out, struct err *e)
{
    if (by->kind == NORMALIZE_NFC && !is_composed(text, n))
        return unicode_compose(out, text, n, e);
    FILE *const f = bytes_open(out, e);
    if (!f)
        return E_NOMEM;
    if (by->kind == NORMALIZE_PREPEND && n > 0)
        fputs(by->to, f);
    if (by->kind == NORMALIZE_REPLACE)
        text_replaced(f, text, n, by->from, by->to);
    else
        fwrite(text, 1, n, f);
    return bytes_close(f, out, e);
}

enum status tokenizer_normalize(const struct tokenizer *t, const char *text, size_t n,
                                struct bytes *out, struct err *e)
{
    enum status st = normalize_by(&(struct normalizer){.kind = NORMALIZE_NOTHING}, text, n, out, e);

    for (int i = 0; st == OK && i < t->n_normalizers; i++) {
        struct bytes next = {0};
        st = normalize_by(&t->normalizer[i], out->data, out->n, &next, e);
        free(out->data);
        *out = next;
    }
    return st;
}

static enum status encode(struct tokenizer *t, const char *text, size_t n, struct ids *out,
                          struct err *e)
{
    struct cut_scan scan = {.cuts = &t->before, .text = text, .n = n};
    enum status st = OK;
    const struct cut *cut;
    bool first = true;

    do {
        size_t from, to;
        struct bytes normal = {0};
        cut = cuts_next(&scan, &from, &to);
        if (to > from)
            st = tokenizer_normalize(t, text + from, to - from, &normal, e);
        if (st == OK && normal.n > 0)
            st = encode_normal(t, normal.data, normal.n, first, out, e);
        free(normal.data);
        if (st == OK && cut)
            st = ids_append(out, cut->id, e);
        first = false;
    } while (st == OK && cut);
    return st;
}

enum status tokenizer_encode(struct tokenizer *t, const char *text, size_t n, struct ids *out,
                             struct err *e)
{
    const size_t valid = utf8_valid(text, n);

    if (valid < n)
        return fail(e, E_IO, "byte %zu of the text is not UTF-8  -> convert it", valid);
    return t->lists_words ? tokenizer_words(t, text, n, out, e) : encode(t, text, n, out, e);
}
