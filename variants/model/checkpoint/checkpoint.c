/* SPDX-License-Identifier: MIT
 *
 * Reading models. Every complaint names the file and the key or tensor. */
#include "checkpoint.h"
#include "variants/model/attention/around.h"
#include "variants/model/config/choices.h"
#include "variants/model/config/keys.h"
#include "variants/parts/latent.h"

/* ---- metadata ----------------------------------------------------------------------------- */

/* The first error sticks; later reads do nothing. */
struct reader {
    const struct safetensors *s;
    const char *prefix;
    enum status st;
    struct err *e;
};

static int whole(struct reader *r, const char *key, int most)
{
    int value = 0;

    if (r->st == OK)
        r->st = safetensors_int(r->s, key, 0, 0, most, &value, r->e);
    return value;
}

static const char *word(const struct reader *r, const char *key)
{
    const char *value = safetensors_meta(r->s, key);

    return value ? value : "none";
}

static void complain(struct reader *r, const char *key)
{
    if (r->st == OK)
        r->st = safetensors_fail(
            r->s, r->e, "unknown %s \"%.64s\"  -> use the program that the file was made with", key,
            word(r, key));
}

/* Positions added to the stream come from `pos`, those of attention from `scheme`; files older than
 * that key leave the latter to the variant. */
static const struct pos *read_pos(struct reader *r, const struct variant *v)
{
    const struct pos *absolute = pos_find(word(r, "pos"));
    const struct pos *relative = pos_find(word(r, "scheme"));

    for (int i = 0; positions[i]; i++)
        if (positions[i]->form && strcmp(positions[i]->form, word(r, "form")) == 0)
            relative = positions[i];

    if (!absolute)
        complain(r, "pos");
    if (!relative)
        complain(r, "scheme");
    if (!absolute || !relative || r->st != OK)
        return NULL;
    if (!safetensors_meta(r->s, "scheme"))
        return variant_mem(v)->recurrent ? v->pos : absolute;
    if (relative != pos_find("none") && absolute != pos_find("none"))
        r->st =
            safetensors_fail(r->s, r->e, "pos \"%s\" and scheme \"%s\"  -> leave one of them out",
                             absolute->name, relative->name);
    return relative == pos_find("none") ? absolute : relative;
}

/* The tensor of the bare operator, of the first layer, or of the first attention of an order of
 * sub-layers, or an input; NULL = none has it. */
static const struct tensor *find_tensor(const struct reader *r, const struct config *c,
                                        const char *name)
{
    const int first = (int)strcspn(c->order, "spu");
    const struct tensor *found;
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "%s%s", r->prefix, name);
    if ((found = safetensors_find(r->s, full)))
        return found;
    snprintf(full, sizeof(full), "%ssub.%d.%s", r->prefix, first, name);
    if ((found = safetensors_find(r->s, full)))
        return found;
    snprintf(full, sizeof(full), "%slayers.0.%s", r->prefix, name);
    if ((found = safetensors_find(r->s, full)))
        return found;
    snprintf(full, sizeof(full), "in.%s", name);
    return safetensors_find(r->s, full);
}

/* How many rows the row's tensor has; as usual where there is no such tensor. */
static void read_rows_of(struct reader *r, const struct choice *row, int *at,
                         const struct config *c)
{
    const struct tensor *const t = find_tensor(r, c, row->rows_of);

    if (t && t->rank > 0 && t->shape[0] <= row->most)
        *at = t->shape[0];
}

/* in.NAME, or that of the first layer. */
static const struct tensor *find_input(const struct reader *r, const char *name)
{
    const struct tensor *t;
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "in.%s", name);
    if ((t = safetensors_find(r->s, full)))
        return t;
    snprintf(full, sizeof(full), "in.%s.0", name);
    return safetensors_find(r->s, full);
}

/* How large an axis of an input is; as usual without. */
static void read_size_of(struct reader *r, const struct choice *row, int *at)
{
    const struct tensor *const t = find_input(r, row->input);

    if (t && t->rank > row->axis && t->shape[row->axis] >= row->least &&
        t->shape[row->axis] <= row->most)
        *at = t->shape[row->axis];
}

/* A number of the file, where it has the key. */
static void read_number(struct reader *r, const struct choice *row, void *at)
{
    const char *const key = choice_key(row);
    const bool flag = row->codec == CODEC_FLAG;
    double real = 0;
    int n = 0;

    if (row->codec != CODEC_REAL && row->codec != CODEC_WIDE) {
        r->st = safetensors_int(r->s, key, 0, row->zero_is_absent ? 0 : (int)row->least,
                                flag ? 1 : (int)row->most, &n, r->e);
        if (flag)
            *(bool *)at = n;
        else if (n != 0 || !row->zero_is_absent)
            *(int *)at = n;
        return;
    }
    r->st = safetensors_real(r->s, key, 0, &real, r->e);
    if (r->st == OK && !(real >= row->least && real <= row->most))
        r->st = safetensors_fail(r->s, r->e, "metadata %s is %g  -> use %g to %g", key, real,
                                 row->least, row->most);
    if (row->codec == CODEC_REAL)
        *(float *)at = r->st == OK ? (float)real : 0;
    else
        *(double *)at = real;
}

/* Is this one of the row's words? */
static bool has_word(const struct choice *row, const char *text)
{
    int i = 0;

    while (choice_word(row, i) && strcmp(choice_word(row, i), text) != 0)
        i++;
    return choice_word(row, i);
}

/* Of u and v one may be off: either tensor says where they are. */
static bool is_uv(const struct choice *row) { return row->tensor && row->codec == CODEC_WORD; }

/* Where the file has no such key, or says "none" of what has no such value, the value stays or is
 * what the row says. */
static void read_row(struct reader *r, const struct choice *row, void *base, const struct config *c)
{
    const char *const text = safetensors_meta(r->s, choice_key(row));
    void *const at = (char *)base + row->at;
    struct err why;

    if (r->st != OK || row->elsewhere || choice_is_idle(row, c))
        return;
    if (is_uv(row))
        *(int *)at = find_tensor(r, c, row->tensor) || find_tensor(r, c, "attn.bias_v");
    else if (row->tensor)
        *(bool *)at = find_tensor(r, c, row->tensor);
    else if (row->of_input) {
        const struct tensor *const t = find_input(r, row->of_input);
        *(bool *)at = t && t->rank > row->axis;
    } else if (!text || (strcmp(text, "none") == 0 && !has_word(row, text)))
        row->rows_of ? read_rows_of(r, row, at, c)
        : row->input ? read_size_of(r, row, at)
                     : CHECK(!row->absent || choice_parse(row, base, row->absent, NULL) == OK);
    else if (row->codec <= CODEC_WIDE || row->in_digits)
        read_number(r, row, at);
    else if (choice_parse(row, base, text, &why) == OK)
        return;
    else if (row->codec >= CODEC_LIST)
        r->st = safetensors_fail(r->s, r->e, "metadata %s: %s", choice_key(row), why.msg);
    else
        complain(r, choice_key(row));
}

/* Files name latent attention by the width of its latents, and golden files other mixers by the
 * form of attention or by their kind. */
static const char *mixer_word(const struct reader *r)
{
    const char *const name = word(r, "mixer"), *const rank = word(r, "kv_rank");
    const bool latents = strcmp(rank, "none") != 0 && strcmp(rank, "0") != 0;

    if (strcmp(name, "none") != 0)
        return name;
    if (mixer_find(word(r, "form")))
        return word(r, "form");
    if (mixer_find(word(r, "kind")))
        return word(r, "kind");
    return latents ? mixer_mla.name : name;
}

bool checkpoint_mixes(const struct safetensors *s)
{
    const struct reader r = {.s = s};

    return strcmp(word(&r, "synth"), "none") != 0 || strcmp(mixer_word(&r), "none") != 0;
}

static void read_mixer(struct reader *r, struct config *c)
{
    const char *const synth = word(r, "synth");
    const bool other = strcmp(synth, "none") != 0;
    char synthesizer[32];

    snprintf(synthesizer, sizeof(synthesizer), "synth_%.20s", synth);
    const char *const name = other ? synthesizer : mixer_word(r);
    c->mixer = mixer_find(name);
    if (!c->mixer && strcmp(name, "none") != 0)
        complain(r, other ? "synth" : "mixer");
    if (has_latents(c) && c->pos == pos_find("none"))
        c->pos = &pos_rope; /* files leave it to the latents */
}

/* The second scheme: the one whose key is set. */
static void read_extra(struct reader *r, struct config *c)
{
    c->attn_extra = NULL;
    for (const struct extra_key *k = extra_keys; k->key; k++) {
        double said = 0; /* a flag, or a number of its own */
        if (r->st == OK)
            r->st = safetensors_real(r->s, k->key, 0, &said, r->e);
        if (r->st != OK || said == 0)
            continue;
        if (c->attn_extra && r->st == OK)
            r->st = safetensors_fail(r->s, r->e, "both %s and %s  -> leave one of them out",
                                     c->attn_extra->name, k->key);
        c->attn_extra = k->extra;
    }
}

static void read_map(struct reader *r, struct config *c)
{
    c->qkv_map = strcmp(word(r, "dextra"), "none") == 0 ? NULL : &qkv_map_dextra;
}

/* The numbers of the parts in the slots before `end`, once these are known. */
static void read_numbers(struct reader *r, struct config *c, enum part_slot end)
{
    config_numbers_reset(c);
    for (enum part_slot s = 0; s < end; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        for (const struct choice *row = numbers ? numbers->choices : NULL; row && row->name; row++)
            read_row(r, row, c->numbers[s].bytes, c);
        if (s >= SLOT_AROUND && around_of(s)->form &&
            strcmp(around_of(s)->form, word(r, "form")) == 0)
            around_switch_on(c, s);
    }
}

/* The variant's defaults for the sizes of the file. */
static void read_sizes(struct reader *r, const struct variant *v, struct config *c)
{
    struct config said = {.N = 1, .F = -1};

    for (int i = 0; i < MODEL_SIZES; i++)
        read_row(r, model_key(i), &said, &said);
    if (r->st == OK && !(said.D && said.H))
        r->st = safetensors_fail(r->s, r->e, "metadata %s is missing  -> give the file of a model",
                                 said.D ? "n_head" : "d_model");
    if (r->st != OK)
        return;
    *c = config_default(v, said.D, said.H, said.dh ? said.dh : said.D / said.H,
                        said.F < 0 ? 4 * said.D : said.F, said.N, said.V);
}

/* All else that is a row. Files say 0 for what follows from other rows. */
static void read_rows(struct reader *r, struct config *c)
{
    const struct choice *row;

    c->gate = NULL;
    c->kv_heads = c->rel_rows = 0;
    for (int i = MODEL_SIZES; (row = model_key(i)); i++)
        read_row(r, row, c, c);
    for (int i = MODEL_SIZES; (row = model_key(i)); i++)
        if (row->if_other && row->applies) /* a later row may have made it count */
            read_row(r, row, c, c);
    if (!c->lsra.split) /* other parts have a kernel of this name, too */
        c->lsra.kernel = 0;
    if (c->feedback.on && c->rel_k && c->pos == pos_find("none")) /* golden files */
        c->pos = &pos_recent;
    if (whole(r, "ut", 1) == 0)
        c->steps = 0;
    if (c->kv_heads == 0)
        c->kv_heads = c->H;
    if (c->rel_rows == 0)
        c->rel_rows = c->clip + 1;
}

enum status checkpoint_check(const struct safetensors *s, const struct config *c, struct err *e)
{
    struct err why;

    return config_check(c, &why) == OK ? OK : safetensors_fail(s, e, "%s", why.msg);
}

bool checkpoint_agrees(const struct safetensors *s, const char *key, const struct config *c)
{
    struct err e;
    struct reader r = {.s = s, .prefix = "", .e = &e};
    const struct choice *row;

    if (strcmp(key, "scheme") == 0)
        return strcmp(word(&r, key), c->pos->name) == 0;
    for (int i = 0; (row = model_key(i)); i++)
        if (strcmp(choice_key(row), key) == 0 && !row->tensor) {
            struct config said = *c;
            read_row(&r, row, &said, &said);
            return r.st == OK && choice_equal(row, &said, c);
        }
    for (enum part_slot slot = SLOT_AROUND; slot < SLOT_COUNT; slot++) {
        const struct part_numbers *const numbers = config_numbers_of(c, slot);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            if (strcmp(choice_key(row), key) == 0) {
                union part_values said = c->numbers[slot];
                read_row(&r, row, said.bytes, c);
                return r.st == OK && choice_equal(row, said.bytes, config_numbers(c, slot));
            }
    }
    return false;
}

enum status checkpoint_parts(const struct safetensors *s, const char *prefix, struct config *c,
                             struct err *e)
{
    struct reader r = {.s = s, .prefix = prefix, .e = e};
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++)
        if (row->scope == SCOPE_LAYER)
            read_row(&r, row, c, c);
    read_numbers(&r, c, SLOT_AROUND);
    return r.st;
}

enum status checkpoint_map(const struct safetensors *s, struct config *c, struct err *e)
{
    struct reader r = {.s = s, .prefix = "", .e = e};

    read_map(&r, c);
    read_numbers(&r, c, SLOT_AROUND);
    return r.st;
}

enum status checkpoint_config(const struct safetensors *s, const char *prefix, struct config *c,
                              struct err *e)
{
    const struct reader r = {.s = s};
    const struct variant *const v = variant_find(word(&r, "variant"));

    return v ? checkpoint_config_as(s, prefix, v, c, e)
             : safetensors_fail(s, e, "unknown variant \"%.64s\"  -> see: bench list variants",
                                word(&r, "variant"));
}

/* The memory that the fields of a golden file ask for: compressed rows, states, or rows. */
static const struct mem *memory_of(const struct reader *r, const struct variant *v)
{
    const struct mixer *const mixer = mixer_find(mixer_word(r));
    const bool compresses = atoi(word(r, "cmem")) > 0;
    const struct ffn *const ffn = ffn_find(word(r, "ffn"));
    const bool sums = mixer && mixer->kind->sums;
    const bool steps = (mixer && mixer->kind->recurs) || (ffn && ffn->build);

    if (compresses != variant_mem(v)->compressed && (compresses || atoi(word(r, "mem")) > 0))
        return compresses ? &mem_compressive : &mem_segment;
    if (steps || sums)
        return variant_mem(v)->state ? variant_mem(v) : sums ? &mem_sum : &mem_state;
    return atoi(word(r, "mem")) > 0 && !variant_mem(v)->recurrent ? &mem_segment : variant_mem(v);
}

const struct variant *checkpoint_variant(const struct safetensors *s, struct variant *room)
{
    const struct reader r = {.s = s};
    const struct variant *const known = variant_find(word(&r, "variant"));
    const struct variant plain = {.name = word(&r, "variant"),
                                  .pos = pos_find("none"),
                                  .mixer = mixer_find(mixer_word(&r)),
                                  .mem = &mem_none,
                                  .ffn = ffn_find("relu"),
                                  .wiring = WIRING_POST};

    *room = known ? *known : plain;
    room->mem = memory_of(&r, room);
    return known && room->mem == known->mem ? known : room;
}

/* Its variant, or the first one of its mixer if no variant has the name. */
static const struct variant *kin_of(const struct config *c)
{
    if (variant_find(c->variant->name) || !c->mixer)
        return c->variant;
    for (int i = 0; variants[i]; i++)
        if (variants[i]->mixer == c->mixer)
            return variants[i];
    return c->variant;
}

/* A choice that the model does not have must not be said to differ. Whether tokens may see the
 * future is for config_check to say; checkpoints say what no parameter depends on, and a clip,
 * whatever the model has. */
static void refuse_idle(struct reader *r, const struct config *c)
{
    const struct config usual = config_default(kin_of(c), c->D, c->H, c->dh, c->F, c->N, c->V);

    for (int i = 0; r->st == OK && i < MODEL_CHOICE_COUNT; i++) {
        const struct choice *const row = &model_choices[i];
        const char *const text = word(r, choice_key(row));
        if (i == CHOICE_direction || row->elsewhere || !row->applies || row->applies(c) ||
            (!*r->prefix && (row->at_eval || i == CHOICE_clip)) || strcmp(text, "none") == 0 ||
            strcmp(text, "0") == 0 || choice_equal(row, c, &usual))
            continue;
        r->st = safetensors_fail(
            r->s, r->e, "metadata %s is \"%.64s\", which variant %s does not obey  -> leave it out",
            choice_key(row), text, c->variant->name);
    }
}

enum status checkpoint_config_as(const struct safetensors *s, const char *prefix,
                                 const struct variant *v, struct config *c, struct err *e)
{
    struct reader r = {.s = s, .prefix = prefix, .e = e};

    read_sizes(&r, v, c);
    if (r.st == OK)
        c->pos = read_pos(&r, v);
    if (r.st != OK)
        return r.st;
    read_rows(&r, c);
    read_mixer(&r, c);
    read_extra(&r, c);
    read_map(&r, c);
    read_numbers(&r, c, SLOT_COUNT);
    if (r.st == OK)
        r.st = checkpoint_check(s, c, e);
    if (r.st == OK)
        refuse_idle(&r, c);
    return r.st;
}

/* ---- tensors ------------------------------------------------------------------------------ */

static bool same_shape(const struct tensor *t, const struct param *p)
{
    return t->rank == p->rank && memcmp(t->shape, p->shape, sizeof(int) * (size_t)p->rank) == 0;
}

static enum status fits(const struct safetensors *s, const char *prefix, const struct param *p,
                        struct err *e)
{
    char name[TENSOR_NAME];

    snprintf(name, sizeof(name), "%s%s", prefix, p->name);
    const struct tensor *from = safetensors_find(s, name);
    if (!from)
        return safetensors_fail(s, e, "tensor \"%s\" missing (file is variant %.64s)", name,
                                safetensors_meta(s, "variant"));
    if (from->dtype != DTYPE_F32 || !same_shape(from, p))
        return safetensors_fail(
            s, e, "tensor \"%s\" is not F32 [%d%s%.0d%s%.0d%s%.0d]  -> its metadata says otherwise",
            name, p->shape[0], p->rank > 1 ? "," : "", p->shape[1], p->rank > 2 ? "," : "",
            p->shape[2], p->rank > 3 ? "," : "", p->shape[3]);
    const float *const x = from->data;
    for (size_t i = 0; p->bounded && i < from->n; i++)
        if (!(x[i] >= p->least && x[i] <= p->most))
            return safetensors_fail(s, e, "tensor \"%s\" has %g at %zu  -> use %g to %g", name,
                                    (double)x[i], i, (double)p->least, (double)p->most);
    return OK;
}

/* What was trained of a map that the file has with it (optimise/lora.h). */
static bool is_merged(const char *name)
{
    return text_ends(name, ".lora_A") || text_ends(name, ".lora_B");
}

/* Files with a prefix give buffers as inputs instead. */
static bool stands_in(const char *prefix, const struct param *p) { return !*prefix || !p->buffer; }

enum status checkpoint_fits(const struct safetensors *s, const char *prefix, const struct params *p,
                            struct err *e)
{
    const size_t skip = strlen(prefix);

    for (int i = 0; i < p->n; i++)
        if (stands_in(prefix, &p->v[i]))
            TRY(fits(s, prefix, &p->v[i], e));
    for (int i = 0; i < s->n_tensors; i++) {
        const char *const name = s->tensors[i].name;
        if (strncmp(name, prefix, skip) == 0 && !params_find(p, name + skip) && !is_merged(name))
            return safetensors_fail(s, e,
                                    "tensor \"%s\" is of nothing that the model has (file is "
                                    "variant %.64s)  -> is it of another model?",
                                    name, safetensors_meta(s, "variant"));
    }
    return OK;
}

enum status checkpoint_load(const struct safetensors *s, const char *prefix, struct params *p,
                            struct err *e)
{
    TRY(checkpoint_fits(s, prefix, p, e));

    for (int i = 0; i < p->n; i++) {
        char name[TENSOR_NAME];
        if (!stands_in(prefix, &p->v[i]))
            continue;
        snprintf(name, sizeof(name), "%s%s", prefix, p->v[i].name);
        param_set(&p->v[i], safetensors_find(s, name)->data);
    }
    return OK;
}
