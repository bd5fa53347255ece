/* SPDX-License-Identifier: MIT
 *
 * See adapter.h. */
#include "adapter.h"

#include "config_json.h"
#include "layout.h"
#include "variants/base/half.h"
#include "variants/base/json_text.h"
#include "variants/model/lm/lm.h"

#include <ctype.h>
#include <regex.h>

#define BEFORE "base_model.model."
enum { ADAPTER_PATH = 4200, MOST = 1 << 24 };

/* The module of the publisher's program that has a piece's tensor; false: it is no module's. */
static bool module_of(char to[TENSOR_NAME], const struct published *p, const struct piece *piece)
{
    const char *const prefix = *p->prefix || piece->row->bare ? "" : p->rows->prefix;

    if (!text_ends(piece->name, ".weight"))
        return false;
    return snprintf(to, TENSOR_NAME, "%s%.*s", prefix, (int)strlen(piece->name) - 7, piece->name) <
           TENSOR_NAME;
}

static enum status no_memory(const struct published *p, struct err *e)
{
    return fail(e, E_NOMEM, "checkpoint %s: no memory for its adapter  -> free some", p->path);
}

/* ---- reading ------------------------------------------------------------------------------ */

/* A and B; false: there are none. */
static bool find_pair(const struct published *p, const struct piece *piece,
                      const struct tensor *ab[2])
{
    char module[TENSOR_NAME], name[2 * TENSOR_NAME];

    for (int i = 0; i < 2; i++) {
        ab[i] = NULL;
        if (!module_of(module, p, piece))
            return false;
        snprintf(name, sizeof(name), BEFORE "%s.lora_%c.weight", module, "AB"[i]);
        ab[i] = safetensors_find(&p->adapter->file, name);
    }
    return ab[0] || ab[1];
}

static bool is_turned(const struct published *p)
{
    return json_is_true(json_object_get(p->adapter->config, "fan_in_fan_out"));
}

/* As peft matches them: a pattern covers the last parts of a module's name. What POSIX has no word for is none. */
static bool is_pattern(regex_t *r, const char *pattern)
{
    char whole[512];

    for (const char *at = pattern; (at = strchr(at, '\\')); at += 2)
        if (!ispunct((unsigned char)at[1]))
            return false;
    return !strstr(pattern, "(?") &&
           (size_t)snprintf(whole, sizeof(whole), "^(.*\\.)?(%s)$", pattern) < sizeof(whole) &&
           regcomp(r, whole, REG_EXTENDED | REG_NOSUB) == 0;
}

static bool covers(const char *pattern, const char *module)
{
    regex_t r;

    if (!is_pattern(&r, pattern))
        return false;
    const bool is = regexec(&r, module, 0, NULL, 0) == 0;
    regfree(&r);
    return is;
}

static double scale_of(const struct published *p, const char *module, int rank)
{
    const json_t *const config = p->adapter->config;
    json_t *const by_module = json_object_get(config, "alpha_pattern");
    double alpha = json_number_value(json_object_get(config, "lora_alpha"));
    const char *pattern;
    json_t *value;

    json_object_foreach(by_module, pattern, value) if (covers(pattern, module))
    {
        alpha = json_number_value(value);
        break;
    }
    return json_is_true(json_object_get(config, "use_rslora")) ? alpha / sqrt(rank) : alpha / rank;
}

static enum status wrong(const struct published *p, struct err *e, const char *name,
                         const char *why)
{
    return fail(e, E_IO, "adapter %s: %s %s  -> an adapter of %s", p->adapter->file.path, name, why,
                p->path);
}

/* s B A as the published tensor lies. */
static void multiply(float *to, const float *a, const float *b, double s,
                     const struct tensor *const ab[2], bool turned)
{
    const int r = ab[0]->shape[0], in = ab[0]->shape[1], out = ab[1]->shape[0];

    memset(to, 0, sizeof(*to) * (size_t)out * (size_t)in);
    for (ptrdiff_t i = 0; i < out; i++)
        for (int k = 0; k < r; k++) {
            const float x = (float)s * b[i * r + k];
            for (ptrdiff_t j = 0; j < in; j++)
                to[turned ? j * out + i : i * in + j] += x * a[k * in + j];
        }
}

enum status adapter_add(const struct published *p, const struct piece *to, const struct tensor *t,
                        struct err *e)
{
    const struct tensor *ab[2];
    struct tensor product = *t;
    struct param own = to->w;
    char module[TENSOR_NAME];
    bool finite = true;

    if (!p->adapter || !find_pair(p, to, ab) || !module_of(module, p, to))
        return OK;
    float *const a = malloc(sizeof(*a) * (ab[0]->n + ab[1]->n + t->n + own.n));
    if (!a)
        return no_memory(p, e);
    float *const b = a + ab[0]->n, *const whole = b + ab[1]->n;
    tensor_floats(a, ab[0], 0, ab[0]->n);
    tensor_floats(b, ab[1], 0, ab[1]->n);
    multiply(whole, a, b, scale_of(p, module, ab[0]->shape[0]), ab, is_turned(p));
    product.dtype = DTYPE_F32;
    product.data = whole;
    own.data = whole + t->n;
    const enum status st = layout_read(p, &own, to->row, &product);
    for (size_t i = 0; st == OK && i < own.n; i++) {
        to->w.data[i] += own.data[i];
        finite = finite && isfinite(own.data[i]);
    }
    free(a);
    if (st != OK)
        return no_memory(p, e);
    return finite ? OK : wrong(p, e, to->name, "has a product that is not finite");
}

/* Both are there, of one rank and of the tensor's shape. */
static enum status check_pair(const struct published *p, const struct piece *piece, struct err *e)
{
    const struct tensor *const t = shards_find(&p->shards, piece->name)->t, *ab[2] = {0};
    const int turned = is_turned(p);

    if (!find_pair(p, piece, ab))
        return OK;
    for (int i = 0; i < 2; i++)
        if (!ab[i] || ab[i]->rank != 2 || !tensor_is_readable(ab[i]->dtype))
            return wrong(p, e, piece->name, "lacks one of its two products, or it is not a matrix");
    return t->rank == 2 && ab[0]->shape[0] > 0 && ab[0]->shape[0] == ab[1]->shape[1] &&
                   ab[0]->shape[1] == t->shape[!turned] && ab[1]->shape[0] == t->shape[turned]
               ? OK
               : wrong(p, e, piece->name, "has products of other shapes");
}

static enum status check_pairs(const struct published *p, struct err *e)
{
    const struct safetensors *const file = &p->adapter->file;
    struct lm m;
    enum status st = lm_init(&m, &p->config, e);

    for (int i = 0; st == OK && i < m.params.n; i++)
        for (int nth = 0, of = 1; st == OK && nth < of; nth++) {
            const struct piece piece = piece_of(p, &m.params.v[i], nth);
            of = piece.of;
            st = check_pair(p, &piece, e);
        }
    lm_free(&m);
    for (int i = 0; st == OK && i < file->n_tensors; i++)
        if (!file->asked_tensor[i])
            st = wrong(p, e, file->tensors[i].name, "belongs to no map of the model");
    return st;
}

/* Keys that would make it another function of A and B. */
static enum status check_config(const struct published *p, struct err *e)
{
    static const char *const other[] = {"alora_invocation_tokens", "arrow_config",
                                        "layer_replication", "use_qalora"};
    const json_t *const config = p->adapter->config;
    const char *const type = json_string_value(json_object_get(config, "peft_type"));
    const char *const init = json_string_value(json_object_get(config, "init_lora_weights"));
    const char *pattern;
    json_t *value;
    regex_t r;

    if (!type || strcmp(type, "LORA") != 0)
        return wrong(p, e, "peft_type", "is not LORA");
    if (!(json_number_value(json_object_get(config, "lora_alpha")) > 0))
        return wrong(p, e, "lora_alpha", "is not a positive number");
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        const json_t *const said = json_object_get(config, other[i]);
        if (said && !json_is_null(said) && !json_is_false(said))
            return wrong(p, e, other[i], "is more than products that are added");
    }
    json_object_foreach(json_object_get(config, "alpha_pattern"), pattern, value)
    {
        if (!json_is_number(value) || !is_pattern(&r, pattern))
            return wrong(p, e, "alpha_pattern", "has a pattern that is not read, or no number");
        regfree(&r);
    }
    /* the others change the model's own weights, too */
    if (init && strcmp(init, "gaussian") != 0 && strcmp(init, "eva") != 0 &&
        strcmp(init, "orthogonal") != 0)
        return wrong(p, e, "init_lora_weights", "belongs to weights that it has changed");
    return OK;
}

enum status adapter_open(struct published *p, const char *dir, struct err *e)
{
    char path[ADAPTER_PATH];

    if (p->form.computed)
        return fail(e, E_UNSUPPORTED,
                    "--lora %s has the modules of a folder, %s is a GGUF file  -> use the folder",
                    dir, p->path);
    p->adapter = need_room(1, sizeof(*p->adapter));
    snprintf(path, sizeof(path), "%s/" ADAPTER_CONFIG, dir);
    TRY(import_json(&p->adapter->config, dir, path, MOST, e));
    snprintf(path, sizeof(path), "%s/" ADAPTER_TENSORS, dir);
    TRY(safetensors_open_published(&p->adapter->file, path, e));
    TRY(check_config(p, e));
    return check_pairs(p, e);
}

void adapter_close(struct adapter *a)
{
    if (!a)
        return;
    json_decref(a->config);
    safetensors_close(&a->file);
    free(a);
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Of one published map: A [rank,in] and, turned, B [rank,out]. */
struct module {
    char name[TENSOR_NAME];
    int rank, in, out;
    float *a, *b;
};
struct modules {
    struct module *v;
    int n;
    bool turned; /* published maps are [in,out] */
};

static struct module *module_at(struct modules *all, const char *name, int in, int out)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, name) == 0)
            return &all->v[i];
    all->v = realloc(all->v, sizeof(*all->v) * (size_t)(all->n + 1));
    NEED(all->v);
    all->v[all->n] = (struct module){.in = in, .out = out};
    snprintf(all->v[all->n].name, TENSOR_NAME, "%s", name);
    return &all->v[all->n++];
}

/* The rows and columns of a piece in its published map, as its first row and column lie. */
static void put_product(struct module *m, const size_t *places, const struct piece *piece,
                        const float *a, const float *b, int r, bool turned)
{
    const int rows = piece->w.shape[0], columns = piece->w.shape[1];
    const size_t width = (size_t)(turned ? m->out : m->in), in = (size_t)m->in,
                 out = (size_t)m->out;
    const size_t had = (size_t)m->rank;

    m->rank += r;
    m->a = realloc(m->a, sizeof(*m->a) * (size_t)m->rank * in);
    m->b = realloc(m->b, sizeof(*m->b) * (size_t)m->rank * out);
    NEED(m->a && m->b);
    memset(m->a + had * in, 0, sizeof(*m->a) * (size_t)r * in);
    memset(m->b + had * out, 0, sizeof(*m->b) * (size_t)r * out);
    for (int k = 0; k < r; k++) {
        float *const to_a = m->a + (had + (size_t)k) * in, *const to_b =
                                                               m->b + (had + (size_t)k) * out;
        for (int j = 0; j < columns; j++) {
            const size_t at = places[j] - 1;
            to_a[turned ? at / width : at % width] = a[k * columns + j];
        }
        for (int i = 0; i < rows; i++) {
            const size_t at = places[(size_t)i * (size_t)columns] - 1;
            to_b[turned ? at % width : at / width] = b[i * r + k];
        }
    }
}

static enum status no_module(const struct published *p, const struct piece *piece, struct err *e)
{
    return fail(
        e, E_UNSUPPORTED,
        "checkpoint %s: no module of peft has the products of \"%s\"  -> --to hf merges them",
        p->path, piece->name);
}

static enum status add_piece(struct modules *all, const struct published *p,
                             const struct piece *piece, const float *a, const float *b, int r,
                             struct err *e)
{
    const struct tensor *const t = shards_find(&p->shards, piece->name)->t;
    size_t *const places = calloc(piece->w.n, sizeof(*places));
    char name[TENSOR_NAME];
    const bool turned = piece->row->layout == LAYOUT_COLUMNS;

    if (!places)
        return no_memory(p, e);
    enum status st = t->rank != 2 || piece->of > 1 || !module_of(name, p, piece)
                         ? no_module(p, piece, e)
                     : layout_places(places, p, &piece->w, piece->row, t) == OK ? OK
                                                                                : no_memory(p, e);
    for (size_t i = 0; st == OK && i < piece->w.n; i++)
        if (!places[i]) /* of lower rank than ours */
            st = no_module(p, piece, e);
    if (st == OK) {
        all->turned = turned;
        put_product(module_at(all, name, t->shape[!turned], t->shape[turned]), places, piece, a, b,
                    r, turned);
    }
    free(places);
    return st;
}

/* Those of a parameter, if the checkpoint has them. */
static enum status add_param(struct modules *all, const struct published *p,
                             const struct safetensors *checkpoint, const struct param *w,
                             struct err *e)
{
    char name[TENSOR_NAME];

    snprintf(name, sizeof(name), "%s.lora_A", w->name);
    const struct tensor *const a = safetensors_find(checkpoint, name);
    snprintf(name, sizeof(name), "%s.lora_B", w->name);
    const struct tensor *const b = safetensors_find(checkpoint, name);
    if (!a && !b)
        return OK;
    if (!a || !b || a->rank != 2 || b->rank != 2 || a->shape[1] != w->shape[1] ||
        b->shape[0] != w->shape[0] || a->shape[0] != b->shape[1])
        return safetensors_fail(checkpoint, e,
                                "tensors \"%s\" and lora_A do not fit  -> train it again", name);
    const struct piece piece = piece_of(p, w, 0);
    return add_piece(all, p, &piece, a->data, b->data, a->shape[0], e);
}

static bool put_text(FILE *f, const void *arg) { return fputs(arg, f) >= 0; }

static enum status write_config(const struct published *p, const struct modules *all, double alpha,
                                int rank, const char *dir, struct err *e)
{
    json_t *const names = json_array(), *const ranks = json_object(), *const alphas = json_object();
    char path[ADAPTER_PATH];

    for (int i = 0; i < all->n; i++) {
        const struct module *const m = &all->v[i];
        json_array_append_new(names, json_string(m->name));
        if (m->rank != rank) {
            json_object_set_new(ranks, m->name, json_integer(m->rank));
            json_object_set_new(alphas, m->name, json_real(alpha * m->rank / rank));
        }
    }
    json_t *const config = json_pack(
        "{s:s, s:s, s:s, s:i, s:f, s:f, s:s, s:b, s:b, s:o, s:o, s:o}", "peft_type", "LORA",
        "task_type", "CAUSAL_LM", "base_model_name_or_path", p->source, "r", rank, "lora_alpha",
        alpha, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out", all->turned, "inference_mode",
        1, "target_modules", names, "rank_pattern", ranks, "alpha_pattern", alphas);
    char *const text = json_write(config, JSON_INDENT(2));
    json_decref(config);
    if (!text)
        return no_memory(p, e);
    snprintf(path, sizeof(path), "%s/" ADAPTER_CONFIG, dir);
    const int why = half_write(path, put_text, text);
    free(text);
    return why ? fail(e, E_IO, "cannot write %s: %s  -> check the folder and its free space", path,
                      strerror(why))
               : OK;
}

static enum status write_tensors(struct modules *all, const char *dir, struct err *e)
{
    struct tensor *const t = need_room(2 * (size_t)all->n, sizeof(*t));
    static const char *const meta[] = {"format", "pt"};
    char path[ADAPTER_PATH];

    for (int i = 0; i < all->n; i++) {
        struct module *const m = &all->v[i];
        const size_t rank = (size_t)m->rank, out = (size_t)m->out, n = rank * out;
        float *const b = need_room(n, sizeof(*b));
        for (size_t k = 0; k < n; k++)
            b[k] = m->b[k % rank * out + k / rank];
        free(m->b);
        m->b = b;
        t[2 * i] = (struct tensor){.dtype = DTYPE_F32,
                                   .rank = 2,
                                   .shape = {m->rank, m->in},
                                   .n = rank * (size_t)m->in,
                                   .data = m->a};
        t[2 * i + 1] = (struct tensor){
            .dtype = DTYPE_F32, .rank = 2, .shape = {m->out, m->rank}, .n = n, .data = b};
        for (int k = 0; k < 2; k++)
            CHECK(snprintf(t[2 * i + k].name, TENSOR_NAME, BEFORE "%.60s.lora_%c.weight", m->name,
                           "AB"[k]) < TENSOR_NAME);
    }
    snprintf(path, sizeof(path), "%s/" ADAPTER_TENSORS, dir);
    const enum status st = safetensors_write(path, t, 2 * all->n, meta, 1, e);
    free(t);
    return st;
}

enum status adapter_write(const struct published *p, const struct safetensors *checkpoint,
                          const struct params *params, const char *dir, struct err *e)
{
    struct modules all = {0};
    double alpha = 0;
    enum status st = safetensors_real(checkpoint, "lora_alpha", 0, &alpha, e);
    int rank = 0;

    if (st == OK && !(alpha > 0))
        st = safetensors_fail(checkpoint, e, "has no products of low rank  -> bench train --lora");
    for (int i = 0; st == OK && i < params->n; i++)
        st = add_param(&all, p, checkpoint, &params->v[i], e);
    for (int i = 0; i < all.n; i++) /* of a map that holds one of ours */
        rank = rank ? min_int(rank, all.v[i].rank) : all.v[i].rank;
    if (st == OK)
        st = write_tensors(&all, dir, e);
    if (st == OK)
        st = write_config(p, &all, alpha, rank, dir, e);
    for (int i = 0; i < all.n; i++) {
        free(all.v[i].a);
        free(all.v[i].b);
    }
    free(all.v);
    return st;
}
