/* SPDX-License-Identifier: MIT
 *
 * bench check --tokens: a published tokenizer against a file of texts and their ids. */
#include "harness/command/commands.h"

#include "finding.h"
#include "harness/tokens/tokenizer.h"
#include "harness/tokens/unicode.h"
#include "variants/base/json_text.h"

struct texts {
    const struct options *opt;
    int n, failed;
};

/* One text, by its line from 1 on: `why` is "" if all is equal. */
static void report(struct texts *t, int line, const char *why)
{
    char what[FILE_PATH + 32];

    snprintf(what, sizeof(what), "%s:%d", t->opt->golden, line);
    t->n++;
    t->failed += *why != '\0';
    finding_print(t->opt, &(struct finding){.result = *why ? FINDING_FAILED : FINDING_PASSED,
                                            .backend = "",
                                            .kind = "tokens",
                                            .subject = what,
                                            .error = NAN,
                                            .limit = NAN,
                                            .detail = why});
}

struct want {
    struct bytes text, back;
    bool decodes;
    struct ids ids;
};

static void free_want(struct want *w)
{
    free(w->text.data);
    free(w->back.data);
    free(w->ids.v);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const json_t *j, struct bytes *out)
{
    const char *const hex = json_string_value(j);
    const size_t n = json_string_length(j) / 2;

    if (!hex || json_string_length(j) % 2 != 0)
        return false;
    out->data = need_room(n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out->data[i] = (char)(16 * high + low);
    }
    out->n = n;
    return true;
}

static bool read_ids(const json_t *j, int vocab, struct ids *out)
{
    out->n = json_array_size(j);
    out->v = need_room(out->n + 1, sizeof(*out->v));
    for (size_t i = 0; i < out->n; i++) {
        const json_t *const id = json_array_get(j, i);
        const json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= vocab)
            return false;
        out->v[i] = (int32_t)value;
    }
    return json_is_array(j);
}

static bool read_want(struct want *w, const char *line, size_t n, int vocab)
{
    json_t *const j = json_read(line, n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *const back = json_object_get(j, "back");

    w->decodes = back != NULL;
    const bool good = read_hex(json_object_get(j, "hex"), &w->text) &&
                      read_ids(json_object_get(j, "ids"), vocab, &w->ids) &&
                      (!back || read_hex(back, &w->back));
    json_decref(j);
    return good;
}

/* Describes the first difference. */
static enum status compare(struct tokenizer *t, const struct want *w, char *why, size_t size,
                           struct err *e)
{
    struct bytes text = {0}, back = {0};
    struct ids got = {0};
    size_t same = 0;
    enum status st = utf8_replace(&text, w->text.data, w->text.n, e);

    *why = '\0';
    if (st == OK)
        st = tokenizer_encode(t, text.data, text.n, &got, e);
    if (st == OK && w->decodes)
        st = tokenizer_decode(t, w->ids.v, w->ids.n, &back, e);
    while (same < got.n && same < w->ids.n && got.v[same] == w->ids.v[same])
        same++;
    if (st == OK && same < w->ids.n && same < got.n)
        snprintf(why, size, "token %zu is %d, not %d", same, got.v[same], w->ids.v[same]);
    else if (st == OK && got.n != w->ids.n)
        snprintf(why, size, "%zu tokens, not %zu", got.n, w->ids.n);
    else if (st == OK && w->decodes &&
             (back.n != w->back.n || memcmp(back.data, w->back.data, back.n) != 0))
        snprintf(why, size, "its tokens are decoded as another text");
    free(text.data);
    free(back.data);
    free(got.v);
    return st;
}

/* Each line of the file is {"hex": bytes of a text, "ids": [...], "back": bytes}; without "back"
 * the text is not decoded. Parts that are not UTF-8 are replaced first. E_IO naming the line that
 * is none of these. */
static enum status golden_tokens(struct tokenizer *t, const char *path, struct texts *texts,
                                 struct err *e)
{
    struct bytes file = {0};
    enum status st = file_read(&file, path, e);
    const char *const end = file.data + file.n;
    int line = 0;

    for (const char *at = file.data, *next; st == OK && at < end; at = next) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        const char *const to = stop ? stop : end;
        struct want w = {0};
        char why[128];
        next = to + 1;
        line++;
        if (!read_want(&w, at, (size_t)(to - at), tokenizer_vocab(t)))
            st = fail(e, E_IO,
                      "%s: line %d is not a text with its ids  -> give a file of golden texts",
                      path, line);
        if (st == OK)
            st = compare(t, &w, why, sizeof(why), e);
        if (st == OK)
            report(texts, line, why);
        free_want(&w);
    }
    if (st == OK && line == 0)
        st = fail(e, E_IO, "%s is empty  -> give a file of golden texts", path);
    free(file.data);
    return st;
}

/* Options of checking a backend do not apply here. */
static enum status check_options(const struct options *o, struct err *e)
{
    static const char *const others[] = {"variant", "backend", "impl",    "seed",
                                         "bench",   "isolate", "progress"};

    if (!o->golden)
        return fail(e, E_USAGE, "--tokens needs texts and their ids  -> add --golden FILE");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (options_typed(o, others[i]))
            return fail(e, E_USAGE, "--%s does not apply to --tokens  -> leave it out", others[i]);
    return findings_check(o, e);
}

enum status check_tokens(const struct options *o, int *code, struct err *e)
{
    struct texts t = {.opt = o};
    struct tokenizer *tokenizer = NULL;
    enum status st = check_options(o, e);

    if (st == OK)
        st = tokenizer_open(&tokenizer, o->tokens, e);
    if (st == OK) {
        findings_begin(o);
        st = golden_tokens(tokenizer, o->golden, &t, e);
    }
    tokenizer_close(tokenizer);
    const bool rows = findings_are_rows(o);
    if (st == OK && (!rows || !o->quiet))
        fprintf(rows ? stderr : stdout, "check: %d text%s, %d passed, %d failed\n", t.n,
                plural(t.n), t.n - t.failed, t.failed);
    if (t.failed > 0)
        *code = EXIT_WRONG_NUMBERS;
    return st;
}
