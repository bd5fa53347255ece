/* SPDX-License-Identifier: MIT
 *
 * The rows of choices.h as data, and when each applies. */
#include "choices.h"
#include "variants/model/attention/around.h"
#include "variants/parts/latent.h"
#include "variants/parts/masks.h"

static bool has_gate(const struct config *c) { return c->gate != NULL; }
static bool has_rnn(const struct config *c) { return c->rnn_layers > 0; }
static bool has_direction(const struct config *c)
{
    return config_can_look_ahead(c) && !c->variant->bidirectional;
}
static bool has_steps(const struct config *c) { return c->steps > 0; }
static bool has_exit_tau(const struct config *c)
{
    return c->exit == EXIT_ENTROPY || c->exit == EXIT_WINDOW;
}
static bool has_exit_patience(const struct config *c)
{
    return c->exit == EXIT_PATIENCE || c->exit == EXIT_VOTES;
}
static bool has_clip(const struct config *c)
{
    return c->pos->clips || around_clips(c) || strchr(c->subs, SUB_MASKED);
}
/* An adaptive span tells all distances apart. */
static bool has_clamp(const struct config *c)
{
    return c->pos->clamps && c->attn_extra != &extra_span;
}
static bool has_stack(const struct config *c) { return c->stack.n > 0; }

static const char attends_word[] = "nope"; /* without positions; with them, their name */
static const char block_word[] = "local";  /* in blocks, with what positions there are */

static void print_stack(char text[CHOICE_TEXT], const void *config)
{
    const struct config *const c = config;
    const char *const attends = !config_is_hybrid(c) ? block_word
                                : c->pos->rotate     ? c->pos->name
                                                     : attends_word;

    *text = '\0';
    for (int i = 0; i < c->stack.n; i++)
        text_item(text, CHOICE_TEXT, "%s", c->stack.attends[i] ? attends : c->mixer->name);
}

/* Attention has the positions that the model has, or those that the text names. */
static enum status parse_stack(void *config, const char *text, struct err *e)
{
    struct config *const c = config;
    struct stack stack = {0};

    for (const char *at = *text ? text : NULL; at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[24];
        const int len = (int)strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", len < 23 ? len : 23, at);
        const bool mixes = c->mixer && strcmp(word, c->mixer->name) == 0;
        const bool nope = strcmp(word, attends_word) == 0, blocks = c->mixer && c->mixer->block;
        const struct pos *const pos = blocks ? strcmp(word, block_word) == 0 ? c->pos : NULL
                                      : nope ? pos_find("none")
                                             : pos_find(word);
        if (stack.n == MAX_STACK || (!mixes && !pos))
            return fail(e, E_USAGE,
                        "stack \"%.60s\": cannot use \"%s\"  -> write up to %d of %s, %s", text,
                        word, (int)MAX_STACK, c->mixer ? c->mixer->name : "a mixer",
                        blocks ? block_word : "rope, nope");
        if (!mixes && strcmp(word, "none") != 0)
            c->pos = pos;
        stack.attends[stack.n++] = !mixes;
    }
    c->stack = stack;
    return OK;
}

static bool ponders(const struct config *c) { return c->halt != HALT_NEVER; }

/* Attention in layer after layer, whose keys stand where the stream says. */
static bool has_layers(const struct config *c)
{
    return (!c->mixer || config_is_hybrid(c)) && !*c->order && !c->steps && !c->stream_sinks;
}
static bool has_layer_windows(const struct config *c)
{
    return has_layers(c) && c->score_residual == SCORE_RESIDUAL_NONE;
}
static bool has_head_windows(const struct config *c)
{
    return c->variant->head_windows || c->head_windows.n;
}
static bool has_rope(const struct config *c) { return c->pos == &pos_rope; }
static bool has_rope_factor(const struct config *c) { return has_rope(c) && c->rope_scaling; }
static bool has_layer_bases(const struct config *c) { return has_rope(c) && has_layers(c); }

/* Attention, or a recurrent mixer whose gate is the model's choice; in a stack either has its own.
 */
static bool has_out_gate(const struct config *c)
{
    if (c->mixer)
        return c->mixer->gated && !c->stack.n;
    return !strchr(c->order, SUB_POOLED) && !config_mem(c)->compressed && !c->stream_sinks;
}

/* Layers that cache keys and values: not the recurrent ones of a stack. */
static bool has_kv(const struct config *c)
{
    bool attends = !config_is_hybrid(c);

    for (int layer = 0; layer < c->N && !attends; layer++)
        attends = config_attends(c, layer);
    return attends && mem_can(config_mem(c), MEM_KV);
}

static bool has_blocks(const struct config *c) { return elem_in_blocks(c->dtype); }

static bool has_masks(const struct config *c) { return c->variant->mask || c->masks.n; }
static bool has_layer_masks(const struct config *c) { return has_masks(c) && has_layers(c); }
static bool has_norms(const struct config *c) { return c->wiring != WIRING_REZERO; }

/* Cached rows are dropped as new ones come; masks and compressed rows have rules of their own. */
static bool has_same_length(const struct config *c)
{
    return config_mem(c)->recurrent && !config_mem(c)->compressed &&
           (!c->mixer || (c->mixer->attends && !c->mixer->content)) && !has_masks(c) &&
           !c->stack.n && !c->stream_sinks && !c->head_windows.n;
}

/* A model with an order of its own may be attention only. */
static bool has_ffn(const struct config *c) { return !*c->order || strpbrk(c->order, "fh"); }

/* ---- masks: two rows of one field --------------------------------------------------------- */

static void print_mask(char text[CHOICE_TEXT], const void *config)
{
    char heads[MASK_TEXT];

    masks_print(text, heads, &((const struct config *)config)->masks);
}

static void print_mask_heads(char text[CHOICE_TEXT], const void *config)
{
    const struct masks *const m = &((const struct config *)config)->masks;
    char mask[MASK_TEXT];
    bool in_turn = true;

    for (int i = 0; i < m->n_heads; i++)
        in_turn = in_turn && m->head[i] == i;
    masks_print(mask, text, m);
    if (in_turn)
        *text = '\0';
}

static enum status parse_mask(void *config, const char *text, struct err *e)
{
    ((struct config *)config)->layer_masks.n = 0; /* they were of other masks */
    return masks_parse(&((struct config *)config)->masks, text, "", e);
}

static enum status parse_mask_heads(void *config, const char *text, struct err *e)
{
    struct masks *const m = &((struct config *)config)->masks;
    char mask[MASK_TEXT], heads[MASK_TEXT];

    masks_print(mask, heads, m);
    return masks_parse(m, mask, text, e);
}

_Static_assert((int)MASK_TEXT <= (int)CHOICE_TEXT, "masks are not cut");

/* ---- windows of heads, sizes of recurrent layers --------------------------------------------- */

static void print_head_windows(char text[CHOICE_TEXT], const void *config)
{
    head_windows_print(text, &((const struct config *)config)->head_windows);
}

static enum status parse_head_windows(void *config, const char *text, struct err *e)
{
    return head_windows_parse(&((struct config *)config)->head_windows, text, e);
}

/* "3/4/5/0.5": heads, widths of keys and of values, and scale of recurrent layers. */
static void print_dims(char text[CHOICE_TEXT], const void *config)
{
    const struct recurrent_sizes *const r = &((const struct config *)config)->recurrent;

    *text = '\0';
    if (r->H)
        snprintf(text, CHOICE_TEXT, "%d/%d/%d/%.9g", r->H, r->dh, r->dv, (double)r->scale);
}

static enum status parse_dims(void *config, const char *text, struct err *e)
{
    struct recurrent_sizes r = {0};
    double scale = 0;
    int end = 0;

    if (*text && (sscanf(text, "%7d/%7d/%7d/%lf%n", &r.H, &r.dh, &r.dv, &scale, &end) != 4 ||
                  text[end] || r.H < 1 || r.dh < 1 || r.dv < 1 || !(scale >= 0 && scale < 1e6) ||
                  (int64_t)r.H * r.dh > MAX_WIDTH || (int64_t)r.H * r.dv > MAX_WIDTH))
        return fail(e, E_USAGE,
                    "layer_dims \"%.60s\": not heads, widths of keys and values, scale  -> write "
                    "for example 8/32/64/0.18",
                    text);
    r.scale = (float)scale;
    ((struct config *)config)->recurrent = r;
    return OK;
}

/* ---- rotary positions ------------------------------------------------------------------------ */

static void print_scaling(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%s",
             rope_scaling_name[((const struct config *)config)->rope_scaling]);
}

/* What is scaled without a factor has the usual one. */
static enum status parse_scaling(void *config, const char *text, struct err *e)
{
    struct config *const c = config;
    const int i = word_index(text, rope_scaling_name);

    if (i < 0)
        return fail(
            e, E_USAGE,
            "rope_scaling \"%.60s\" is unknown  -> use none, linear, ntk, yarn, llama3, longrope, "
            "dynamic",
            text);
    c->rope_scaling = (enum rope_scaling)i;
    if (c->rope_scaling && c->rope_factor == 1)
        c->rope_factor = ROPE_FACTOR;
    return OK;
}

/* ---- positions ------------------------------------------------------------------------------- */

static const char *const added_pos_name[] = {"none", "sinusoid", NULL};

/* A sum of all past rows does not know their order. A map before queries and keys is published with
 * sinusoids, which stand in place of its variant's positions. */
static bool has_added_pos(const struct config *c) { return config_mem(c)->sums || c->qkv_map; }

/* Positions of another kind are added to nothing. */
static void print_pos(char text[CHOICE_TEXT], const void *config)
{
    const struct pos *const pos = ((const struct config *)config)->pos;

    snprintf(text, CHOICE_TEXT, "%s", pos->reserve ? "" : pos->name);
}

static enum status parse_pos(void *config, const char *text, struct err *e)
{
    if (word_index(text, added_pos_name) < 0)
        return fail(e, E_USAGE, "pos \"%.60s\" is unknown  -> use none, sinusoid", text);
    ((struct config *)config)->pos = pos_find(text);
    return OK;
}

/* ---- words in clusters ----------------------------------------------------------------------- */

static bool has_words(const struct config *c)
{
    return !c->pos->from_tokens && !c->variant->bidirectional && c->logit_cap == 0;
}
static bool is_adaptive(const struct config *c) { return has_words(c) && has_clusters(c); }

static void print_numbers(char text[CHOICE_TEXT], const int *at, int count)
{
    *text = '\0';
    for (int i = 0; i < count; i++)
        text_item(text, CHOICE_TEXT, "%d", at[i]);
}

static void print_cutoffs(char text[CHOICE_TEXT], const void *config)
{
    const struct adaptive *const a = &((const struct config *)config)->adaptive;

    print_numbers(text, a->cut, a->n);
}

static enum status parse_cutoffs(void *config, const char *text, struct err *e)
{
    struct adaptive *const a = &((struct config *)config)->adaptive;
    double cut[MAX_CLUSTERS - 1];
    const int n = list_read(cut, MAX_CLUSTERS - 1, text, 0, MAX_WIDTH, true);

    if (n < 0)
        return fail(e, E_USAGE,
                    "cutoffs \"%.60s\": not up to %d numbers  -> write for example 20,40", text,
                    MAX_CLUSTERS - 1);
    a->n = n;
    for (int i = 0; i < n; i++)
        a->cut[i] = (int)cut[i];
    return OK;
}

static void print_tie(char text[CHOICE_TEXT], const void *config)
{
    const struct adaptive *const a = &((const struct config *)config)->adaptive;
    int tie[MAX_CLUSTERS];

    for (int i = 0; i < a->n_tie; i++)
        tie[i] = a->tie[i];
    print_numbers(text, tie, a->n_tie);
}

static enum status parse_tie(void *config, const char *text, struct err *e)
{
    struct adaptive *const a = &((struct config *)config)->adaptive;
    double tie[MAX_CLUSTERS];
    const int n = list_read(tie, MAX_CLUSTERS, text, 0, 1, true);

    if (n < 0)
        return fail(e, E_USAGE,
                    "tie_projs \"%.60s\": not 0 or 1 for each cluster  -> write for example 0,1,1",
                    text);
    a->n_tie = n;
    for (int i = 0; i < n; i++)
        a->tie[i] = tie[i] == 1;
    return OK;
}

/* Nothing says that there are no clusters. */
static void print_width(char text[CHOICE_TEXT], const void *config)
{
    const struct adaptive *const a = &((const struct config *)config)->adaptive;

    print_numbers(text, &a->E, a->E > 0);
}

static enum status parse_width(void *config, const char *text, struct err *e)
{
    double width = 0;

    if (list_read(&width, 1, text, 0, MAX_WIDTH, true) < 0)
        return fail(e, E_USAGE, "d_embed \"%.60s\"  -> use a number up to %d", text,
                    (int)MAX_WIDTH);
    ((struct config *)config)->adaptive.E = (int)width;
    return OK;
}

/* ---- rows --------------------------------------------------------------------------------- */

#define X(name_, type_, codec_, field_, option_, metavar_, shown_, unit_, help_, empty_, scope_,   \
          ...)                                                                                     \
    [CHOICE_##name_] = {.name = #name_,                                                            \
                        .option = option_,                                                         \
                        .unit = unit_,                                                             \
                        .help = help_,                                                             \
                        .codec = CODEC_##codec_,                                                   \
                        .at = offsetof(struct config, field_),                                     \
                        .scope = SCOPE_##scope_,                                                   \
                        __VA_ARGS__},
const struct choice model_choices[MODEL_CHOICE_COUNT] = {MODEL_CHOICES(X)};
#undef X

void model_choices_decode(struct config *c)
{
    if (has_latents(c))
        c->mla = MLA_ABSORBED;
}

bool model_ends_in_norm(const struct config *c)
{
    return (wiring_norms_first(c->wiring) || wiring_norms_output(c->wiring)) &&
           !c->variant->bare_top;
}

void model_choices_settle(struct config *c)
{
    c->rel_rows = c->causal ? c->clip + 1 : 2 * c->clip + 1;
    if (c->same_length)
        c->window = c->mem_len; /* 0 = off: without memory there is nothing to equalise */
}

void model_choice_print(char text[CHOICE_TEXT], int i, const struct config *c, enum scope scope)
{
    *text = '\0';
    if (choice_applies(&model_choices[i], c, scope))
        choice_print(text, &model_choices[i], c);
}
