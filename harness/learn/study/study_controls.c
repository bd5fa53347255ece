/* SPDX-License-Identifier: MIT
 *
 * Controls of a study's variants. */
#include "study_file.h"

#include "harness/cli/option_set.h"
#include "harness/cli/option_words.h"
#include "harness/table/record.h"

static const char variant_option[] = "--variant";

/* "a=1,b=2" of --set: what the control has no part for is of the idea alone. */
static void print_settings(FILE *f, const char *text, const struct variant *control)
{
    const struct config c = config_default(control, 8, 1, 8, 8, 1, 1);
    char *const its = need_room(strlen(text) + 1, 1);
    size_t kept = 0;

    for (size_t n; *text; text += n + (text[n] == ',')) {
        const struct choice *row;
        n = strcspn(text, ",");
        for (struct settings all = {0}; (row = setting_next(&all));)
            if (strncmp(row->name, text, strlen(row->name)) == 0 && text[strlen(row->name)] == '=')
                break;
        if (row && !setting_belongs(row, &c))
            continue;
        kept += (size_t)sprintf(its + kept, "%s%.*s", kept ? "," : "", (int)n, text);
    }
    if (kept)
        word_print_option(f, "set", its, '\0');
    free(its);
}

/* Is w[*i] this option? Its value, and *i is the last word of it. */
static const char *value_of(const struct words *w, int *i, const char *option)
{
    const char *const word = w->v[*i].text;
    const size_t n = strlen(option);

    CHECK(word);
    if (strncmp(word, option, n) != 0 || (word[n] && word[n] != '='))
        return NULL;
    return word[n] ? word + n + 1 : ++*i < w->n ? w->v[*i].text : "";
}

/* Print the words that are not the variant's name, for its control. */
static void print_rest(FILE *f, const struct words *w, const struct variant *control)
{
    for (int i = 0; i < w->n; i++) {
        const char *const set = value_of(w, &i, "--set");
        if (set) {
            print_settings(f, set, control);
        } else if (!value_of(w, &i, variant_option)) {
            fputc(' ', f);
            word_print(f, w->v[i].text, '\0');
        }
    }
}

enum skeleton study_skeleton(const struct study *s, const struct study_item *variant)
{
    const char *const from[] = {variant->words, s->train};
    enum skeleton is = (enum skeleton)s->skeleton;

    for (size_t i = ARRAY_LEN(from); i-- > 0;) {
        struct options o = {0};
        if (options_parse_line(&o, from[i], NULL) == OK && options_typed(&o, "skeleton"))
            is = (enum skeleton)o.skeleton;
        options_free(&o);
    }
    return is;
}

static bool is_of_skeletons(const char *option)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (model_choices[i].skeleton && strcmp(model_choices[i].option, option) == 0)
            return true;
    return false;
}

/* "--variant xl --norm pre": a control, without what the line of its variant says itself, and, with
 * a skeleton, without what skeletons say. */
static void print_control(FILE *f, const struct words *control, const struct options *line,
                          enum skeleton skeleton)
{
    fprintf(f, "%s %s", variant_option, control->v[0].text);
    for (int i = 1; i + 1 < control->n; i += 2) {
        const char *const option = control->v[i].text + 2;
        if (!options_typed(line, option) && (!skeleton || !is_of_skeletons(option)))
            fprintf(f, " --%s %s", option, control->v[i + 1].text);
    }
}

static enum status print_words(FILE *f, struct study *s, const struct study_item *item,
                               const char *control, const struct options *o, struct err *e)
{
    struct words line = {0}, its = {0};
    enum status st = words_split(&line, &s->words, item->words, NULL, 0, e);

    if (st == OK)
        st = words_split(&its, &s->words, control, NULL, 0, e);
    if (st == OK) {
        print_control(f, &its, o, study_skeleton(s, item));
        print_rest(f, &line, variant_find(its.v[0].text));
    }
    words_free(&line);
    words_free(&its);
    return st;
}

/* The words of the control of `item`, whose options are `o`, kept by the study; NULL: it has none,
 * or names no variant, which is refused when jobs are planned. */
static enum status control_words(const char **out, struct study *s, const struct study_item *item,
                                 const struct options *o, struct err *e)
{
    struct bytes text;

    *out = NULL;
    if (!options_typed(o, "variant") || o->variants.n != 1)
        return fail(e, E_USAGE,
                    "%.200s line %d: variant %s does not name one, so it has no control  -> write "
                    "--variant",
                    s->path, item->line, item->name);
    const struct variant *const v = variant_find(o->variants.v[0]);
    if (!v || !v->control)
        return OK;
    FILE *const f = bytes_begin(&text);
    const enum status st = print_words(f, s, item, v->control, o, e);
    bytes_end(f, &text);
    *out = st == OK ? options_keep(&s->words, text.data, text.n) : NULL;
    free(text.data);
    return st;
}

/* The variant with these words; it is added if there is none. */
static enum status find_or_add(int *found, struct study *s, const char *words, int line,
                               struct err *e)
{
    struct study_items *const list = &s->variants;
    const char *const name = words + sizeof(variant_option);

    for (*found = 0; *found < list->n; ++*found)
        if (strcmp(list->v[*found].words, words) == 0)
            return OK;
    if (strlen(name) >= TEXT_SIZE)
        return fail(e, E_USAGE,
                    "%.200s line %d: its control has a name of %zu characters  -> use at most %d",
                    s->path, line, strlen(name), TEXT_SIZE - 1);
    TRY(GROW(list->v, list->n, e));
    list->v[list->n++] = (struct study_item){name, words, line, -1, -1};
    return OK;
}

enum status study_add_controls(struct study *s, struct err *e)
{
    const int n = s->variants.n;

    for (int i = 0; i < n; i++) {
        const char *words = NULL;
        struct options o = {0};
        int control = -1;
        enum status st = options_parse_line(&o, s->variants.v[i].words, e);
        if (st == OK)
            st = control_words(&words, s, &s->variants.v[i], &o, e);
        options_free(&o);
        TRY(st);
        if (words)
            TRY(find_or_add(&control, s, words, s->variants.v[i].line, e));
        s->variants.v[i].control = control;
    }
    return OK;
}
