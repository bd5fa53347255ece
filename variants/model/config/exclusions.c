/* SPDX-License-Identifier: MIT
 *
 * Which features of a model exclude each other: a table, and the loop over it. What numbers must be
 * stays in the checks of config.c and of the parts. */
#include "exclusions.h"
#include "variants/model/attention/around.h"
#include "variants/model/content/content.h"
#include "variants/parts/mem.h"

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
    return c->mixer && !config_is_hybrid(c) && !c->mixer->content && !c->mixer->attends;
}

static bool has(const struct config *c, enum feature f)
{
    switch (f) {
#define X(name, said, value, kind, has_it)                                                         \
    case HAS_##name:                                                                               \
        return has_it;
        FEATURES(X)
#undef X
    default:
        return false;
    }
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
    default:
        return NULL;
    }
}

struct words {
    const char *said, *kind;
};

static struct words words_of(enum feature f)
{
    switch (f) {
#define X(name, said, value, kind, has_it)                                                         \
    case HAS_##name:                                                                               \
        return (struct words){said, kind};
        FEATURES(X)
#undef X
    default:
        return (struct words){0};
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

/* What is done to queries, keys, scores or the outputs of heads. */
#define AROUND HAS_PARTS, HAS_OUT_GATE
#define TERMS AROUND, HAS_EXTRA, HAS_QKV_MAP, HAS_SCORE_RESIDUAL

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

    /* one term is added to scores */
    {HAS_TERMS, EXCLUDES(HAS_TERMS, HAS_SCORE_RESIDUAL)},
    /* one term of scores, and its keys are all of the past */
    {HAS_MASKED, EXCLUDES(HAS_TERMS, HAS_SCORE_RESIDUAL, HAS_MIXER, HAS_LAZY, HAS_SAME_LENGTH)},
    /* weights and values that all attentions share are of one number of heads */
    {HAS_MANY, EXCLUDES(TERMS, HAS_MIXER, HAS_LAZY, HAS_STREAM, HAS_NO_CONTENT, HAS_COMPRESSED,
                        HAS_SHARED_TABLES, HAS_ENCODER)},
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
    /* layers of attention alone, which compute their own scores, are counted one after the other */
    {HAS_DEPTH_SCALE, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_MIXER, HAS_STACK, HAS_LAZY, HAS_NO_CONTENT,
                               HAS_COMPRESSED_ROWS, HAS_FEEDBACK, HAS_SLOTS, HAS_ENCODER)},
    /* layers are counted one after the other */
    {HAS_LAYER_MASKS, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_SCORE_RESIDUAL)},
    /* one rule says which keys a head sees */
    {HAS_HEAD_WINDOWS,
     EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_MASKS, HAS_LAYER_WINDOWS, HAS_SAME_LENGTH)},

    /* there are no scores to add to */
    {HAS_MIXER, EXCLUDES(TERMS, HAS_HEAD_WINDOWS, HAS_TABLES, HAS_ENTERS)},
    /* its own projections, and those of cross attention, have all biases or none */
    {HAS_QKV_BIAS, EXCLUDES(HAS_MIXER, HAS_ENCODER)},
    /* no keys: it reads all of the past, in order */
    {HAS_BLIND, EXCLUDES(HAS_SAME_LENGTH, HAS_MASKS, HAS_ROTATED, HAS_SOFT_CAP)},
    /* its past has no newest rows */
    {HAS_UNWINDOWED, EXCLUDES(HAS_WINDOW, HAS_LAYER_WINDOWS)},
    /* it reads the past only */
    {HAS_PAST_MIXER, EXCLUDES(HAS_FUTURE)},
    /* it chooses its pairs itself */
    {HAS_CONTENT, EXCLUDES(HAS_WINDOW, HAS_SAME_LENGTH, HAS_MASKS, HAS_LAYER_WINDOWS, HAS_GROUPS,
                           HAS_SOFT_CAP, HAS_ORDER, HAS_STEPS, HAS_ROPE_BASES)},
    /* its pairs are chosen among earlier keys */
    {HAS_CONTENT_PAST, EXCLUDES(HAS_FUTURE)},
    /* its pairs are chosen in a whole text */
    {HAS_CONTENT_WHOLE, EXCLUDES(HAS_CAUSAL)},
    /* layers of attention stand between others */
    {HAS_STACK,
     EXCLUDES(HAS_FUTURE, HAS_SAME_LENGTH, HAS_MASKS, HAS_HEAD_WINDOWS, HAS_STEPS, HAS_ORDER,
              HAS_RNN, HAS_QKV_MAP, HAS_SCORE_RESIDUAL, HAS_TABLES, HAS_ENTERS, HAS_WORDS)},
    /* what attends has rotated positions or none */
    {HAS_HYBRID, EXCLUDES(HAS_EMBEDS)},

    /* each sub-layer has one norm */
    {HAS_ORDER, EXCLUDES(HAS_NOT_PLAIN)},
    /* rows of several tokens have distances only, in a window that is computed anew */
    {HAS_POOLED,
     EXCLUDES(HAS_NOT_POST, HAS_MIXER, TERMS, HAS_WINDOW, HAS_LAYER_WINDOWS, HAS_HEAD_WINDOWS,
              HAS_SAME_LENGTH, HAS_MASKS, HAS_STEPS, HAS_CACHED, HAS_UNPOOLED, HAS_FFN_TOKENS)},
    /* each sub-layer has one norm, and layers have no number of attentions in common */
    {HAS_SUBS, EXCLUDES(HAS_NOT_PLAIN, HAS_ORDER, HAS_STEPS, HAS_STACK, HAS_SCORE_RESIDUAL)},
    /* its attention is narrower than the model and has no terms but biases of positions */
    {HAS_LSRA, EXCLUDES(AROUND, HAS_EXTRA, HAS_QKV_MAP, HAS_LAZY, HAS_STREAM, HAS_MIXER,
                        HAS_COMPRESSED, HAS_ENTERS, HAS_NO_CONTENT, HAS_ENCODED)},
    /* attention and feed-forward read the same row */
    {HAS_PARALLEL, EXCLUDES(HAS_RNN, HAS_SUBS, HAS_ENTERS)},
    /* without feed-forward networks there are no halves of them, and no places in an order */
    {HAS_FFN_NONE, EXCLUDES(HAS_HALVES, HAS_ORDER)},
    /* it keeps one row of the past for each feed-forward network */
    {HAS_FFN_STEPS, EXCLUDES(HAS_HALVES)},

    /* steps have positions of their own */
    {HAS_STEPS, EXCLUDES(HAS_EMBEDS, HAS_ENTERS, HAS_WORDS)},
    /* the output reads each layer as it reads the last */
    {HAS_EXIT, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_ENTERS, HAS_TRANSPARENT, HAS_MIXER, HAS_STACK,
                        HAS_LOGIT_CAP, HAS_SCORE_RESIDUAL)},
    /* a gate is of attention or feed-forward */
    {HAS_COND, EXCLUDES(HAS_STEPS, HAS_ORDER, HAS_RNN, HAS_SUBS, HAS_NOT_PLAIN)},
    /* the decoder predicts next tokens of a text without a past, layer after layer; its cross attention
     * has one softmax of each head */
    {HAS_ENCODER, EXCLUDES(HAS_FUTURE, HAS_MEMORY, HAS_ORDER, HAS_HALVES, HAS_STEPS, HAS_EXIT,
                           HAS_COND, HAS_FEEDBACK, HAS_SLOTS, HAS_STREAM, HAS_head_diff)},
    /* states are of layers that run once, one after the other; each predicts next tokens */
    {HAS_AUX, EXCLUDES(HAS_FUTURE, HAS_ORDER, HAS_STEPS, HAS_EXIT, HAS_FEEDBACK, HAS_SLOTS,
                       HAS_TRANSPARENT, HAS_ENCODER, HAS_CLUSTERS)},
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

/* ---- parts of attention --------------------------------------------------------------------- */

/* The part that a feature is, or of which it is the special form; NULL = none. */
struct own_part {
    const struct around_part *part;
    bool special;
};
static struct own_part part_of(enum feature f)
{
#define X(name) [HAS_##name] = {&name, false}, [HAS_##name##_special] = {&name, true},
    static const struct own_part parts[FEATURES_END] = {AROUND_PARTS(X)};
#undef X
    return parts[f];
}

/* What it excludes itself; NULL = nothing. */
static const enum feature *excludes_of(enum feature f)
{
    const struct own_part p = part_of(f);

    return !p.part ? NULL : p.special ? p.part->special.excludes : p.part->excludes;
}

/* Is f what a list names so? */
static bool names(enum feature listed, enum feature f)
{
    const struct own_part p = part_of(f);
    const bool whole = p.part && p.part->said && !p.special;

    switch (listed) {
    case HAS_PARTS:
        return whole;
    case HAS_TERMS:
        return whole && p.part->term.added;
    default:
        return listed == f;
    }
}

static bool is_among(const enum feature *excluded, enum feature f)
{
    while (excluded && *excluded != HAS_NO_MORE && !names(*excluded, f))
        excluded++;
    return excluded && *excluded != HAS_NO_MORE;
}

/* ---- a model -------------------------------------------------------------------------------- */

static void name_of(char text[FEATURE_TEXT], const struct config *c, enum feature f)
{
    const char *const value = value_of(c, f);

    snprintf(text, FEATURE_TEXT, "%s%s%.64s", words_of(f).said, value ? " " : "",
             value ? value : "");
}

static enum status refuse(const struct config *c, const char *a, enum feature f, struct err *e)
{
    char b[FEATURE_TEXT];

    name_of(b, c, f);
    return fail(e, E_USAGE, "%s: %s and %s exclude each other  -> leave one of them out",
                c->variant->name, a, b);
}

/* The first of a list that the model has besides `self`; HAS_NO_MORE = none. */
static enum feature first_besides(const struct config *c, const enum feature *excluded,
                                  enum feature self)
{
    for (; excluded && *excluded != HAS_NO_MORE; excluded++) {
        const bool one = *excluded < FEATURES_END;
        const enum feature last = one ? *excluded : FEATURES_END - 1;
        for (enum feature f = one ? *excluded : HAS_NO_MORE + 1; f <= last; f++)
            if (f != self && names(*excluded, f) && has(c, f))
                return f;
    }
    return HAS_NO_MORE;
}

static enum feature first_of(const struct config *c, const enum feature *excluded)
{
    return first_besides(c, excluded, HAS_NO_MORE);
}

bool config_has_around(const struct config *c)
{
    return first_of(c, EXCLUDES(AROUND)) != HAS_NO_MORE;
}

bool config_can_look_ahead(const struct config *c)
{
    const enum feature *const past =
        EXCLUDES(HAS_PAST_ONLY, HAS_MIXER, HAS_STACK, HAS_RNN, HAS_STREAM, HAS_COMPRESSED, HAS_AUX);

    for (enum part_slot s = SLOT_AROUND; s < SLOT_COUNT; s++)
        if (is_among(around_of(s)->excludes, HAS_FUTURE) && around_has(c, s))
            return false;
    return first_of(c, past) == HAS_NO_MORE && !(c->attn_extra && c->attn_extra->past_only) &&
           !strpbrk(c->subs, "cwb");
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
    return p ? (struct excluder){words_of(HAS_EXTRA).said, p->name, p->excludes}
             : (struct excluder){0};
}
static struct excluder of_mixer(const struct mixer *m)
{
    return m ? (struct excluder){words_of(HAS_MIXER).said, m->name, m->excludes}
             : (struct excluder){0};
}

static void part_name(char text[FEATURE_TEXT], const struct excluder *p)
{
    snprintf(text, FEATURE_TEXT, "%s %s", p->said, p->name);
}

/* OK, unless the model has f, and besides one of the list. */
static enum status check_feature(const struct config *c, enum feature f,
                                 const enum feature *excluded, struct err *e)
{
    const enum feature other = f == HAS_NO_MORE ? HAS_NO_MORE : first_besides(c, excluded, f);
    char name[FEATURE_TEXT];

    if (other == HAS_NO_MORE)
        return OK;
    name_of(name, c, f);
    return refuse(c, name, other, e);
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
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        TRY(check_feature(c, first_of(c, EXCLUDES(table[i].feature)), table[i].excludes, e));
    for (enum feature f = HAS_NO_MORE + 1; f < FEATURES_END; f++)
        if (excludes_of(f) && has(c, f))
            TRY(check_feature(c, f, excludes_of(f), e));
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

/* The feature of entry i: those that are said. Those from FEATURES_END on are parts that exclude
 * features by themselves. */
static enum feature feature_at(int i)
{
    enum feature f = HAS_NO_MORE + 1;

    for (; f < FEATURES_END; f++)
        if (words_of(f).said && i-- == 0)
            return f;
    return f + (unsigned)i;
}

bool exclusions_name(char name[FEATURE_TEXT], int i)
{
    const enum feature f = feature_at(i);
    const struct words w = words_of(f);
    struct excluder part;

    if (f < FEATURES_END) {
        snprintf(name, FEATURE_TEXT, "%s%s%s", w.said, *w.kind ? " " : "", w.kind);
        return true;
    }
    if (!part_at(&part, (int)f - FEATURES_END))
        return false;
    part_name(name, &part);
    return true;
}

/* Does the list of entry i have j? */
static bool lists(int i, int j)
{
    const enum feature f = feature_at(i), other = feature_at(j);
    struct excluder part;
    bool found = false;

    if (other >= FEATURES_END || f == other)
        return false;
    if (f >= FEATURES_END)
        return part_at(&part, (int)f - FEATURES_END) && is_among(part.excludes, other);
    for (size_t k = 0; k < ARRAY_LEN(table); k++)
        found = found || (names(table[k].feature, f) && is_among(table[k].excludes, other));
    return found || is_among(excludes_of(f), other);
}

bool exclusions_between(int i, int j) { return lists(i, j) || lists(j, i); }
