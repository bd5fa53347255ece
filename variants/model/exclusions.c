/* SPDX-License-Identifier: MIT
 *
 * Which features of a model exclude each other: a table, and the loop over it. What numbers must be
 * stays in the checks of config.c and of the parts. */
#include "exclusions.h"
#include "adaptive.h"
#include "variants/model/content/content.h"
#include "variants/parts/mem.h"
#include "variants/parts/parts.h"

#include <stdio.h>
#include <string.h>

static bool is_content(const struct config *c)
{
    return c->mixer && !c->stack.n && c->mixer->content;
}

/* Is it defined where queries see later keys? */
static bool chooses_ahead(const struct config *c)
{
    const struct content *const form = c->mixer->content;

    return form->both || (form->both_ahead && content_looks_ahead(c));
}

/* Does something without keys stand in place of attention? */
static bool is_blind(const struct config *c)
{
    return c->mixer && !c->stack.n && !c->mixer->content && !c->mixer->attends;
}

static bool has(const struct config *c, enum feature f)
{
    switch (f) {
#define X(name, said, value, kind, has_it)                                                         \
    case HAS_##name:                                                                               \
        return has_it;
        FEATURES(X)
#undef X
    case HAS_NO_MORE:
    case FEATURES_END:
        break;
    }
    return false;
}

/* Of a feature that the model has; NULL = `said` says it all. */
static const char *value_of(const struct config *c, enum feature f)
{
    switch (f) {
#define X(name, said, value, kind, has_it)                                                         \
    case HAS_##name:                                                                               \
        return value;
        FEATURES(X)
#undef X
    case HAS_NO_MORE:
    case FEATURES_END:
        break;
    }
    return NULL;
}

static const struct {
    const char *said, *kind;
} words[FEATURES_END] = {
#define X(name, said, value, kind, has_it) [HAS_##name] = {said, kind},
    FEATURES(X)
#undef X
};

/* ---- the table ------------------------------------------------------------------------------ */

/* What is done to queries, keys, scores or the outputs of heads (struct around). */
#define AROUND                                                                                     \
    HAS_QK_NORM, HAS_FORGET, HAS_COPE, HAS_LOCAL, HAS_MAN, HAS_PREDICT, HAS_CAMTL, HAS_DIFF,       \
        HAS_CAPSULES, HAS_VALUE_RESIDUAL, HAS_OUT_GATE
#define TERMS AROUND, HAS_EXTRA, HAS_QKV_MAP, HAS_SCORE_RESIDUAL
/* Terms of pairs: one of them at a time. */
#define PAIRS HAS_FORGET, HAS_COPE, HAS_PREDICT, HAS_DIFF, HAS_SCORE_RESIDUAL

static const struct {
    enum feature feature;
    const enum feature *excludes;
} table[] = {
    /* their tables have no rows for later keys */
    {HAS_PAST_ONLY, EXCLUDES(HAS_FUTURE)},
    /* words have no rows for the output */
    {HAS_WORDS, EXCLUDES(HAS_TIED, HAS_CLUSTERS)},
    /* rows of a memory do not have them */
    {HAS_ENTERS, EXCLUDES(HAS_CACHED)},
    /* there are no queries and keys */
    {HAS_NO_CONTENT, EXCLUDES(TERMS, HAS_GROUPS, HAS_COMPRESSED, HAS_ORDER)},
    /* layers are counted one after the other */
    {HAS_ROPE_BASES, EXCLUDES(HAS_UNROTATED, HAS_STEPS, HAS_ORDER)},

    /* each layer sums gates over the past */
    {HAS_FORGET, EXCLUDES(HAS_FUTURE, HAS_SCORE_RESIDUAL, HAS_STEPS)},
    /* they count towards the past, and scores have one set of positions */
    {HAS_COPE, EXCLUDES(HAS_FUTURE, HAS_SCORE_RESIDUAL, HAS_FORGET, HAS_DIFF, HAS_TABLES,
                        HAS_ROTATED, HAS_EXTRA)},
    /* the second softmax has no tables */
    {HAS_DIFF, EXCLUDES(HAS_TABLES, HAS_EXTRA, HAS_FORGET, HAS_SCORE_RESIDUAL, HAS_CAPSULES)},
    /* one term of pairs */
    {HAS_LOCAL, EXCLUDES(PAIRS, HAS_MAN, HAS_CAMTL)},
    /* with a memory it is not known where the text begins */
    {HAS_LOCAL_TEXT, EXCLUDES(HAS_MEMORY)},
    /* one term of pairs */
    {HAS_MAN, EXCLUDES(PAIRS, HAS_CAMTL)},
    /* one term of pairs, and its keys are all of the past */
    {HAS_MASKED,
     EXCLUDES(PAIRS, HAS_LOCAL, HAS_MAN, HAS_CAMTL, HAS_MIXER, HAS_LAZY, HAS_SAME_LENGTH)},
    /* one term of pairs */
    {HAS_CAMTL, EXCLUDES(PAIRS)},
    /* scores that are handed on are all that there is in the next layer's */
    {HAS_PREDICT,
     EXCLUDES(HAS_FORGET, HAS_COPE, HAS_LOCAL, HAS_MAN, HAS_DIFF, HAS_EXTRA, HAS_SCORE_RESIDUAL,
              HAS_STACK, HAS_ORDER, HAS_STEPS, HAS_SUBS, HAS_STREAM)},
    /* all steps are one layer */
    {HAS_VALUE_RESIDUAL, EXCLUDES(HAS_STEPS)},
    /* compressed rows have neither norms nor gates of heads */
    {HAS_COMPRESSED_ROWS, EXCLUDES(AROUND)},
    /* layers that reuse probabilities compute no scores */
    {HAS_LAZY, EXCLUDES(TERMS, HAS_MASKS, HAS_LAYER_WINDOWS, HAS_HEAD_WINDOWS, HAS_NO_CONTENT,
                        HAS_COMPRESSED, HAS_MIXER, HAS_STACK, HAS_STEPS, HAS_ORDER, HAS_STREAM)},
    /* keys are rotated by their slots when they are read */
    {HAS_STREAM, EXCLUDES(HAS_UNROTATED, HAS_ROPE_BASES, HAS_FUTURE, HAS_SAME_LENGTH, HAS_MASKS,
                          HAS_LAYER_WINDOWS, HAS_HEAD_WINDOWS, HAS_STEPS, HAS_STACK, HAS_MIXER,
                          HAS_ORDER, TERMS, HAS_COMPRESSED_ROWS)},

    /* layers are counted one after the other */
    {HAS_LAYER_WINDOWS, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_SCORE_RESIDUAL)},
    /* layers are counted one after the other */
    {HAS_LAYER_MASKS, EXCLUDES(HAS_STEPS, HAS_ORDER)},
    /* one rule says which keys a head sees */
    {HAS_HEAD_WINDOWS,
     EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_MASKS, HAS_LAYER_WINDOWS, HAS_SAME_LENGTH)},

    /* there are no scores to add to */
    {HAS_MIXER, EXCLUDES(TERMS, HAS_HEAD_WINDOWS, HAS_TABLES, HAS_ENTERS)},
    /* no keys: it reads all of the past, in order */
    {HAS_BLIND, EXCLUDES(HAS_SAME_LENGTH, HAS_MASKS, HAS_ROTATED, HAS_SOFT_CAP)},
    /* its past has no newest rows */
    {HAS_UNWINDOWED, EXCLUDES(HAS_WINDOW)},
    /* it reads the past only */
    {HAS_PAST_MIXER, EXCLUDES(HAS_FUTURE)},
    /* it chooses its pairs itself */
    {HAS_CONTENT, EXCLUDES(HAS_WINDOW, HAS_SAME_LENGTH, HAS_MASKS, HAS_LAYER_WINDOWS, HAS_GROUPS,
                           HAS_SOFT_CAP, HAS_ORDER, HAS_STEPS, HAS_ROPE_BASES)},
    /* its pairs are chosen among earlier keys */
    {HAS_CONTENT_PAST, EXCLUDES(HAS_FUTURE)},
    /* its pairs are chosen in a whole text */
    {HAS_CONTENT_WHOLE, EXCLUDES(HAS_CAUSAL)},
    /* its layers are recurrent mixers, or attention with rotated positions or none */
    {HAS_STACK, EXCLUDES(HAS_FUTURE, HAS_SAME_LENGTH, HAS_MASKS, HAS_HEAD_WINDOWS, HAS_STEPS,
                         HAS_ORDER, HAS_RNN, HAS_QKV_MAP, HAS_SCORE_RESIDUAL, HAS_TABLES,
                         HAS_ENTERS, HAS_EMBEDS, HAS_WORDS)},

    /* each sub-layer has one norm */
    {HAS_ORDER, EXCLUDES(HAS_NOT_PLAIN)},
    /* rows of several tokens have distances only, in a window that is computed anew */
    {HAS_POOLED,
     EXCLUDES(HAS_NOT_POST, HAS_MIXER, TERMS, HAS_WINDOW, HAS_LAYER_WINDOWS, HAS_HEAD_WINDOWS,
              HAS_SAME_LENGTH, HAS_MASKS, HAS_STEPS, HAS_CACHED, HAS_UNPOOLED, HAS_FFN_TOKENS)},
    /* each sub-layer has one norm, and layers have no number of attentions in common */
    {HAS_SUBS, EXCLUDES(HAS_NOT_PLAIN, HAS_ORDER, HAS_STEPS, HAS_STACK, HAS_SCORE_RESIDUAL,
                        HAS_VALUE_RESIDUAL)},
    /* its attention is narrower than the model and has no terms but biases of positions */
    {HAS_LSRA, EXCLUDES(AROUND, HAS_EXTRA, HAS_QKV_MAP, HAS_LAZY, HAS_STREAM, HAS_MIXER,
                        HAS_COMPRESSED, HAS_ENTERS, HAS_NO_CONTENT, HAS_ENCODED)},
    /* attention and feed-forward read the same row */
    {HAS_PARALLEL, EXCLUDES(HAS_RNN, HAS_SUBS, HAS_ENTERS)},
    /* it keeps one row of the past for each feed-forward network */
    {HAS_FFN_STEPS, EXCLUDES(HAS_HALVES)},

    /* steps have positions of their own */
    {HAS_STEPS, EXCLUDES(HAS_EMBEDS, HAS_ENTERS, HAS_WORDS)},
    /* the output reads each layer as it reads the last */
    {HAS_EXIT, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_ENTERS, HAS_TRANSPARENT, HAS_MIXER, HAS_STACK,
                        HAS_LOGIT_CAP, HAS_SCORE_RESIDUAL)},
    /* a gate is of attention or feed-forward */
    {HAS_COND, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_RNN, HAS_SUBS, HAS_NOT_PLAIN)},
    /* layers are counted one after the other */
    {HAS_TRANSPARENT, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_ENTERS)},

    /* the only attention of a layer remembers what left the layer */
    {HAS_RECUR_SAME, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_EXIT, HAS_MIXER, HAS_STACK, HAS_LSRA,
                              HAS_COMPRESSED, HAS_TWICE)},
    /* layers run token by token: nothing else passes between tokens or layers */
    {HAS_FEEDBACK,
     EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_EXIT, HAS_TRANSPARENT, HAS_COND, HAS_RECUR_SAME, HAS_MIXER,
              HAS_STACK, HAS_RNN, HAS_LAZY, HAS_SUBS, HAS_NOT_PLAIN, HAS_NORM_OF_ALL, HAS_FFN_MIXES,
              HAS_FFN_TOKENS, HAS_FFN_LOSS)},
    /* attention reads rows that are sums of layers, a step each */
    {HAS_FEEDBACK,
     EXCLUDES(HAS_FUTURE, HAS_ATTN_BIAS, HAS_MASKS, HAS_HEAD_WINDOWS, HAS_LAYER_WINDOWS, HAS_STREAM,
              TERMS, HAS_SAME_LENGTH, HAS_CLAMP, HAS_COMPRESSED, HAS_STATE, HAS_UNFED)},
    /* slots are written from the rows that the output reads */
    {HAS_SLOTS, EXCLUDES(HAS_EXIT, HAS_TRANSPARENT, HAS_RECUR_SAME, HAS_ATTN_BIAS, HAS_FUTURE,
                         HAS_MIXER, HAS_STACK, HAS_NORM_OF_ALL, HAS_FFN_LOSS)},

    /* the logits of all words are not computed together */
    {HAS_CLUSTERS, EXCLUDES(HAS_LOGIT_CAP)},
};

/* ---- a model -------------------------------------------------------------------------------- */

static void name_of(char text[FEATURE_TEXT], const struct config *c, enum feature f)
{
    const char *const value = value_of(c, f);

    snprintf(text, FEATURE_TEXT, "%s%s%.64s", words[f].said, value ? " " : "", value ? value : "");
}

static enum status refuse(const struct config *c, const char *a, enum feature f, struct err *e)
{
    char b[FEATURE_TEXT];

    name_of(b, c, f);
    return fail(e, E_USAGE, "%s: %s and %s exclude each other  -> leave one of them out",
                c->variant->name, a, b);
}

/* The first of a list that the model has; HAS_NO_MORE = none. */
static enum feature first_of(const struct config *c, const enum feature *excluded)
{
    while (excluded && *excluded != HAS_NO_MORE && !has(c, *excluded))
        excluded++;
    return excluded ? *excluded : HAS_NO_MORE;
}

bool config_has_around(const struct config *c)
{
    return first_of(c, EXCLUDES(AROUND)) != HAS_NO_MORE;
}

bool config_can_look_ahead(const struct config *c)
{
    const enum feature *const past = EXCLUDES(HAS_PAST_ONLY, HAS_MIXER, HAS_STACK, HAS_RNN,
                                              HAS_STREAM, HAS_FORGET, HAS_COPE, HAS_COMPRESSED);

    return first_of(c, past) == HAS_NO_MORE && !(c->attn_extra && c->attn_extra->past_only) &&
           !strpbrk(c->subs, "cw");
}

bool config_can_cross(const struct config *c)
{
    const enum feature *const own =
        EXCLUDES(HAS_MIXER, HAS_STACK, HAS_STREAM, HAS_LAZY, HAS_TABLES, HAS_ROTATED, HAS_MASKS,
                 HAS_LAYER_WINDOWS, HAS_HEAD_WINDOWS, TERMS);

    return first_of(c, own) == HAS_NO_MORE;
}

/* What is said of a part, before its name. */
struct excluder {
    const char *said, *name;
    const enum feature *excludes;
};

static struct excluder of_pos(const struct pos *p)
{
    return p ? (struct excluder){"positions", p->name, p->excludes} : (struct excluder){0};
}
static struct excluder of_extra(const struct pos *p)
{
    return p ? (struct excluder){words[HAS_EXTRA].said, p->name, p->excludes}
             : (struct excluder){0};
}
static struct excluder of_mixer(const struct mixer *m)
{
    return m ? (struct excluder){words[HAS_MIXER].said, m->name, m->excludes}
             : (struct excluder){0};
}

static void part_name(char text[FEATURE_TEXT], const struct excluder *p)
{
    snprintf(text, FEATURE_TEXT, "%s %s", p->said, p->name);
}

enum status exclusions_check(const struct config *c, struct err *e)
{
    const struct excluder parts[] = {of_pos(c->pos), of_extra(c->attn_extra), of_mixer(c->mixer)};
    char name[FEATURE_TEXT];

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const enum feature f = first_of(c, parts[i].excludes);
        if (f == HAS_NO_MORE)
            continue;
        part_name(name, &parts[i]);
        return refuse(c, name, f, e);
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const enum feature f =
            has(c, table[i].feature) ? first_of(c, table[i].excludes) : HAS_NO_MORE;
        if (f == HAS_NO_MORE)
            continue;
        name_of(name, c, table[i].feature);
        return refuse(c, name, f, e);
    }
    return OK;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* The i-th part that excludes features by itself. */
static bool part_at(struct excluder *part, int i)
{
#define X(name) &extra_##name,
    static const struct pos *const extras[] = {EXTRAS(X) NULL};
#undef X
    int n = 0;

    for (int k = 0; positions[k]; k++)
        if (positions[k]->excludes && n++ == i)
            return *part = of_pos(positions[k]), true;
    for (int k = 0; extras[k]; k++)
        if (extras[k]->excludes && n++ == i)
            return *part = of_extra(extras[k]), true;
    for (int k = 0; mixers[k]; k++)
        if (mixers[k]->excludes && n++ == i)
            return *part = of_mixer(mixers[k]), true;
    return false;
}

bool exclusions_name(char name[FEATURE_TEXT], int i)
{
    const enum feature f = (enum feature)(i + 1);
    struct excluder part;

    if (f < FEATURES_END) {
        snprintf(name, FEATURE_TEXT, "%s%s%s", words[f].said, *words[f].kind ? " " : "",
                 words[f].kind);
        return true;
    }
    if (!part_at(&part, (int)f - FEATURES_END))
        return false;
    part_name(name, &part);
    return true;
}

static bool is_among(const enum feature *excluded, enum feature f)
{
    while (*excluded != HAS_NO_MORE && *excluded != f)
        excluded++;
    return *excluded == f;
}

/* Does the list of entry i have j? */
static bool lists(int i, int j)
{
    const enum feature f = (enum feature)(i + 1), other = (enum feature)(j + 1);
    struct excluder part;
    bool found = false;

    if (other >= FEATURES_END)
        return false;
    if (f >= FEATURES_END)
        return part_at(&part, (int)f - FEATURES_END) && is_among(part.excludes, other);
    for (size_t k = 0; k < ARRAY_LEN(table); k++)
        found = found || (table[k].feature == f && is_among(table[k].excludes, other));
    return found;
}

bool exclusions_between(int i, int j) { return lists(i, j) || lists(j, i); }
