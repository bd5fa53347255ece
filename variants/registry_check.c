/* SPDX-License-Identifier: MIT
 *
 * The fields that the structs of the lists need, as tables, and what no table can say. */
#include "registry_check.h"
#include "list.h"
#include "variants/backends/list.h"
#include "variants/backends/recur.h"
#include "variants/model/attention/around.h"
#include "variants/model/content/content.h"

/* NOLINTBEGIN(bugprone-sizeof-expression): of fields that are pointers, sizes of pointers */
#define AT(type, field)                                                                            \
    {                                                                                              \
        offsetof(type, field), sizeof(((const type *)0)->field)                                    \
    }
#define HAS(type, field_) .field = #field_, .at = AT(type, field_)

#define NEEDS(name, noun_, type, header_, ...)                                                     \
    static const struct needs of_##name = {.noun = noun_,                                          \
                                           .header = header_,                                      \
                                           .size = sizeof(type),                                   \
                                           .field = name##_fields,                                 \
                                           .inner = {__VA_ARGS__}}

/* ---- fields ------------------------------------------------------------------------------- */

static const struct needed numbers_fields[] = {
    {HAS(struct part_numbers, choices), .give = "choices"},
    {HAS(struct part_numbers, size), .give = "NUMBERS_SIZE(struct foo)"},
    {0},
};
NEEDS(numbers, "numbers of", struct part_numbers, "variants/parts/part.h", {0});
#define INNER(type, field, of_)                                                                    \
    {                                                                                              \
        HAS(type, field), .of = &(of_)                                                             \
    }
#define NUMBERS(type) INNER(type, numbers, of_numbers)

static const struct needed variant_fields[] = {
    {HAS(struct variant, name), .give = "\"foo\""},
    {HAS(struct variant, paper), .give = "\"Author Year, arXiv:...\""},
    {HAS(struct variant, about), .give = "\"one line\""},
    {HAS(struct variant, pos), .give = "&pos_none"},
    {0},
};
NEEDS(variant, "variant", struct variant, "variants/variant.h", {0});

static const struct needed kind_fields[] = {
    {HAS(struct sublayer_kind, name), .give = "\"foo\""},
    {HAS(struct sublayer_kind, params)},
    {HAS(struct sublayer_kind, arrays)},
    {HAS(struct sublayer_kind, forward)},
    {HAS(struct sublayer_kind, backward)},
    {HAS(struct sublayer_kind, cost)},
    {HAS(struct sublayer_kind, remember), .with = {AT(struct sublayer_kind, caches)}},
    {HAS(struct sublayer_kind, bind), .with = {AT(struct sublayer_kind, attends)}},
    {0},
};
NEEDS(kind, "kind of mixer", struct sublayer_kind, "variants/model/sublayer/sublayer.h", {0});

static const struct needed content_fields[] = {
    {HAS(struct content, past), .give = "true", .without = {AT(struct content, both)}},
    {HAS(struct content, core)},
    {HAS(struct content, run), .without = {AT(struct content, head)}},
    {HAS(struct content, flop)},
    {HAS(struct content, number), .with = {AT(struct content, numbers)}},
    {HAS(struct content, numbers), .with = {AT(struct content, number)}},
    {0},
};
NEEDS(content, "content of mixer", struct content, "variants/model/content/content.h", {0});

/* A list of steps of this kind. */
#define BUILT(list)                                                                                \
    {                                                                                              \
        HAS(struct mixer, build), .give = "build", .with = {AT(struct mixer, kind)}, .is = &(list) \
    }

static const struct needed mixer_fields[] = {
    {HAS(struct mixer, name), .give = "\"foo\""},
    {HAS(struct mixer, kind), .give = "&sublayer_steps"},
    BUILT(sublayer_steps),
    BUILT(sublayer_sums),
    BUILT(sublayer_attending),
    BUILT(sublayer_remembering),
    BUILT(sublayer_condensed),
    {HAS(struct mixer, content), .give = "&content_foo", .with = {AT(struct mixer, kind)},
     .is = &sublayer_content},
    {0},
};
NEEDS(mixer, "mixer", struct mixer, "variants/parts/part.h",
      INNER(struct mixer, numbers, of_numbers), INNER(struct mixer, kind, of_kind),
      INNER(struct mixer, content, of_content));

static const struct needed pos_fields[] = {
    {HAS(struct pos, name), .give = "\"foo\""},
    {HAS(struct pos, n_pos_encoding), .with = {AT(struct pos, pos_encoding)}},
    {HAS(struct pos, n_pos_encoding), .with = {AT(struct pos, encode)}},
    {HAS(struct pos, pos_encoding), .with = {AT(struct pos, n_pos_encoding)},
     .without = {AT(struct pos, encode)}},
    {HAS(struct pos, embed_grad), .with = {AT(struct pos, embed), AT(struct pos, model_params)}},
    {HAS(struct pos, from_tokens), .with = {AT(struct pos, word_params)}},
    {HAS(struct pos, word_params), .with = {AT(struct pos, from_tokens)}},
    {HAS(struct pos, from_tokens_grad), .with = {AT(struct pos, from_tokens)}},
    {HAS(struct pos, enter_grad), .with = {AT(struct pos, enter), AT(struct pos, layer_params)}},
    {HAS(struct pos, reserve), .with = {AT(struct pos, build_tables)}},
    {HAS(struct pos, terms_grad), .with = {AT(struct pos, reserve), AT(struct pos, layer_params)}},
    {HAS(struct pos, terms_grad), .with = {AT(struct pos, n_tables_grad)}},
    {HAS(struct pos, terms_grad), .with = {AT(struct pos, build_tables_grad)}},
    {HAS(struct pos, n_tables_grad), .with = {AT(struct pos, build_tables_grad)}},
    {0},
};
NEEDS(pos, "pos", struct pos, "variants/parts/part.h", NUMBERS(struct pos));

static const struct needed extra_fields[] = {
    {HAS(struct pos, name), .give = "\"foo\""},
    {HAS(struct pos, layer_params), .with = {AT(struct pos, terms_grad)}},
    {HAS(struct pos, reserve), .without = {AT(struct pos, weigh)}},
    {HAS(struct pos, terms_grad), .with = {AT(struct pos, layer_params)}},
    {0},
};
NEEDS(extra, "extra", struct pos, "variants/parts/part.h", NUMBERS(struct pos));

static const struct needed gate_fields[] = {
    {HAS(struct gate, name), .give = "\"foo\""},
    {HAS(struct gate, params)},
    {HAS(struct gate, forward)},
    {HAS(struct gate, backward)},
    {0},
};
NEEDS(gate, "gate", struct gate, "variants/parts/part.h", NUMBERS(struct gate));

#define UNBUILT .without = {AT(struct ffn, build)}
static const struct needed ffn_fields[] = {
    {HAS(struct ffn, name), .give = "\"foo\""}, {HAS(struct ffn, params), UNBUILT},
    {HAS(struct ffn, flop), UNBUILT},           {HAS(struct ffn, work), UNBUILT},
    {HAS(struct ffn, work_grad), UNBUILT},      {HAS(struct ffn, forward), UNBUILT},
    {HAS(struct ffn, backward), UNBUILT},       {0},
};
#undef UNBUILT
NEEDS(ffn, "ffn", struct ffn, "variants/parts/part.h", NUMBERS(struct ffn));

static const struct needed map_fields[] = {
    {HAS(struct qkv_map, name), .give = "\"foo\""},
    {HAS(struct qkv_map, width)},
    {HAS(struct qkv_map, params)},
    {HAS(struct qkv_map, flop)},
    {HAS(struct qkv_map, work)},
    {HAS(struct qkv_map, work_grad)},
    {HAS(struct qkv_map, forward)},
    {HAS(struct qkv_map, backward)},
    {0},
};
NEEDS(map, "qkv_map", struct qkv_map, "variants/parts/part.h", NUMBERS(struct qkv_map));

static const struct needed mem_fields[] = {{HAS(struct mem, name), .give = "\"foo\""}, {0}};
NEEDS(mem, "mem", struct mem, "variants/parts/part.h", NUMBERS(struct mem));

static const struct needed core_fields[] = {
    {HAS(struct score_core, scores)},
    {HAS(struct score_core, run)},
    {HAS(struct score_core, scores_grad)},
    {HAS(struct score_core, run_grad)},
    {0},
};
NEEDS(core, "term.core of", struct score_core, "variants/model/attention/around.h", {0});

#define MAP(hook) AT(struct around_part, map.hook)
static const struct needed around_fields[] = {
    {HAS(struct around_part, numbers), .give = "&numbers", .without = {AT(struct around_part, on)}},
    {HAS(struct around_part, term.added), .give = "ADDS_TO_PAIRS",
     .with = {AT(struct around_part, term.add)}},
    {HAS(struct around_part, term.add), .with = {AT(struct around_part, term.added)},
     .without = {AT(struct around_part, term.core), AT(struct around_part, term.source)}},
    {HAS(struct around_part, term.add_grad), .with = {AT(struct around_part, term.added)},
     .without = {AT(struct around_part, term.core)}},
    {HAS(struct around_part, term.input_grad),
     .with = {AT(struct around_part, term.source), AT(struct around_part, params)}},
    {HAS(struct around_part, map.operands_grad), .with = {MAP(queries)}},
    {HAS(struct around_part, map.operands_grad), .with = {MAP(keys)}},
    {HAS(struct around_part, map.operands_grad), .with = {MAP(values)}},
    {HAS(struct around_part, map.softmax_grad), .with = {MAP(softmax)}},
    {HAS(struct around_part, map.softmax), .with = {MAP(softmax_grad)}},
    {HAS(struct around_part, map.join), .with = {MAP(softmax)}},
    {HAS(struct around_part, map.join_grad), .with = {MAP(join)}},
    {HAS(struct around_part, map.output_grad), .with = {MAP(output)}},
    {HAS(struct around_part, map.unproject_grad), .with = {MAP(unproject)}},
    {HAS(struct around_part, map.unproject), .with = {MAP(unproject_grad)}},
    {0},
};
#undef MAP
NEEDS(around, "part of attention", struct around_part, "variants/model/attention/around.h",
      INNER(struct around_part, numbers, of_numbers),
      INNER(struct around_part, term.core, of_core));

static const struct needed attn_fields[] = {
    {HAS(struct attn_impl, name), .give = "\"foo\""},
    {HAS(struct attn_impl, accepts)},
    {HAS(struct attn_impl, need)},
    {HAS(struct attn_impl, forward)},
    {HAS(struct attn_impl, need_backward), .with = {AT(struct attn_impl, backward)}},
    {0},
};
NEEDS(attn, "attention of backend", struct attn_impl, "variants/backends/backend.h", {0});

static const struct needed recur_fields[] = {
    {HAS(struct recur_impl, name), .give = "\"foo\""},
    {HAS(struct recur_impl, accepts)},
    {HAS(struct recur_impl, need)},
    {HAS(struct recur_impl, forward)},
    {0},
};
NEEDS(recur, "recurrence of backend", struct recur_impl, "variants/backends/recur.h", {0});

#define ALONE .without = {AT(struct backend, inherits)}
static const struct needed backend_fields[] = {
    {HAS(struct backend, name), .give = "\"foo\""},
    {HAS(struct backend, about), .give = "\"one line\""},
    {HAS(struct backend, ops.gemm), .with = {AT(struct backend, pack)}},
    {HAS(struct backend, ops.gemm), .with = {AT(struct backend, gemm_room)}},
    {HAS(struct backend, ops.gemm), .with = {AT(struct backend, gemm_act)}},
    {HAS(struct backend, ops.gemm), .with = {AT(struct backend, gemm_gate)}},
    {HAS(struct backend, ops.gemm), .with = {AT(struct backend, lacks)}},
    {HAS(struct backend, pack), .with = {AT(struct backend, packed_floats)}},
    {HAS(struct backend, packed_floats), .with = {AT(struct backend, pack)}},
#define X(op, type) {HAS(struct backend, ops.op), .give = "..., or .inherits = \"simd\"", ALONE},
    OPS(X)
#undef X
        {HAS(struct backend, attn), .give = "..., or .inherits = \"simd\"", ALONE},
    {HAS(struct backend, recur), .give = "..., or .inherits = \"simd\"", ALONE},
    {0},
};
#undef ALONE
NEEDS(backend, "backend", struct backend, "variants/backends/backend.h",
      {HAS(struct backend, attn), .of = &of_attn, .list = true},
      {HAS(struct backend, recur), .of = &of_recur, .list = true},
      {HAS(struct backend, recur_rows), .of = &of_recur, .list = true});

/* NOLINTEND(bugprone-sizeof-expression) */

/* ---- lists -------------------------------------------------------------------------------- */

#define DECLARED(name, family) extern const struct variant variant_##name;
VARIANTS(DECLARED)
#define VARIANT(name, family) {#name, &variant_##name},
#define MIXER(name) {#name, &mixer_##name},
#define POSITION(name) {#name, &pos_##name},
#define EXTRA(name) {#name, &extra_##name},
#define GATE(name) {#name, &gate_##name},
#define FFN(name) {#name, &ffn_##name},
#define QKV_MAP(name) {#name, &qkv_map_##name},
#define MEM(name) {#name, &mem_##name},
#define AROUND(name) {#name, &name},
static const struct entry variant_list[] = {VARIANTS(VARIANT){0}};
static const struct entry mixer_list[] = {MIXERS(MIXER){0}};
static const struct entry pos_list[] = {POSITIONS(POSITION){0}};
static const struct entry extra_list[] = {EXTRAS(EXTRA){0}};
static const struct entry gate_list[] = {GATES(GATE){0}};
static const struct entry ffn_list[] = {FFNS(FFN){0}};
static const struct entry map_list[] = {QKV_MAPS(QKV_MAP){0}};
static const struct entry mem_list[] = {MEMS(MEM){0}};
static const struct entry around_list[] = {AROUND_PARTS(AROUND){0}};
#define BUILT_0(name)
#define BUILT_1(name) {#name, &backend_##name},
#define IF_BUILT(name, built) BUILT_##built(name)
#define X(name, built, package) extern const struct backend backend_##name;
BACKENDS(X)
#undef X
#define X(name, built, package) IF_BUILT(name, built)
#define LEVEL(ID, name, flags) {#name, &backend_##name},
static const struct entry backend_list[] = {{"ref", &backend_ref}, ISA_LIST(LEVEL) BACKENDS(X){0}};
#undef LEVEL
#undef X

const struct registered registered[] = {
    {&of_backend, backend_list},
    {&of_variant, variant_list},
    {&of_mixer, mixer_list},
    {&of_pos, pos_list},
    {&of_extra, extra_list},
    {&of_gate, gate_list},
    {&of_ffn, ffn_list},
    {&of_map, map_list},
    {&of_mem, mem_list},
    {&of_around, around_list},
    {NULL, NULL},
};

/* ---- checks ------------------------------------------------------------------------------- */

static bool is_set(const void *base, struct place p)
{
    const unsigned char *const at = (const unsigned char *)base + p.at;

    for (size_t i = 0; i < p.size; i++)
        if (at[i])
            return true;
    return false;
}

static const void *pointer_at(const void *base, struct place p)
{
    const void *at;

    memcpy(&at, (const char *)base + p.at, sizeof(at));
    return at;
}

static bool applies(const struct needed *n, const void *base)
{
    for (size_t i = 0; i < ARRAY_LEN(n->with); i++)
        if ((n->with[i].size && !is_set(base, n->with[i])) || is_set(base, n->without[i]))
            return false;
    return !n->is || pointer_at(base, n->with[0]) == n->is;
}

static enum status fields(const struct needs *needs, const char *word, const void *base,
                          struct err *e)
{
    for (const struct needed *n = needs->field; n->field; n++) {
        if (is_set(base, n->at) || !applies(n, base))
            continue;
        if (!n->give)
            return fail(e, E_UNSUPPORTED, "%s %s has no %s  -> %s says what it does", needs->noun,
                        word, n->field, needs->header);
        return fail(e, E_UNSUPPORTED, "%s %s has no %s  -> .%s = %s", needs->noun, word, n->field,
                    n->field, n->give);
    }
    return OK;
}

enum status registry_lacks(const struct needs *needs, const char *word, const void *at,
                           struct err *e)
{
    TRY(fields(needs, word, at, e));
    for (const struct inner *n = needs->inner; n->of; n++) {
        const void *const first = pointer_at(at, n->at);
        if (first && !n->list)
            TRY(fields(n->of, word, first, e));
        for (const void *const *one = n->list ? first : NULL; one && *one; one++)
            TRY(fields(n->of, word, *one, e));
    }
    return OK;
}

static const char *name_of(const struct entry *x) { return pointer_at(x->at, (struct place){0}); }

/* A copied file whose name stayed is found under the other's. */
enum status registry_names(const struct registered *r, struct err *e)
{
    for (const struct entry *x = r->entry; r->needs != &of_around && x->word; x++)
        for (const struct entry *y = r->entry; y < x; y++)
            if (strcmp(name_of(x), name_of(y)) == 0)
                return fail(e, E_UNSUPPORTED,
                            "%s %s has the name \"%s\", as %s has  -> another .name",
                            r->needs->noun, x->word, name_of(x), y->word);
    return OK;
}

enum status registry_backend(const struct backend *b, const char *word, struct err *e)
{
    const struct backend *up = b;
    int n = 0;

    while (up->inherits && n++ < (int)ARRAY_LEN(backend_list))
        if (!(up = backend_parent(up)))
            return fail(e, E_UNSUPPORTED,
                        "backend %s inherits from a backend that this build has not  -> .inherits "
                        "= \"simd\"",
                        word);
    return up->inherits ? fail(e, E_UNSUPPORTED,
                               "backend %s inherits from itself  -> .inherits = \"simd\"", word)
                        : OK;
}

static bool lists(const struct entry *list, const void *at)
{
    while (list->word && list->at != at)
        list++;
    return !at || list->word;
}

/* What stands in no list is checked by nothing, and found by no name. */
enum status registry_parts(const struct variant *v, struct err *e)
{
#define OF(field, list, words)                                                                     \
    {                                                                                              \
        AT(struct variant, field), list, #field, words                                             \
    }
    static const struct {
        struct place at;
        const struct entry *list;
        const char *field, *words;
    } of[] = {OF(mixer, mixer_list, "MIXERS"),   OF(pos, pos_list, "POSITIONS"),
              OF(gate, gate_list, "GATES"),      OF(ffn, ffn_list, "FFNS"),
              OF(qkv_map, map_list, "QKV_MAPS"), OF(attn_extra, extra_list, "EXTRAS"),
              OF(mem, mem_list, "MEMS")};
#undef OF

    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        if (!lists(of[i].list, pointer_at(v, of[i].at)))
            return fail(
                e, E_UNSUPPORTED,
                "variant %s: its .%s is in no list  -> a word of %s in variants/parts/parts.h",
                v->name, of[i].field, of[i].words);
    for (int i = 0; i < MOST_AROUND; i++)
        if (!lists(around_list, v->around[i]))
            return fail(e, E_UNSUPPORTED,
                        "variant %s: a part of its .around is in no list  -> a word of "
                        "AROUND_PARTS in variants/parts/around_parts.h",
                        v->name);
    return OK;
}

enum status registry_steps(const struct variant *v, struct err *e)
{
    enum { D = 64, H = 4, DH = 16, F = 256, N = 2, V = 256 };
    const struct config c = config_default(v, D, H, DH, F, N, V);
    const bool mixes = c.mixer && c.mixer->build, feeds = c.ffn->build;
    const char *const lacks = mixes ? steps_lack(c.mixer->build, &c) : NULL;
    const char *const ffn_lacks = feeds && !lacks ? steps_lack(c.ffn->build, &c) : NULL;

    if (lacks)
        return fail(e, E_UNSUPPORTED, "steps of mixer %s: %s", c.mixer->name, lacks);
    return ffn_lacks ? fail(e, E_UNSUPPORTED, "steps of ffn %s: %s", c.ffn->name, ffn_lacks) : OK;
}

enum status registry_check(struct err *e)
{
    for (const struct registered *r = registered; r->needs; r++) {
        for (const struct entry *x = r->entry; x->word; x++)
            if (x->at != &ffn_none) /* no layer runs it */
                TRY(registry_lacks(r->needs, x->word, x->at, e));
        TRY(registry_names(r, e));
    }
    for (const struct entry *x = backend_list; x->word; x++)
        TRY(registry_backend(x->at, x->word, e));
    for (const struct entry *x = variant_list; x->word; x++) {
        TRY(registry_parts(x->at, e));
        TRY(registry_steps(x->at, e));
    }
    return OK;
}
