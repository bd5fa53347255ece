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

static double scale_of(const struct published *p, const char *module, int rank)
{
    const json_t *const config = p->adapter->config;
    json_t *const by_module = json_object_get(config, "alpha_pattern");
    double alpha = json_number_value(json_object_get(config, "lora_alpha"));
    const char *pattern;
    json_t *value;
    regex_t r;

    json_object_foreach(by_module, pattern, value)
    {
        CHECK(is_pattern(&r, pattern)); /* see check_config */
        const bool covers = regexec(&r, module, 0, NULL, 0) == 0;
        regfree(&r);
        if (covers) {
            alpha = json_number_value(value);
            break;
        }
    }
    return json_is_true(json_object_get(config, "use_rslora")) ? alpha / sqrt(rank) : alpha / rank;
}

static enum status wrong(const struct published *p, struct err *e, const char *name,
                         const char *why)
{
    return fail(e, E_IO, "adapter %s: %s %s  -> an adapter of %s", p->adapter->file.path, name, why,
                p->path);
}

/* Add s B A, as the published tensor lies. */
static void multiply(float *to, const float *a, const float *b, double s,
                     const struct tensor *const ab[2], bool turned)
{
    const int r = ab[0]->shape[0], in = ab[0]->shape[1], out = ab[1]->shape[0];

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
    float *const a = need_room(ab[0]->n + ab[1]->n + t->n + own.n, sizeof(*a));
    float *const b = a + ab[0]->n, *const whole = b + ab[1]->n;
    tensor_floats(a, ab[0], 0, ab[0]->n);
    tensor_floats(b, ab[1], 0, ab[1]->n);
    multiply(whole, a, b, scale_of(p, module, ab[0]->shape[0]), ab, is_turned(p));
    product.dtype = DTYPE_F32;
    product.data = whole;
    own.data = whole + t->n;
    NEED(layout_read(p, &own, to->row, &product) == OK);
    for (size_t i = 0; i < own.n; i++) {
        to->w.data[i] += own.data[i];
        finite = finite && isfinite(own.data[i]);
    }
    free(a);
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
            return wrong(p, e, piece->name, "lacks lora_A or lora_B, or one is not a matrix");
    return t->rank == 2 && ab[0]->shape[0] > 0 && ab[0]->shape[0] == ab[1]->shape[1] &&
                   ab[0]->shape[1] == t->shape[!turned] && ab[1]->shape[0] == t->shape[turned]
               ? OK
               : wrong(p, e, piece->name, "has lora_A or lora_B of another shape");
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

enum status adapter_open(struct published *p, const char *path_of, const char *dir, struct err *e)
{
    char path[ADAPTER_PATH];

    if (!p->path || p->form.computed)
        return fail(
            e, E_UNSUPPORTED,
            "--lora %s has the modules of a published folder, %s is not one  -> use the folder",
            dir, path_of);
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

/* ---- training and writing ------------------------------------------------------------------ */

bool adapter_place(const void *published, const struct param *w, struct lora_map *in, int *row)
{
    const struct published *const p = published;
    const struct piece piece = piece_of(p, w, 0);
    const struct tensor *const t = shards_find(&p->shards, piece.name)->t;
    size_t *const places = need_room(w->n, sizeof(*places));
    char name[TENSOR_NAME];

    const bool turned = piece.row->layout == LAYOUT_COLUMNS;
    bool whole = piece.of == 1 && t->rank == 2 && t->shape[!turned] == w->shape[1] &&
                 module_of(name, p, &piece) && strlen(name) < sizeof(in->name) &&
                 layout_places(places, p, w, piece.row, t) == OK;
    in->turned = turned;
    in->out = t->shape[turned];
    for (size_t i = 0; whole && i < w->n; i++) {
        const size_t at = places[i] - 1, width = (size_t)t->shape[1], j = i % (size_t)w->shape[1];
        row[i / (size_t)w->shape[1]] = (int)(turned ? at % width : at / width);
        /* Without a place its rank is lower than that of ours. Columns are the same in both. */
        whole = places[i] && (turned ? at / width : at % width) == j;
    }
    if (whole)
        memcpy(in->name, name, strlen(name) + 1);
    free(places);
    return whole;
}

static bool put_text(FILE *f, const void *arg) { return fputs(arg, f) >= 0; }

/* Takes the names. */
static enum status write_config(const struct safetensors *checkpoint, double alpha, int rank,
                                json_t *names, const char *dir, struct err *e)
{
    const char *const source = safetensors_meta(checkpoint, "source");
    const bool turned = safetensors_meta(checkpoint, "fan_in_fan_out");
    char path[ADAPTER_PATH];

    json_t *const config =
        json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:s, s:b, s:b, s:o}", "peft_type", "LORA",
                  "task_type", "CAUSAL_LM", "base_model_name_or_path", source ? source : "", "r",
                  rank, "lora_alpha", alpha, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out",
                  turned, "inference_mode", 1, "target_modules", names);
    char *const text = json_write(config, JSON_INDENT(2));
    json_decref(config);
    NEED(text);
    snprintf(path, sizeof(path), "%s/" ADAPTER_CONFIG, dir);
    const int why = half_write(path, put_text, text);
    free(text);
    return why ? fail(e, E_IO, "cannot write %s: %s  -> check the folder and its free space", path,
                      strerror(why))
               : OK;
}

/* The products of a checkpoint, under peft's names; `names` gets their modules. */
static enum status rename_all(struct tensor *to, int *n, json_t *names,
                              const struct safetensors *checkpoint, struct err *e)
{
    for (int i = 0; i < checkpoint->n_tensors; i++) {
        const struct tensor *const t = &checkpoint->tensors[i];
        const char *const end = strstr(t->name, ".lora_");
        if (!end)
            continue;
        const int length = (int)(end - t->name);
        if (text_ends(t->name, ".weight.lora_A"))
            return safetensors_fail(checkpoint, e,
                                    "\"%s\" is by a name of ours  -> train --from the folder that "
                                    "was published",
                                    t->name);
        to[*n] = *t;
        if (snprintf(to[*n].name, TENSOR_NAME, BEFORE "%s.weight", t->name) >= TENSOR_NAME)
            return safetensors_fail(checkpoint, e, "\"%s\" is too long a name  -> a shorter one",
                                    t->name);
        if (text_ends(t->name, ".lora_A"))
            json_array_append_new(names, json_stringn(t->name, (size_t)length));
        ++*n;
    }
    return OK;
}

enum status adapter_write(const struct safetensors *checkpoint, const char *dir, struct err *e)
{
    struct tensor *const t = need_room((size_t)checkpoint->n_tensors, sizeof(*t));
    static const char *const meta[] = {"format", "pt"};
    json_t *const names = json_array();
    char path[ADAPTER_PATH];
    double alpha = 0;
    int n = 0;

    enum status st = safetensors_real(checkpoint, "lora_alpha", 0, &alpha, e);
    if (st == OK)
        st = rename_all(t, &n, names, checkpoint, e);
    if (st == OK && n == 0)
        st = safetensors_fail(checkpoint, e, "has no products of low rank  -> bench train --lora");
    snprintf(path, sizeof(path), "%s/" ADAPTER_TENSORS, dir);
    if (st == OK)
        st = safetensors_write(path, t, n, meta, 1, e);
    if (st == OK)
        st = write_config(checkpoint, alpha, t[0].shape[text_ends(t[0].name, ".lora_B.weight")],
                          json_incref(names), dir, e);
    json_decref(names);
    free(t);
    return st;
}
