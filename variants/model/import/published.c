/* SPDX-License-Identifier: MIT
 *
 * Reading published models: one loop over our parameters, each found by its row. */
#include "published.h"

#include "adapter.h"

#include "gguf_model.h"
#include "layout.h"
#include "mxfp4.h"
#include "variants/base/gguf.h"
#include "variants/base/printable.h"
#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/lm/lm.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- where it is -------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum status published_folder(char dir[PUBLISHED_PATH], const char *path, struct err *e)
{
    const char *const slash = strrchr(path, '/');

    const int n = is_folder(path) ? snprintf(dir, PUBLISHED_PATH, "%s", path)
                  : slash         ? snprintf(dir, PUBLISHED_PATH, "%.*s", (int)(slash - path), path)
                                  : snprintf(dir, PUBLISHED_PATH, ".");
    return n + 64 < PUBLISHED_PATH
               ? OK
               : fail(e, E_IO, "checkpoint %.200s...: its path is too long  -> use a shorter one",
                      path);
}

/* Does the file say that it is one of ours? */
static bool is_ours(const char *path)
{
    struct safetensors s;
    struct err ignored;

    if (safetensors_open_published(&s, path, &ignored) != OK)
        return false;
    const bool ours = safetensors_meta(&s, "format") &&
                      strncmp(safetensors_meta(&s, "format"), "bench-", strlen("bench-")) == 0;
    safetensors_close(&s);
    return ours;
}

bool published_is(const char *path)
{
    char dir[PUBLISHED_PATH], config[PUBLISHED_PATH + 32];

    if (is_folder(path) || gguf_is(path))
        return true;
    if (published_folder(dir, path, &(struct err){""}) != OK)
        return false;
    snprintf(config, sizeof(config), "%s/" PUBLISHED_CONFIG, dir);
    return access(config, F_OK) == 0 && access(path, F_OK) == 0 && !is_ours(path);
}

/* ---- config.json -------------------------------------------------------------------------- */

/* A language model, if it says what it is. */
static void check_architectures(struct config_json *j)
{
    const json_t *const names = config_json_at(j, "architectures");
    const json_t *name;
    size_t i;

    if (names && !json_is_array(names))
        config_json_refuse(j, "architectures is not a list  -> use a published config");
    json_array_foreach(names, i, name)
    {
        const char *const text = json_is_string(name) ? json_string_value(name) : "";
        const bool bare = text_ends(text, "Model");
        if (!strstr(text, "LMHeadModel") && !strstr(text, "ForCausalLM") && !bare)
            config_json_refuse(j, "architectures %.60s: not a language model  -> ...ForCausalLM",
                               text);
    }
}

static void put_key(struct config_json *j, const struct key_row *row)
{
    const bool needed = row->absent == REQUIRED && row->type == KEY_WHOLE;
    const int absent = needed ? REQUIRED : (int)row->absent;

    if (row->type == KEY_WHOLE)
        config_json_put(
            j, row->ours, "%d",
            config_json_whole(j, row->published, absent, (int)row->least, (int)row->most));
    else if (row->type == KEY_FLAG)
        config_json_put(j, row->ours, "%d", config_json_flag(j, row->published, row->absent != 0));
    else
        config_json_put(j, row->ours, "%.9g",
                        config_json_real(j, row->published, row->absent, row->least, row->most));
}

/* Of a model of texts and other things, such as images: go on with what it says of texts. */
static void enter_text(struct published *p, struct config_json *j)
{
    static const char *const of_all[] = {"tie_word_embeddings", "quantization_config",
                                         "_name_or_path"};
    const char *const whole = json_string_value(json_object_get(j->root, "model_type"));
    json_t *const text = json_object_get(j->root, "text_config");

    p->part = json_object_get(text, "model_type") && !(whole && model_type_find(whole));
    if (!p->part)
        return;
    for (size_t i = 0; i < ARRAY_LEN(of_all); i++)
        if (json_object_get(j->root, of_all[i]))
            json_object_set(text, of_all[i], json_object_get(j->root, of_all[i]));
    json_incref(text);
    json_decref(j->root);
    j->root = text;
}

static void find_family(struct published *p, struct config_json *j)
{
    const char *const name = config_json_word(j, "model_type", NULL);

    if (j->st == OK && !name)
        config_json_refuse(j, "model_type is missing from config.json  -> give a complete config");
    if (j->st != OK)
        return;
    p->rows = model_type_find(name);
    if (!p->rows) {
        config_json_refuse(j, "model_type \"%.60s\" is not known  -> use %s", name,
                           model_type_names());
        return;
    }
    p->family = j->family = p->rows->name;
    for (const struct usual_size *u = p->rows->usual; !p->form.computed && u && u->key; u++)
        if (!json_object_get(j->root, u->key))
            json_object_set_new(j->root, u->key, json_integer(u->is));
    j->aliases = p->rows->aliases;
    j->usual_context = p->rows->usual_context;
}

/* Where its weights are from, without what a terminal would obey. */
static void put_source(struct published *p, struct config_json *j, const char *dir)
{
    const json_t *const said = json_object_get(j->root, "_name_or_path");
    char whole[PUBLISHED_PATH];
    const char *name = json_is_string(said) ? json_string_value(said) : "";

    if (!*name) { /* the folder's own name, whatever the path to it is */
        name = path_name(realpath(dir, whole) ? whole : dir);
    }
    printable_copy(p->source, sizeof(p->source), name);
}

/* ---- names -------------------------------------------------------------------------------- */

static bool is_of(const struct tensor_row *row, const struct config *c, int layer)
{
    return row->of == EVERY_LAYER || (row->of == ATTENDS) == config_attends(c, layer);
}

static void name_piece(struct piece *to, const struct published *p, const char *rest)
{
    const char *const prefix = to->row->bare ? p->outer : p->prefix;

    rest = to->row->bare_rest ? "" : rest;
    tensor_row_name(to->name, to->row->published, prefix, to->layer, to->expert, rest);
}

/* The row of a tensor of ours, named after its first published one. */
static const char *find_row(struct piece *to, const struct published *p)
{
    const char *rest = "";

    for (to->row = p->rows->tensors; to->row->ours; to->row++) {
        if (!tensor_row_covers(to->row->ours, to->w.name, &to->layer, &rest) ||
            !is_of(to->row, &p->config, to->layer))
            continue;
        name_piece(to, p, rest);
        if (!to->row->if_there || shards_find(&p->shards, to->name))
            break;
    }
    CHECK(to->row->ours); /* the rows of a kind of model cover all of its tensors */
    return rest;
}

/* NULL = there are none. */
static struct shard_tensor *find_scales(const struct published *p, const struct piece *of)
{
    char name[TENSOR_NAME];

    tensor_row_name(name, of->row->scales, p->prefix, of->layer, 0, "");
    return shards_find(&p->shards, name);
}

struct piece piece_of(const struct published *p, const struct param *w, int nth)
{
    struct piece to = {.w = *w, .of = 1};
    const char *const rest = find_row(&to, p);

    if (to.row->layout == LAYOUT_JOIN) {
        to.of = to.row->parts;
        to.row += nth;
        const int64_t first = to.row->before(&p->config, nth);
        const size_t width = w->n / (size_t)w->shape[0];
        to.w.shape[0] = (int)(to.row->before(&p->config, nth + 1) - first);
        to.w.n = (size_t)to.w.shape[0] * width;
        to.w.data = w->data ? w->data + (size_t)first * width : NULL;
    }
    if (to.row->layout == LAYOUT_EXPERTS) {
        to.of = w->shape[0];
        to.expert = nth;
        to.w.rank--;
        memmove(to.w.shape, w->shape + 1, sizeof(*w->shape) * (size_t)to.w.rank);
        to.w.n = w->n / (size_t)to.of;
        to.w.data = w->data ? w->data + (size_t)nth * to.w.n : NULL;
    }
    name_piece(&to, p, rest);
    return to;
}

/* With or without the model's name in front, as the embedding shows; of a model of more than texts,
 * with that of its part in two places. */
static void find_prefix(struct published *p)
{
    static const struct {
        const char *of_model, *of_rest;
    } parts[] = {{"model.language_model.", ""},
                 {"language_model.model.", "language_model."},
                 {"model.text_model.", ""}};
    char with[TENSOR_NAME];

    p->prefix = p->rows->prefix;
    p->outer = "";
    for (size_t i = 0; p->part && i < ARRAY_LEN(parts); i++) {
        snprintf(with, sizeof(with), "%s%s", parts[i].of_model, p->rows->embedding);
        if (shards_find(&p->shards, with)) {
            p->prefix = parts[i].of_model;
            p->outer = parts[i].of_rest;
        }
    }
    snprintf(with, sizeof(with), "%s%s", p->prefix, p->rows->embedding);
    if (!shards_find(&p->shards, with) && shards_find(&p->shards, p->rows->embedding))
        p->prefix = "";
}

/* Wrappers differ in what they take for tied where they do not say it: the files show. */
static void settle_tie(const struct published *p, struct config_json *j)
{
    static const char key[] = "tie_word_embeddings";
    char out[TENSOR_NAME];

    snprintf(out, sizeof(out), "%slm_head.weight", p->outer);
    if (p->part && !json_object_get(j->root, key))
        json_object_set_new(j->root, key, json_boolean(!shards_find(&p->shards, out)));
}

/* ---- shapes ------------------------------------------------------------------------------- */

static void shape_text(char to[64], int rank, const int64_t *shape)
{
    snprintf(to, 64, "[");
    for (int d = 0; d < rank; d++)
        text_append(to, 64, "%s%lld", d ? "," : "", (long long)shape[d]);
    text_append(to, 64, "]");
}

static enum status check_tensor(const struct published *p, const struct tensor *t,
                                const struct tensor_row *row, const struct param *w, struct err *e)
{
    int64_t want[TENSOR_RANK], is[TENSOR_RANK];
    char wanted[64], found[64];
    const int rank = layout_shape(p, want, row, w);

    for (int d = 0; d < t->rank; d++)
        is[d] = t->shape[d];
    const int padded = row->pads - PAD_ROWS; /* a dimension */
    if (row->pads && t->rank == 2 && is[padded] < want[padded])
        want[padded] = is[padded];
    if (t->rank != rank || memcmp(is, want, sizeof(*is) * (size_t)rank) != 0) {
        shape_text(wanted, rank, want);
        shape_text(found, t->rank, is);
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"%s\" is %s %s, config.json says %s  -> files "
                    "of one model",
                    p->path, t->name, t->dtype_name, found, wanted);
    }
    if (!tensor_is_readable(t->dtype) && row->layout != LAYOUT_MXFP4)
        return fail(e, E_IO, "checkpoint %s: tensor \"%s\" has dtype %s  -> F32, F16%s or BF16",
                    p->path, t->name, t->dtype_name, p->form.computed ? ", Q8_0, Q4_K" : "");
    return OK;
}

static enum status check_piece(const struct published *p, const struct piece *piece, struct err *e)
{
    struct shard_tensor *const t = shards_find(&p->shards, piece->name);
    if (!t)
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"%s\" missing (%s is %d)  -> give all files of one "
                    "model",
                    p->path, piece->name, p->rows->layers, p->config.N);
    t->used = true;
    TRY(check_tensor(p, t->t, piece->row, &piece->w, e));
    if (piece->row->layout == LAYOUT_MXFP4) {
        struct shard_tensor *const scales = find_scales(p, piece);
        TRY(mxfp4_check(p, t->t, scales ? scales->t : NULL, &piece->w, e));
        if (scales)
            scales->used = true;
    }
    return word_norm_check(p, piece->row, &piece->w, e);
}

/* Do this with each tensor of the file that a parameter is made of, until one fails. */
static enum status each_piece(const struct published *p, const struct param *w,
                              enum status (*one)(const struct published *, const struct piece *,
                                                 struct err *),
                              struct err *e)
{
    for (int nth = 0, of = 1; nth < of; nth++) {
        const struct piece piece = piece_of(p, w, nth);
        of = piece.of;
        TRY(one(p, &piece, e));
    }
    return OK;
}

/* Masks, positions and frequencies that some versions of the publishers' programs saved. With the
 * dot: "h.0.attn.c_attn.bias" is a weight. */
static bool is_buffer(const char *name)
{
    static const char *const ends[] = {
        ".attn.bias",           ".attn.masked_bias", ".attention.bias", ".attention.masked_bias",
        ".rotary_emb.inv_freq", "pos_emb.inv_freq",  ".position_ids",   "embeddings.position_ids"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (text_ends(name, ends[i]))
            return true;
    return false;
}

/* Layers that guess further tokens, and what reads images. */
static bool is_aside(const struct published *p, const char *name)
{
    const bool of_text =
        text_begins(name, p->prefix) || text_begins(name, *p->outer ? p->outer : "lm_head");

    return (p->rows->aside && text_begins(name, p->rows->aside)) || (p->part && !of_text);
}

/* What nothing reads would make a wrong model, silently. */
static enum status check_rest(const struct published *p, struct err *e)
{
    for (int i = 0; i < p->shards.n_tensors; i++) {
        const struct shard_tensor *const t = &p->shards.tensors[i];
        const struct shard_tensor *first;
        if (t->used || is_buffer(t->t->name) || is_aside(p, t->t->name))
            continue;
        if (!ties_find(&first, p, t->t->name))
            return fail(e, E_IO,
                        "checkpoint %s: tensor \"%s\" belongs to nothing that config.json "
                        "describes  -> use a model of another kind",
                        p->path, t->t->name);
        TRY(ties_check_shape(p, t->t, first, e));
    }
    return OK;
}

static enum status check_tensors(struct published *p, struct err *e)
{
    struct err why;
    struct lm m;
    enum status st = lm_init(&m, &p->config, &why);

    if (st != OK)
        return fail(e, st == E_NOMEM ? st : E_IO, "checkpoint %s: %s", p->path, why.msg);
    for (int i = 0; st == OK && i < m.params.n; i++)
        st = each_piece(p, &m.params.v[i], check_piece, e);
    lm_free(&m);
    TRY(st);
    return check_rest(p, e);
}

/* What config.json says, in the words of a checkpoint of ours: the rows of its keys, and what is no
 * row. How tensors are called says which program wrote the files; `only`: the one to read. */
static void say_config(struct published *p, struct config_json *j, const char *dir,
                       const char *only)
{
    enter_text(p, j);
    find_family(p, j);
    if (j->st == OK && !p->form.computed) /* a GGUF file is open */
        j->st = shards_open(&p->shards, p->path, dir, only, j->e);
    if (j->st != OK)
        return;
    find_prefix(p);
    settle_tie(p, j);
    j->bare = !*p->prefix && !p->form.computed;
    j->shards = &p->shards;
    check_architectures(j);
    for (const struct key_row *row = p->rows->keys; row->published; row++)
        put_key(j, row);
    p->rows->more(j);
    p->norms_words = j->norms_words;
    p->context = config_json_whole(j, p->rows->context, p->rows->usual_context, 1, 1 << 24);
    p->endless = p->rows->endless;
    import_refuse_strangers(j);
    put_source(p, j, dir);
    if (p->form.adjacent)
        config_json_put(j, "rope_pairs", "interleaved");
}

static enum status read_config(struct published *p, const char *dir, const char *only,
                               struct err *e)
{
    char file[PUBLISHED_PATH + 32];
    struct config_json j;

    if (gguf_is(p->path)) {
        json_t *config;
        TRY(gguf_model_open(&p->shards, &config, &p->form, p->path, e));
        config_json_take(&j, p->path, config, e);
        dir = p->path;
    } else {
        snprintf(file, sizeof(file), "%s/" PUBLISHED_CONFIG, dir);
        if (access(file, F_OK) != 0)
            return fail(e, E_IO,
                        "checkpoint %s: no " PUBLISHED_CONFIG
                        "  -> give the folder of a published model",
                        p->path);
        config_json_open(&j, p->path, file, e);
    }
    if (j.st == OK)
        say_config(p, &j, dir, only);
    const enum status st = j.st == OK ? checkpoint_config(&j.said, "", &p->config, e) : j.st;
    config_json_close(&j);
    return st;
}

static enum status open_at(struct published *p, struct err *e)
{
    char dir[PUBLISHED_PATH];

    TRY(published_folder(dir, p->path, e));
    TRY(read_config(p, dir, is_folder(p->path) ? NULL : p->path, e));
    return check_tensors(p, e);
}

enum status published_open(struct published *p, const char *path, struct err *e)
{
    *p = (struct published){.path = need_text("%s", path), .family = ""};
    const enum status st = open_at(p, e);
    /* A GGUF file has no config.json, and other names. */
    if (st != OK && p->form.computed && e)
        text_append(e->msg, sizeof(e->msg),
                    " (a GGUF file: keys and tensors by their names in the folder it was made of)");
    if (st != OK)
        published_close(p);
    return st;
}

void published_close(struct published *p)
{
    adapter_close(p->adapter);
    shards_close(&p->shards);
    free(p->path);
    *p = (struct published){0};
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool all_finite(const struct param *w)
{
    bool finite = true;

    for (size_t i = 0; i < w->n; i++)
        finite = finite && isfinite(w->data[i]);
    return finite;
}

static enum status load_piece(const struct published *p, const struct piece *piece, struct err *e)
{
    const struct param *const w = &piece->w;
    const struct tensor_row *const row = piece->row;
    const char *const name = piece->name;

    const struct shard_tensor *const t = shards_find(&p->shards, name);
    if (row->layout == LAYOUT_MXFP4)
        mxfp4_read(w, t->t, find_scales(p, piece)->t, row->part, row->parts);
    else if (layout_read(p, w, row, t->t) != OK)
        return fail(e, E_NOMEM, "checkpoint %s: no memory for tensor \"%s\"  -> free some", p->path,
                    name);
    TRY(adapter_add(p, piece, t->t, e));
    shards_drop(t->in, t->t);
    for (size_t i = 0; row->log && p->form.computed && i < w->n; i++)
        w->data[i] = logf(-w->data[i]);
    if (!all_finite(w))
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"%s\" holds a value that is not finite  -> the "
                    "file as published",
                    p->path, name);
    for (size_t i = 0; row->plus_one && !p->form.computed && i < w->n; i++)
        w->data[i] += 1;
    return word_norm_apply(p, row, w, e);
}

/* Numbers of a narrower type are rounded once all of the tensor is there as floats. */
enum status published_load_one(const struct published *p, struct param *w, struct err *e)
{
    struct param floats = *w;

    if (w->elem == ELEM_F32)
        return each_piece(p, w, load_piece, e);
    floats.data = malloc(w->n * sizeof(*floats.data));
    if (!floats.data)
        return fail(e, E_NOMEM, "checkpoint %s: no memory for tensor \"%s\"  -> free some", p->path,
                    w->name);
    const enum status st = each_piece(p, &floats, load_piece, e);
    if (st == OK)
        param_set(w, floats.data);
    free(floats.data);
    return st;
}

enum status published_load(const struct published *p, struct params *params, struct err *e)
{
    for (int i = 0; i < params->n; i++)
        TRY(published_load_one(p, &params->v[i], e));
    return ties_check_numbers(p, e);
}
