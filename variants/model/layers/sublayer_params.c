/* SPDX-License-Identifier: MIT
 *
 * The sub-layers of a model and the names of their tensors. */
#include "dense_layers.h"
#include "sublayer_list.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_compress.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/model/sublayer/sublayer_skip.h"

static const struct letter {
    char letter;
    const struct sublayer_kind *kind;
    float scale;
    const char *inner; /* prefix of its tensors in a layer, if they have one */
} letters[] = {
    {SUB_ATTENTION, &sublayer_attention, 1, ""}, {SUB_FFN, &sublayer_ffn, 1, "ff."},
    {SUB_HALF_FFN, &sublayer_ffn, 0.5f, "ff."},  {SUB_RNN, &sublayer_rnn, 1, "rnn."},
    {SUB_POOLED, &sublayer_attention, 1, ""},    {SUB_UNPOOLED, &sublayer_attention, 1, ""},
    {SUB_MASKED, &sublayer_attention, 1, "d"},   {SUB_CPE, &sublayer_cpe, 1, "cpe."},
    {SUB_SEP, &sublayer_sep, 1, "sep."},         {SUB_LSRA, &sublayer_lsra, 1, ""},
    {SUB_MANY, &sublayer_attention, 1, "m"},     {SUB_BRANCHES, &sublayer_branches, 1, "branches."},
    {SUB_READ, &sublayer_read, 1, "read."},      {SUB_READ_BOTH, &sublayer_read, 1, "attn."},
};

static const struct letter *letter_find(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if (letters[i].letter == letter)
            return &letters[i];
    return NULL;
}

bool sublayer_letter(char letter) { return letter_find(letter) != NULL; }

static bool macaron(enum wiring w) { return w == WIRING_MACARON_PRE || w == WIRING_MACARON_POST; }

/* Prefixes of the tensors of one sub-layer. */
struct names {
    char prefix[32], inner[48], gate[64], norm[16];
};

/* Of number i of `list`; `gate` and `norm` end the names of its gate and its norm. */
static struct names names_of(const char *list, int i, const char *inner, const char *gate,
                             const char *norm)
{
    struct names n;

    snprintf(n.prefix, sizeof(n.prefix), "%s.%d.", list, i);
    snprintf(n.inner, sizeof(n.inner), "%s%s", n.prefix, inner);
    snprintf(n.gate, sizeof(n.gate), "%sgate%s.", n.prefix, gate);
    snprintf(n.norm, sizeof(n.norm), "ln%s", norm);
    return n;
}

/* The k-th sub-layer of layer l of this macaron. */
static struct names in_macaron(int l, int k)
{
    static const char *const inner[] = {"ff0.", "", "ff."}, *const number[] = {"0", "1", "2", "3"};

    return names_of("layers", l, inner[k], number[k + 1], number[k]);
}

/* The sub-layer of layer l with this letter. */
static struct names in_layer(int l, char letter)
{
    const char *const which = strchr("sle", letter) ? "1"
                              : letter == SUB_FFN   ? "2"
                                                    : (char[]){letter, '\0'};

    return names_of("layers", l, letter_find(letter)->inner, which, which);
}

/* The r-th LocalRNN of layer l. */
static struct names rnn_in_layer(int l, int r)
{
    char inner[24], which[16];

    snprintf(inner, sizeof(inner), "rnn.%d.", r);
    snprintf(which, sizeof(which), "r.%d", r);
    return names_of("layers", l, inner, which, which);
}

/* The i-th of a model with its own order. */
static struct names in_order(int i, char letter)
{
    return names_of("sub", i, letter_find(letter)->inner, "", "");
}

static steps_build *build_of(const struct config *c, const struct letter *what)
{
    if (what->kind->positions)
        return c->mixer ? c->mixer->build : NULL;
    if (what->kind->ffn)
        return c->ffn->build;
    switch (what->letter) {
    case SUB_CPE:
        return conv_cpe;
    case SUB_SEP:
        return conv_sep;
    case SUB_BRANCHES:
        return conv_branches;
    default:
        return NULL;
    }
}

static const struct sublayer_kind *kind_of(const struct config *c, const struct letter *what)
{
    if (what->kind->ffn && c->ffn->build)
        return &sublayer_steps_ffn;
    if (what->kind->positions && c->feedback.on)
        return &sublayer_feedback;
    return what->kind->positions && c->mixer ? c->mixer->kind : what->kind;
}

/* The model as a sub-layer of this layer sees it. */
static const struct config *layer_config(const struct sublayers *s, const struct config *c,
                                         int layer, char letter)
{
    if (letter == SUB_MASKED)
        return &s->view[VIEW_MASKS];
    if (letter == SUB_MANY)
        return &s->view[VIEW_MANY];
    if (letter_find(letter)->kind->ffn && dense_layers_has(c, layer))
        return &s->view[VIEW_DENSE];
    if (c->stack.n)
        return &s->view[config_attends(c, layer) ? VIEW_ATTENTION : VIEW_MIXERS];
    return c;
}

static void begin(struct sublayers *s, int i, int layer, const struct config *model, char letter)
{
    const struct letter *const what = letter_find(letter);
    CHECK(what);
    const struct config *const c = layer_config(s, model, layer, letter);
    const bool pools = letter == SUB_POOLED;
    int nth = 0;

    const struct sublayer_kind *const kind = kind_of(c, what);
    const int lazy = c->lazy_group > 1 ? layer % c->lazy_group : 0;
    for (int k = 0; k < i; k++)
        nth += s->at[k].kind == kind;
    s->at[i] = (struct sublayer){
        .kind = kind,
        .c = c,
        .wiring = letter == SUB_CPE ? WIRING_REZERO : c->wiring,
        .scale = what->scale * c->res_scale,
        .nth = nth,
        .layer = layer,
        .asks = !c->pos->no_content && lazy == 0,
        .bare_o = around_unprojects(c),
        .lazy = lazy,
        .narrow = c->lsra.split ? &s->view[VIEW_PART] : NULL,
        .reading = {.S = c->slots.n, .self = letter == SUB_READ_BOTH},
        .build = build_of(c, what),
        .level = letter == SUB_UNPOOLED ? 0 : (i ? s->at[i - 1].level : 0) + pools,
        .pools = pools,
        .joins = letter == SUB_UNPOOLED};
    for (enum own_group k = 0; k < OWN_GROUPS; k++)
        s->at[i].at[k] = -1;
}

static void declare_own(struct sublayer *s, const struct names *n, struct params *p)
{
    const struct qkv_map *const qkv_map = s->c->qkv_map;

    if (compressive_of(s->c)->rows && compressive_of(s->c)->form == COMPRESS_CONV &&
        s->kind->positions) {
        s->at[OWN_compress] = p->n;
        compressed_params(s->c, n->inner, p);
    }
    if (qkv_map && s->kind->positions) {
        s->at[OWN_qkv_map] = p->n;
        qkv_map->params(s->c, s->nth, n->inner, p);
    }
    s->at[OWN_weights] = p->n;
    s->kind->params(s, n->prefix, n->inner, p);
    if (s->c->attn_extra && s->c->attn_extra->layer_params && s->kind->positions) {
        s->at[OWN_attn_extra] = p->n;
        s->c->attn_extra->layer_params(s->c, n->inner, p);
    }
    if (s->kind->positions)
        around_params(s, n->inner, p);
}

/* The sub-layer of the same kind before the k-th of a layer whose weights it has; -1 = none. */
static int twin_of(const struct config *c, const struct sublayer *at, int k)
{
    if (macaron(c->wiring) || at[k].kind->own_weights)
        return -1;
    for (int i = 0; i < k; i++)
        if (at[i].kind == at[k].kind && at[i].c == at[k].c)
            return i;
    return -1;
}

static void share_weights(struct sublayer *s, const struct sublayer *with)
{
    memcpy(s->at, with->at, sizeof(s->at));
    s->n_parts = with->n_parts;
    memcpy(s->parts, with->parts, sizeof(s->parts));
}

/* `others`: the norm before it is that of another one. */
static void declare_norms(struct sublayer *s, bool others, const struct names *n, struct params *p)
{
    char out[sizeof(n->norm) + sizeof("_out")];

    if (!others && (wiring_norms_first(s->wiring) || wiring_norms_after(s->wiring))) {
        s->at[OWN_norm] = p->n;
        norm_params(s->c, n->prefix, n->norm, p);
    }
    if (wiring_norms_output(s->wiring)) {
        snprintf(out, sizeof(out), "%s_out", n->norm);
        s->at[OWN_norm_out] = p->n;
        norm_params(s->c, n->prefix, out, p);
    }
}

/* The parameters of the `count` sub-layers of a layer, in the order of checkpoints: those that mix
 * positions, norms, the others, then gates and residual weights. */
static void declare(const struct config *c, struct sublayer *at, int count, const struct names *n,
                    struct params *p)
{
    for (int k = 0; k < count; k++)
        if (at[k].kind->mixes && twin_of(c, at, k) < 0)
            declare_own(&at[k], &n[k], p);
    for (int k = 0; k < count; k++)
        if (twin_of(c, at, k) < 0)
            declare_norms(&at[k], c->one_norm && k > 0, &n[k], p);
    for (int k = 0; k < count; k++)
        if (!at[k].kind->mixes && twin_of(c, at, k) < 0)
            declare_own(&at[k], &n[k], p);
    for (int k = 0; k < count; k++)
        if (twin_of(c, at, k) >= 0)
            share_weights(&at[k], &at[twin_of(c, at, k)]);
    for (int k = 1; k < count && c->one_norm; k++)
        at[k].at[OWN_norm] = at->at[OWN_norm];
    for (int k = 0; k < count && c->gate; k++) {
        at[k].at[OWN_gate] = p->n;
        c->gate->params(c, n[k].gate, p);
    }
    for (int k = 0; k < count && c->cond; k++) {
        char prefix[48];
        snprintf(prefix, sizeof(prefix), "%sskip%s.", n[k].prefix, n[k].norm + strlen("ln"));
        at[k].at[OWN_skip] = p->n;
        skip_params(c, prefix, p);
    }
    if (c->wiring == WIRING_REZERO)
        at->at[OWN_alpha] = params_vector(p, INIT_OFF, 0, 1, n->prefix, "alpha");
    for (int k = 1; k < count; k++)
        at[k].at[OWN_alpha] = at->at[OWN_alpha];
    for (int k = 0; k < count; k++)
        if (at[k].wiring == WIRING_ADMIN) {
            char name[16];
            snprintf(name, sizeof(name), "omega%s", n[k].norm + strlen("ln"));
            at[k].at[OWN_omega] = params_vector(p, INIT_ONE, 0, c->D, n[k].prefix, name);
        }
}

static void make_room(struct sublayers *s, const struct config *c, int n)
{
    s->n = n;
    s->at = need_room((size_t)max_int(n, 1), sizeof(*s->at));
    s->work = need_room((size_t)max_int(n, 1), sizeof(*s->work));
    s->view = need_room(VIEW_COUNT, sizeof(*s->view));
    for (int v = 0; v < VIEW_COUNT; v++)
        s->view[v] = *c;
    if (c->stack.n) {
        s->view[VIEW_MIXERS] = config_of_layers(c, false);
        s->view[VIEW_ATTENTION] = config_of_layers(c, true);
    }
    if (strchr(c->subs, SUB_MASKED))
        s->view[VIEW_MASKS] = config_of_masks(c);
    if (strchr(c->subs, SUB_MANY))
        s->view[VIEW_MANY] = config_of_many(c);
    if (c->lsra.split)
        s->view[VIEW_PART] = lsra_attention(c);
    if (dense_layers_any(c))
        s->view[VIEW_DENSE] = config_of_dense(c);
}

/* Further runs of the layers: sub-layers with their own place in the list and the same
 * parameters. */
static void repeat(struct sublayers *s)
{
    for (int i = s->once; i < s->n; i++) {
        struct sublayer *const sublayer = &s->at[i];
        *sublayer = s->at[i - s->once];
        for (int k = i - s->once; k < i; k++)
            sublayer->nth += s->at[k].kind == sublayer->kind;
    }
}

void sublayers_model_params(const struct config *c, struct params *p)
{
    if (c->pos->model_params)
        c->pos->model_params(c, p);
    if (c->mixer && c->mixer->model_params)
        c->mixer->model_params(c, p);
}

/* Has layer l such a sub-layer, if its layers do? */
static bool has_letter(const struct config *c, int l, char letter)
{
    return letter == SUB_CPE   ? l == 0 || c->cpe_layers == CPE_ALL
           : letter == SUB_FFN ? c->ffn != &ffn_none
                               : true;
}

/* Letters of layer l; with an encoder the first attention is followed by one to what that left. */
enum { MAX_BLOCK = MAX_RNNS + 2 * MAX_SUBS };
static void letters_of(const struct config *c, int l, char block[MAX_BLOCK])
{
    const char *const subs = macaron(c->wiring) ? "hsh" : c->subs;
    bool reads = c->enc_layers == 0;
    int n = 0;

    for (; n < c->rnn_layers; n++)
        block[n] = SUB_RNN;
    for (const char *at = subs; *at; at++) {
        if (has_letter(c, l, *at))
            block[n++] = *at;
        if (reads || !strchr("sl", *at))
            continue;
        block[n++] = SUB_READ;
        reads = true;
    }
    block[n] = '\0';
}

/* Sub-layers [i, i + those of the block). */
static int add_layer(struct sublayers *s, const struct config *c, int i, int l, const char *block,
                     struct params *p)
{
    struct names names[MAX_BLOCK];
    const int count = (int)strlen(block);

    for (int k = 0; k < count; k++) {
        begin(s, i + k, l, c, block[k]);
        names[k] = block[k] == SUB_RNN  ? rnn_in_layer(l, k)
                   : macaron(c->wiring) ? in_macaron(l, k - c->rnn_layers)
                                        : in_layer(l, block[k]);
    }
    declare(c, s->at + i, count, names, p);
    return count;
}

static int count_once(const struct config *c)
{
    char block[MAX_BLOCK];
    int n = 0;

    for (int l = 0; l < c->N; l++) {
        letters_of(c, l, block);
        n += (int)strlen(block);
    }
    return *c->order ? (int)strlen(c->order) : n;
}

void sublayers_init(struct sublayers *s, const struct config *c, struct params *p, int at_model)
{
    const int once = count_once(c);

    make_room(s, c, once * max_int(1, c->steps));
    s->at_model = at_model;
    s->once = once;
    for (int i = 0, l = 0; i < once; l++) {
        char block[MAX_BLOCK];
        if (*c->order) {
            const struct names names = in_order(i, c->order[i]);
            begin(s, i, i, c, c->order[i]);
            declare(c, s->at + i, 1, &names, p);
            i++;
        } else {
            letters_of(c, l, block);
            i += add_layer(s, c, i, l, block, p);
        }
    }
    repeat(s);
}

void sublayers_init_bare(struct sublayers *s, const struct config *c, char letter, struct params *p,
                         int at_model)
{
    struct names n = {.prefix = ""};

    make_room(s, c, 1);
    s->at_model = at_model;
    s->once = 1;
    begin(s, 0, 0, c, letter);
    s->at->bare = true;
    s->at->wiring = WIRING_POST; /* no norm before f: source rows are used unchanged */
    snprintf(n.inner, sizeof(n.inner), "%s", letter_find(letter)->inner);
    declare_own(s->at, &n, p);
}

void sublayers_free(struct sublayers *s)
{
    free(s->at);
    free(s->work);
    free(s->view);
    *s = (struct sublayers){0};
}
