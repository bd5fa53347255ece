/* SPDX-License-Identifier: MIT
 *
 * Reading a study's file. */
#include "study_file.h"

#include "harness/cli/option_set.h"
#include "harness/cli/option_words.h"
#include "harness/learn/source/synthetic.h"
#include "harness/learn/task/task.h"
#include "harness/measure/study_verdict.h"
#include "harness/plan/plan.h"

#include <ctype.h>

enum { SEEDS_MAX = 1000, RATES_OUT = 6 }; /* factors of two from the start of a search */
static const double rate_most = 10;

const char study_copy[] = "study.txt";

/* A line of the file. */
struct line {
    struct study *s;
    const char *key;
    struct words words; /* of the value */
    const char *word;   /* of keys that take one */
    int number;
    void *to; /* the field, of keys that have one */
    int most, open;
};

typedef enum status set_fn(struct line *l, struct err *e);

static const char *keep(struct line *l, const char *text, size_t n)
{
    const char *const kept = options_keep(&l->s->words, text, n);

    NEED(kept);
    return kept;
}

/* The words from `first` on, as one line. */
static const char *join(struct line *l, int first)
{
    struct bytes line;
    FILE *const f = bytes_begin(&line);

    for (int i = first; i < l->words.n; i++) {
        fputs(i > first ? " " : "", f);
        word_print(f, l->words.v[i].text, '\0');
    }
    bytes_end(f, &line);
    const char *const kept = keep(l, line.data, line.n);
    free(line.data);
    return kept;
}

static enum status set_number(struct line *l, struct err *e)
{
    return number_parse(l->to, l->key, l->word, 1, l->most, e);
}

static enum status set_decimal(struct line *l, struct err *e)
{
    return decimal_parse(l->to, l->key, l->word, 0, 1e6, l->open, e);
}

static enum status set_words(struct line *l, struct err *e)
{
    *(const char **)l->to = join(l, 0);
    return OK;
}

/* ---- values with names --------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t n = 0;

    while (isalnum((unsigned char)name[n]) || (name[n] && strchr("-_.+", name[n])))
        n++;
    return n > 0 && n <= 40 && !name[n];
}

/* The first word: "NAME:". */
static enum status take_name(struct line *l, const char **name, struct err *e)
{
    const char *const word = l->words.n > 0 ? l->words.v[0].text : "";
    const size_t n = strlen(word);

    *name = "";
    if (n < 2 || word[n - 1] != ':')
        return fail(e, E_USAGE, "%s has no name  -> write %s = NAME: ...", l->key, l->key);
    *name = keep(l, word, n - 1);
    return is_name(*name)
               ? OK
               : fail(e, E_USAGE,
                      "\"%.60s\" is not a name  -> use up to 40 letters, digits and -_.+", *name);
}

static enum status add_item(struct study_items *list, const struct line *l, const char *name,
                            const char *words, struct err *e)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->v[i].name, name) == 0)
            return fail(e, E_USAGE, "%s %s twice  -> choose another name", l->key, name);
    TRY(GROW(list->v, list->n, e));
    list->v[list->n++] = (struct study_item){name, words, l->number, -1, -1};
    return OK;
}

static enum status set_item(struct line *l, struct study_items *list, struct err *e)
{
    const char *name = NULL;

    TRY(take_name(l, &name, e));
    return add_item(list, l, name, join(l, 1), e);
}

static enum status set_size(struct line *l, struct err *e) { return set_item(l, &l->s->sizes, e); }

/* Calls `add` for each element of lists a,b that stand in one or several words. */
static enum status
each_element(struct line *l, enum status (*add)(struct line *l, const char *element, struct err *e),
             struct err *e)
{
    for (int i = 0; i < l->words.n; i++)
        for (const char *at = l->words.v[i].text; *at; at += *at == ',') {
            const size_t n = strcspn(at, ",");
            const char *const one = keep(l, at, n);
            if (*one)
                TRY(add(l, one, e));
            at += n;
        }
    return OK;
}

static enum status add_variant(struct line *l, const char *name, struct err *e)
{
    char text[128];

    snprintf(text, sizeof(text), "--variant %.100s", name);
    return add_item(&l->s->variants, l, name, keep(l, text, strlen(text)), e);
}

/* NAME: OPTIONS, or the name of one of the registry alone. */
static enum status set_variant(struct line *l, struct err *e)
{
    const char *const name = l->words.n == 1 ? l->words.v[0].text : "";

    return variant_find(name) ? add_variant(l, name, e) : set_item(l, &l->s->variants, e);
}

/* Names of the registry, and its sets. */
static enum status add_variants(struct line *l, const char *name, struct err *e)
{
    const bool set = is_variant_set(name);

    if (!set)
        return add_variant(l, name, e);
    for (int i = 0; variants[i]; i++)
        if (variant_set_has(name, i))
            TRY(add_variant(l, variants[i]->name, e));
    return OK;
}

static enum status set_variants(struct line *l, struct err *e)
{
    return each_element(l, add_variants, e);
}

/* Texts are compared by their losses, tasks by their returns. */
static enum status add_corpus(const struct line *l, const struct study_corpus *c, struct err *e)
{
    struct study *const s = l->s;

    for (int i = 0; i < s->n_corpora; i++) {
        if (strcmp(s->corpora[i].name, c->name) == 0)
            return fail(e, E_USAGE, "%s %s twice  -> choose another name", l->key, c->name);
        if (s->corpora[i].is_task != c->is_task)
            return fail(e, E_USAGE, "corpus and task exclude each other  -> make a study of each");
    }
    TRY(GROW(s->corpora, s->n_corpora, e));
    s->corpora[s->n_corpora++] = *c;
    return OK;
}

static enum status set_corpus(struct line *l, struct err *e)
{
    struct study_corpus c = {0};
    const struct word *const w = l->words.v;

    TRY(take_name(l, &c.name, e));
    if (l->words.n == 2) {
        c.train = w[1].text;
        c.test = synthetic_named(c.train) ? c.train : "";
    } else if (l->words.n == 4) {
        c = (struct study_corpus){
            .name = c.name, .train = w[1].text, .valid = w[2].text, .test = w[3].text};
    } else {
        return fail(e, E_USAGE,
                    "corpus %s has %d texts  -> give the files to train, validate and test on, one "
                    "file, or one generated source such as %s",
                    c.name, l->words.n - 1, SOURCE_DEFAULT);
    }
    return add_corpus(l, &c, e);
}

static enum status set_task(struct line *l, struct err *e)
{
    struct study_corpus c = {.is_task = true};

    TRY(take_name(l, &c.name, e));
    if (l->words.n != 2 || !task_named(l->words.v[1].text))
        return fail(e, E_USAGE, "task %s has no task  -> write one of bench list tasks", c.name);
    c.train = c.test = l->words.v[1].text;
    return add_corpus(l, &c, e);
}

/* ---- plain values --------------------------------------------------------------------------- */

static enum status add_rate(struct line *l, const char *text, struct err *e)
{
    struct study *const s = l->s;
    double rate = 0;

    if (strcmp(text, "auto") == 0) {
        s->search = true;
        return OK;
    }
    TRY(decimal_parse(&rate, l->key, text, 0, rate_most, OPEN_LOW, e));
    for (int i = 0; i < s->n_rates; i++)
        if (s->rates[i] == rate)
            return fail(e, E_USAGE, "rate %s twice  -> give each once", text);
    TRY(GROW(s->rates, s->n_rates, e));
    s->rates[s->n_rates++] = rate;
    return OK;
}

static enum status set_rates(struct line *l, struct err *e) { return each_element(l, add_rate, e); }

/* The index of a variant; -1: none of those above. */
static int find_variant(const struct study *s, const char *name)
{
    int i = s->variants.n - 1;

    while (i >= 0 && strcmp(s->variants.v[i].name, name) != 0)
        i--;
    return i;
}

/* NAME: contenders that take the rate of that one. */
static enum status set_rates_of(struct line *l, struct err *e)
{
    const char *name = "";

    TRY(take_name(l, &name, e));
    const int from = find_variant(l->s, name);
    for (int i = 1; i <= l->words.n; i++) {
        const char *const word = i < l->words.n ? l->words.v[i].text : name;
        const int at = find_variant(l->s, word);
        if (at < 0 || l->words.n < 2)
            return fail(
                e, E_USAGE,
                "%s: %.60s is none of the variants above it  -> write above it: variants = ...",
                l->key, l->words.n < 2 ? "nothing" : word);
        l->s->variants.v[at].rates = at == from ? -1 : from;
    }
    return OK;
}

static enum status set_baseline(struct line *l, struct err *e)
{
    const char *const word = l->word;

    l->s->baseline = find_variant(l->s, word);
    if (l->s->baseline >= 0)
        return OK;
    if (strcmp(word, "control") == 0) {
        l->s->baseline = -1;
        return OK;
    }
    return fail(e, E_USAGE,
                "baseline %.60s is none of the variants above it  -> write above it: "
                "variants = %.60s, ...; or baseline = control",
                word, word);
}

static enum status set_budgets(struct line *l, struct err *e)
{
    struct ints *const to = l->to;

    TRY(range_parse(to, l->key, l->word, 1, l->most, e));
    if (to->n > STUDY_BUDGETS_MAX)
        return fail(e, E_USAGE, "budgets are %d  -> write at most %d", to->n, STUDY_BUDGETS_MAX);
    for (int i = 1; i < to->n; i++)
        if (to->v[i] < to->v[i - 1])
            return fail(e, E_USAGE, "budgets go down from %d to %d  -> write the least first",
                        to->v[i - 1], to->v[i]);
    return OK;
}

static enum status set_equal(struct line *l, struct err *e)
{
    static const char *const words[] = {"no", "yes", NULL};
    const int i = word_index(l->word, words);

    l->s->equal_parameters = i == 1;
    return i >= 0 ? OK : fail(e, E_USAGE, "%s \"%.60s\"  -> write yes or no", l->key, l->word);
}

static enum status set_skeleton(struct line *l, struct err *e)
{
    l->s->skeleton = word_index(l->word, skeleton_name);
    return l->s->skeleton >= 0 ? OK : unknown_word(e, l->key, l->word, skeleton_name, NULL);
}

/* ---- the keys ------------------------------------------------------------------------------- */

#define FIELD(name) .at = offsetof(struct study, name)

static const struct key {
    const char *name;
    set_fn *set;
    bool again;     /* may stand on several lines */
    size_t at;      /* the field; 0: `set` knows */
    int most, open; /* of a whole number; of a decimal which ends are left out */
} keys[] = {
    {"variants", set_variants, .again = true}, /* names of `bench list variants` */
    {"variant", set_variant, .again = true},   /* NAME: options that make it */
    {"baseline", .set = set_baseline},         /* one of them, or control; [the first] */
    {"size", set_size, .again = true},         /* NAME: --layers, --d-model, --heads ... */
    {"corpus", set_corpus, .again = true},     /* NAME: TRAIN VALID TEST, a file, a source */
    {"task", set_task, .again = true},         /* NAME: a memory task, in place of corpora */
    {"rates", set_rates, .again = true},       /* learning rates to choose from; or auto */
    {"rates-of", set_rates_of, .again = true}, /* NAME: contenders that take its rate */
    /* of each variant at its best rate [3], of the baseline [6], that each rate is tried with [1] */
    {"seeds", set_number, FIELD(seeds), .most = SEEDS_MAX},
    {"baseline-seeds", set_number, FIELD(baseline_seeds), .most = SEEDS_MAX},
    {"tune-seeds", set_number, FIELD(tune_seeds), .most = SEEDS_MAX},
    /* of a training; or that it sees; or several of these, of one training; of tuning [as many] */
    {"steps", set_number, FIELD(steps), .most = INT_MAX},
    {"tokens", set_number, FIELD(tokens), .most = INT_MAX},
    {"budgets", set_budgets, FIELD(budgets), .most = INT_MAX},
    {"tune-tokens", set_number, FIELD(tune_tokens), .most = INT_MAX},
    {"train", set_words, FIELD(train)}, /* other options of bench train */
    {"eval", set_words, FIELD(eval)}, /* --seq, --mem, --bytes of bench eval; of tasks --episodes */
    {"effect", set_decimal, FIELD(effect)}, /* least difference that counts [0.005 nats] */
    {"sd", set_decimal, FIELD(sd),
     .open = OPEN_LOW},                     /* of seeds in earlier runs: what can be shown */
    {"equal-parameters", .set = set_equal}, /* yes: by --d-inner, as the largest [no] */
    {"skeleton", .set = set_skeleton},      /* norms, feed-forward and biases of all [own] */
};

static enum status unknown_key(const char *word, struct err *e)
{
    const char *names[ARRAY_LEN(keys) + 1] = {0};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        names[i] = keys[i].name;
    return unknown_word(e, "key", word, names, "bench help study");
}

static enum status read_line(struct line *l, char *text, bool *seen, struct err *e)
{
    char *const equals = strchr(text, '=');
    const size_t blank = strspn(text, " \t\r");

    if (!text[blank] || text[blank] == '#')
        return OK;
    if (!equals)
        return fail(e, E_USAGE, "no KEY = VALUE: \"%.60s\"  -> write one a line", text + blank);
    *equals = '\0';
    char *const key = text + blank;
    key[strcspn(key, " \t")] = '\0';
    size_t i = 0;
    while (i < ARRAY_LEN(keys) && strcmp(keys[i].name, key) != 0)
        i++;
    if (i == ARRAY_LEN(keys))
        return unknown_key(key, e);
    if (seen[i] && !keys[i].again)
        return fail(e, E_USAGE, "%s twice  -> write it once", key);
    seen[i] = true;
    l->key = keys[i].name;
    TRY(words_split(&l->words, &l->s->words, equals + 1, NULL, 0, e));
    if (l->words.n == 0)
        return fail(e, E_USAGE, "%s has no value  -> write KEY = VALUE", l->key);
    if (l->words.n > 1 && !keys[i].again && keys[i].set != set_words)
        return fail(e, E_USAGE, "%s takes one word, not %d  -> give one", l->key, l->words.n);
    l->word = l->words.v[0].text;
    l->to = (char *)l->s + keys[i].at;
    l->most = keys[i].most;
    l->open = keys[i].open;
    return keys[i].set(l, e);
}

static enum status read_lines(struct study *s, struct err *e)
{
    bool seen[ARRAY_LEN(keys)] = {false};
    enum status st = OK;
    int number = 1;

    for (const char *at = s->text; *at && st == OK; number++) {
        struct line l = {.s = s, .number = number};
        const size_t n = strcspn(at, "\n");
        char *const text = strndup(at, n);
        NEED(text);
        st = read_line(&l, text, seen, e);
        free(text);
        words_free(&l.words);
        at += n + (at[n] == '\n');
    }
    if (st != OK && st != E_NOMEM) {
        const struct err why = *e;
        fail(e, st, "%.200s line %d: %.400s", s->path, number - 1, why.msg);
    }
    return st;
}

bool study_scores(const struct study *s)
{
    for (int i = 0; i < s->n_corpora; i++)
        if (!s->corpora[i].is_task && *s->corpora[i].test)
            return true;
    return false;
}

/* The rates of a search in the order of their distance from its start. */
static enum status spread_rates(struct study *s, struct err *e)
{
    const double start = s->n_rates ? s->rates[0] : 3e-3;

    if (s->n_rates > 1)
        return fail(e, E_USAGE,
                    "%s: rates = auto and a list exclude each other  -> write one rate "
                    "beside auto, where it begins",
                    s->path);
    s->n_rates = 0;
    for (int i = 0; i <= 2 * RATES_OUT; i++) {
        const double rate = ldexp(start, i % 2 ? (i + 1) / 2 : -i / 2);
        if (rate > rate_most)
            continue;
        TRY(GROW(s->rates, s->n_rates, e));
        s->rates[s->n_rates++] = rate;
    }
    return OK;
}

/* Lines that a file must have, and defaults that follow from others. */
static enum status check_whole(struct study *s, struct err *e)
{
    const char *missing = s->variants.n == 0                         ? "variants"
                          : s->n_corpora == 0                        ? "corpus"
                          : s->n_rates == 0 && !s->search            ? "rates"
                          : !s->steps && !s->tokens && !s->budgets.n ? "steps"
                          : s->budgets.n && (s->search || s->n_rates > 1) && !s->tune_tokens
                              ? "tune-tokens"
                              : NULL;

    if (missing)
        return fail(e, E_USAGE, "%s has no line \"%s = ...\"  -> bench help study", s->path,
                    missing);
    if ((s->steps > 0) + (s->tokens > 0) + (s->budgets.n > 0) > 1)
        return fail(e, E_USAGE,
                    "%s gives two of steps, tokens and budgets  -> leave all but one out", s->path);
    if (s->budgets.n)
        s->tokens = s->budgets.v[s->budgets.n - 1];
    if (s->tune_seeds > s->seeds || s->tune_seeds > s->baseline_seeds)
        return fail(e, E_USAGE, "%s: tune-seeds %d are more than the seeds  -> use at most %d",
                    s->path, s->tune_seeds, min_int(s->seeds, s->baseline_seeds));
    if (*s->eval && !study_of_tasks(s) && !study_scores(s))
        return fail(e, E_USAGE,
                    "%s: eval is of a test text, and corpus %s has one file  -> leave eval out, or "
                    "give files to train, validate and test on",
                    s->path, s->corpora[0].name);
    if (s->search)
        TRY(spread_rates(s, e));
    if (s->effect < 0)
        s->effect = study_of_tasks(s) ? 0 : 0.005;
    if (!s->sizes.n)
        TRY(add_item(&s->sizes, &(struct line){.s = s, .key = "size"}, "usual", "", e));
    for (int i = 0; i < s->variants.n && s->baseline >= 0; i++)
        s->variants.v[i].control = i == s->baseline ? -1 : s->baseline;
    return s->baseline < 0 ? study_add_controls(s, e) : OK;
}

enum status study_read(struct study *s, const char *path, struct err *e)
{
    struct bytes file;

    *s = (struct study){.path = path,
                        .seeds = 3,
                        .baseline_seeds = 6,
                        .tune_seeds = 1,
                        .effect = -1,
                        .train = "",
                        .eval = ""};
    TRY(file_read(&file, path, e));
    s->text = file.data;
    if (memchr(file.data, '\0', file.n))
        return fail(e, E_USAGE, "%s is not a text: it has a NUL byte  -> give a study file", path);
    TRY(read_lines(s, e));
    return check_whole(s, e);
}

void study_free(struct study *s)
{
    free(s->text);
    free(s->variants.v);
    free(s->sizes.v);
    free(s->corpora);
    free(s->rates);
    free(s->budgets.v);
    options_free(&s->words);
    *s = (struct study){0};
}
