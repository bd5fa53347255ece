/* SPDX-License-Identifier: MIT
 *
 * Published models that are written with other numbers: of each of tests/golden-import, what is read
 * again is what was to be written, and what nothing changed has its bytes. That others read it:
 * scripts/crosscheck/export.py. */
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"
#include "variants/model/import/changes.h"

TestSuite(changes, .init = folder_make, .fini = folder_remove);

/* Numbers that differ from each other and from those of the files, and are exact where 1 is taken away;
 * zeros stay, which may be what a file has no place for. */
static void change(struct param *w)
{
    enum { PARTS = 1 << 20 };
    static uint32_t next;

    if (!w->buffer)
        for (size_t i = 0; i < w->n; i++)
            if (w->data[i] != 0)
                w->data[i] = (float)(next++ * 2654435761u % PARTS + 1) / PARTS;
}

static void write_files(const struct changes *c, const struct published *p)
{
    char path[FILE_PATH];

    for (int i = 0; i < p->shards.n_files; i++) {
        const char *const name = strrchr(p->shards.files[i].path, '/');
        folder_path(path, kept_text("model%s", name));
        MUST(changes_write(c, p, i, path, &failure));
    }
}

static void expect_same(const struct params *now, const struct params *wanted, const char *name)
{
    for (int k = 0; k < now->n; k++) {
        const struct param *const a = &now->v[k], *const b = &wanted->v[k];
        size_t differ = 0;
        const bool logs = strstr(a->name, "A_log"); /* of a GGUF file, by exp and log */
        for (size_t i = 0; i < a->n; i++)
            differ += logs ? fabs((double)a->data[i] - (double)b->data[i]) > 1e-6
                           : memcmp(&a->data[i], &b->data[i], sizeof(float)) != 0;
        cr_expect_eq(differ, 0, "%s %s: %zu of %zu numbers differ", name, a->name, differ, a->n);
    }
}

/* What holds no other numbers: a table of words behind which files have a norm, and blocks of 4 bits. */
static bool stays(const struct published *p, const char *name, const struct param *w)
{
    return (strncmp(p->family, "rwkv7", 5) == 0 && strcmp(w->name, "embed.weight") == 0) ||
           (strstr(name, "mxfp4") && !p->form.computed && strstr(w->name, ".ff.e."));
}

/* The files of a copy, GGUF or safetensors. */
static const char *files_of(const char *name)
{
    published_copy(name);
    const char *const gguf = published_path(PUBLISHED_GGUF);
    return access(gguf, F_OK) == 0 ? gguf : published_path("");
}

/* As published. */
static void open_model(struct published *p, struct lm *m, const char *path)
{
    MUST(published_open(p, path, &failure));
    place_model(m, &p->config);
    MUST(published_load(p, &m->params, &failure));
}

static void round_trip(const char *name)
{
    const char *const path = files_of(name);
    struct lm wanted, now;
    struct published p;
    struct changes c;

    open_model(&p, &wanted, path);
    for (int k = 0; k < wanted.params.n; k++)
        if (!stays(&p, name, &wanted.params.v[k]))
            change(&wanted.params.v[k]);
    MUST(changes_find(&c, &p, &wanted.params, &failure));
    write_files(&c, &p);
    changes_free(&c);
    published_close(&p);
    open_model(&p, &now, path);
    expect_same(&now.params, &wanted.params, name);
    published_close(&p);
}

Test(changes, of_each_model, .timeout = 300)
{
    DIR *const d = opendir(PUBLISHED);
    int n = 0;

    cr_assert_not_null(d);
    for (const struct dirent *f; (f = readdir(d));)
        if (!strchr(f->d_name, '.')) {
            round_trip(f->d_name);
            n++;
        }
    closedir(d);
    cr_expect_gt(n, 60);
}

static size_t bytes_of(const struct tensor *t)
{
    return t->dtype <= DTYPE_I32 ? t->n * ELEMENT_BYTES : t->bytes;
}

/* One parameter changes one tensor: all others keep type and bytes. */
static void change_in(const char *path, const char *name, const char *ours, const char *published)
{
    struct published p, now;
    struct changes c;
    struct lm m, again;
    int changed = 0;

    open_model(&p, &m, path);
    for (int k = 0; k < m.params.n; k++)
        if (strcmp(m.params.v[k].name, ours) == 0)
            change(&m.params.v[k]);
    MUST(changes_find(&c, &p, &m.params, &failure));
    write_files(&c, &p);
    MUST(published_open(&now, path, &failure));
    cr_assert_eq(now.shards.n_tensors, p.shards.n_tensors);
    for (int k = 0; k < p.shards.n_tensors; k++) {
        const struct tensor *const a = p.shards.tensors[k].t, *const b = now.shards.tensors[k].t;
        const bool is_it = strcmp(a->name, published) == 0;
        changed += is_it;
        cr_expect_str_eq(b->dtype_name, is_it ? "F32" : a->dtype_name, "%s %s", name, a->name);
        cr_expect(is_it || memcmp(a->data, b->data, bytes_of(a)) == 0, "%s %s", name, a->name);
    }
    cr_expect_eq(changed, 1, "%s", published);
    cr_expect_eq(c.changed, 1);
    changes_free(&c);
    published_close(&p);
    published_close(&now);
    open_model(&now, &again, path);
    expect_same(&again.params, &m.params, name);
    published_close(&now);
}

static void change_one(const char *name, const char *ours, const char *published)
{
    change_in(files_of(name), name, ours, published);
}

Test(changes, of_one_tensor)
{
    change_one("llama_gqa_bf16", "layers.1.attn.k.weight",
               "model.layers.1.self_attn.k_proj.weight");
    change_one("neox_parallel_f16", "layers.0.attn.k.bias",
               "gpt_neox.layers.0.attention.query_key_value.bias");
    change_one("llama_tied_sharded", "layers.1.ff.2.weight", "model.layers.1.mlp.down_proj.weight");
    change_one("gguf_llama_q4_0", "layers.1.ff.2.weight", "model.layers.1.mlp.down_proj.weight");
    change_one("gguf_phi3_longrope", "final_ln.weight", "model.norm.weight");
}

/* A form that holds no other numbers is refused, by its name. */
static void refuse(const char *name, const char *ours, float by, const char *says)
{
    struct published p;
    struct changes c;
    struct lm m;

    open_model(&p, &m, files_of(name));
    for (int k = 0; k < m.params.n; k++)
        if (strcmp(m.params.v[k].name, ours) == 0)
            for (size_t i = 0; i < m.params.v[k].n; i++)
                m.params.v[k].data[i] += by;
    REFUSED(changes_find(&c, &p, &m.params, &failure), E_UNSUPPORTED, says,
            "cannot hold the trained numbers", "  -> ");
    published_close(&p);
}

/* F32 stands before BF16, at a multiple of 4; a tensor without numbers, at the place of another, keeps none. */
Test(changes, wide_numbers_first)
{
    struct published p;
    struct bytes file;
    size_t data;

    published_copy("llama_gqa_bf16");
    json_t *const header = published_header(&file, "model.safetensors", &data);
    json_t *const all = json_pack("{s:{s:s, s:[i], s:[i,i]}}", "model.layers.0.attn.masked_bias",
                                  "dtype", "F32", "shape", 0, "data_offsets", 0, 0);
    json_object_update(all, header);
    json_decref(header);
    published_put_header("model.safetensors", all, &file, data);
    change_in(published_path(""), "llama_gqa_bf16", "embed.weight", "model.embed_tokens.weight");
    MUST(published_open(&p, published_path(""), &failure));
    const unsigned char *const wide = shards_find(&p.shards, "model.embed_tokens.weight")->t->data;
    cr_expect_eq((wide - p.shards.files[0].map) % 4, 0);
    for (int k = 0; k < p.shards.n_tensors; k++)
        cr_expect(p.shards.tensors[k].t->n == 0 ||
                  (const unsigned char *)p.shards.tensors[k].t->data >= wide);
    published_close(&p);
}

Test(changes, of_what_holds_none)
{
    refuse("rwkv7", "embed.weight", 1, "\"model.embeddings.weight\"");
    refuse("rwkv7", "layers.0.attn.a_a.weight", 1, "its rank is lower than the model's");
    refuse("gpt_oss_mxfp4", "layers.0.ff.e.1.weight", 1, "gate_up_proj_blocks\"");
}
