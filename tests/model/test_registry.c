/* SPDX-License-Identifier: MIT
 *
 * What structs of the lists need is refused where it is missing, by name: each row of the tables, and
 * each pointer without which a small training dies. */
#include "tests/support/command_line.h"
#include "tests/support/each.h"
#include "tests/support/sanitized.h"
#include "variants/registry_check.h"

#include "harness/worker/job.h"
#include "tests/support/failure.h"

#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(registry, .timeout = 240);

enum { MOST = 2048 }; /* bytes of a struct */

Test(registry, lacks_nothing) { cr_expect_eq(registry_check(&failure), OK, "%s", failure.msg); }

/* ---- the tables ------------------------------------------------------------------------------ */

static bool is_set(const char *base, struct place p)
{
    for (size_t i = 0; i < p.size; i++)
        if (base[p.at + i])
            return true;
    return false;
}

/* Does the row ask for its field in this struct? */
static bool asks(const struct needed *n, const char *base)
{
    const void *first = NULL;

    if (n->is)
        memcpy(&first, base + n->with[0].at, sizeof(first));
    for (size_t i = 0; i < ARRAY_LEN(n->with); i++)
        if ((n->with[i].size && !is_set(base, n->with[i])) || is_set(base, n->without[i]))
            return false;
    return first == n->is;
}

/* Copies of a struct, each without one field that it needs. Returns how many there were, and counts
 * rows. `outer`, if given, is a copy of the struct whose pointer `to` leads to it. */
static int without_each(const struct needs *own, const void *at, const struct needs *outer,
                        char *of, const struct inner *to, int *used)
{
    char copy[MOST];
    const char *const copied = copy;
    const void *const list[] = {copy, NULL}, *const pointer =
                                                 to && to->list ? list : (void *)copied;
    int n = 0;

    cr_assert(own->size <= sizeof(copy));
    for (const struct needed *row = own->field; row->field; row++) {
        struct err e = {""};
        memcpy(copy, at, own->size);
        if (!asks(row, copy) || !is_set(copy, row->at))
            continue;
        memset(copy + row->at.at, 0, row->at.size);
        if (!asks(row, copy))
            continue;
        if (to)
            memcpy(of + to->at.at, &pointer, sizeof(pointer));
        const char *const says = kept_text("%s foo has no %s  -> ", own->noun, row->field);
        cr_expect_eq(registry_lacks(outer ? outer : own, "foo", outer ? of : copy, &e),
                     E_UNSUPPORTED, "no refusal: %s", says);
        cr_expect(strncmp(e.msg, says, strlen(says)) == 0, "%s, not: %s", says, e.msg);
        used[row - own->field]++;
        n++;
    }
    return n;
}

enum { ROWS = 64 };

static void expect_all_used(const struct needs *needs, const int *used)
{
    for (int i = 0; needs->field[i].field; i++)
        cr_expect(used[i], "%s: nothing has the field %s, row %d", needs->noun,
                  needs->field[i].field, i);
}

Test(registry, each_field_is_asked_for)
{
    for (const struct registered *r = registered; r->needs; r++) {
        int used[ROWS] = {0};
        for (const struct entry *x = r->entry; x->word; x++)
            without_each(r->needs, x->at, NULL, NULL, NULL, used);
        expect_all_used(r->needs, used);
    }
}

Test(registry, each_field_of_what_they_point_to)
{
    for (const struct registered *r = registered; r->needs; r++)
        for (const struct inner *to = r->needs->inner; to->of; to++) {
            int used[ROWS] = {0};
            bool has = false;
            for (const struct entry *x = r->entry; x->word; x++) {
                char outer[MOST];
                const void *at;
                cr_assert(r->needs->size <= sizeof(outer));
                memcpy(outer, x->at, r->needs->size);
                memcpy(&at, outer + to->at.at, sizeof(at));
                if (at && to->list)
                    memcpy(&at, at, sizeof(at));
                if (at)
                    without_each(to->of, at, r->needs, outer, to, used);
                has = has || at;
            }
            if (has)
                expect_all_used(to->of, used);
        }
}

Test(registry, names_that_two_have)
{
    const struct gate a = {.name = "gru"}, b = {.name = "input"}, c = {.name = "gru"};
    static const struct needs needs = {.noun = "gate"};
    const struct entry list[] = {{"a", &a}, {"b", &b}, {"c", &c}, {0}};
    const struct registered all = {&needs, list}, two = {&needs, list + 1};

    cr_expect_eq(registry_names(&all, &failure), E_UNSUPPORTED);
    cr_expect_str_eq(failure.msg, "gate c has the name \"gru\", as a has  -> another .name");
    cr_expect_eq(registry_names(&two, &failure), OK);
}

/* A mixer without its word would be found by no list, and no case would run it. */
Test(registry, parts_of_a_variant_are_in_lists)
{
    static const struct mixer mixer = {.name = "own"};
    static const struct pos pos = {.name = "own"};
    static const struct gate gate = {.name = "own"};
    static const struct ffn ffn = {.name = "own"};
    static const struct qkv_map map = {.name = "own"};
    static const struct mem mem = {.name = "own"};
    const struct variant *const plain = variant_find("gla");
    struct variant v[8];
    static const char *const words[] = {"MIXERS",   "POSITIONS", "GATES", "FFNS",
                                        "QKV_MAPS", "MEMS",      "EXTRAS"};

    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = *plain;
    v[0].mixer = &mixer;
    v[1].pos = &pos;
    v[2].gate = &gate;
    v[3].ffn = &ffn;
    v[4].qkv_map = &map;
    v[5].mem = &mem;
    v[6].attn_extra = &pos;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        REFUSED(registry_parts(&v[i], &failure), E_UNSUPPORTED, "variant gla: its .", words[i]);
    cr_expect_eq(registry_parts(&v[7], &failure), OK, "%s", failure.msg);
}

Test(registry, what_a_backend_inherits)
{
    struct backend b = backend_ref;

    cr_expect_eq(registry_backend(&b, "foo", &failure), OK);
    b.inherits = "simd";
    cr_expect_eq(registry_backend(&b, "foo", &failure), OK);
    b.inherits = "smid";
    REFUSED(registry_backend(&b, "foo", &failure), E_UNSUPPORTED, "backend foo inherits");
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct recurrence good(struct steps *t)
{
    struct recurrence r = mix_recurrence(t, mix_qkv(t, false));

    r.g = step_linear(t, STEPS_INPUT, t->c->H, "g");
    return r;
}

/* What is changed of a good recurrence, and what the refusal names. */
#define MISTAKES(X)                                                                                \
    X(heads, r.heads = 0, "heads")                                                                 \
    X(scale, r.scale = 0, "scale")                                                                 \
    X(no_v, r.v = NO_VALUE, ".v ")                                                                 \
    X(forgotten_v, r.v = 0, ".v ")                                                                 \
    X(narrow_v, r.v = steps_columns(t, r.v, 0, 3), ".v ")                                          \
    X(no_q, r.q = NO_VALUE, ".q ")                                                                 \
    X(forgotten_q, r.q = 0, ".q ")                                                                 \
    X(narrow_q, r.q = steps_columns(t, r.q, 0, 3), ".q ")                                          \
    X(no_k, r.k = NO_VALUE, ".k ")                                                                 \
    X(forgotten_k, r.k = 0, ".k ")                                                                 \
    X(narrow_k, r.k = steps_columns(t, r.k, 0, 3), ".k ")                                          \
    X(forgotten_g, r.g = 0, ".g ")                                                                 \
    X(narrow_g, r.g = steps_columns(t, r.g, 0, 3), ".g ")                                          \
    X(forgotten_beta, r.beta = 0, ".beta ")                                                        \
    X(forgotten_a, r.a = 0, ".a ")                                                                 \
    X(lonely_a, r.a = r.k, "one of .a and .b")                                                     \
    X(forgotten_i, r.i = 0, ".i ")                                                                 \
    X(wide_g, (r.g = r.k, r.i = steps_columns(t, r.k, 0, t->c->H)), ".i ")
#define X(name, change, says)                                                                      \
    static void build_##name(struct steps *t)                                                      \
    {                                                                                              \
        struct recurrence r = good(t);                                                             \
        change;                                                                                    \
        mix_output(t, step_recur(t, r));                                                           \
    }
MISTAKES(X)
#undef X

/* Steps of widths that do not go together: the result of a short list, and what the refusal names. */
#define STEPS(X)                                                                                   \
    X(columns, steps_columns(t, a, 0, 99), "columns")                                              \
    X(unit, step_unit(t, a, 5, 1e-6f, false), "step_unit")                                         \
    X(norm, step_norm(t, a, (struct head_norm){.width = 5}), "step_norm")                          \
    X(norm_of_part, step_norm(t, b, (struct head_norm){.width = 2}), "step_norm")                  \
    X(features, step_features(t, c, true), "step_features")                                        \
    X(plus, step_plus(t, b, a), "step_plus")                                                       \
    X(times, step_times(t, b, a), "step_times")                                                    \
    X(blend, step_blend(t, a, b, a, b), "step_blend")                                              \
    X(skip, step_skip(t, a, a, 5, "w"), "step_skip")                                               \
    X(rate, step_rate(t, a, 5, false, "w"), "step_rate")                                           \
    X(rotate, step_rotate(t, a, 5, 10000, false), "step_rotate")                                   \
    X(blocks, step_blocks(t, a, 5, 2, "w"), "step_blocks")                                         \
    X(apply, step_apply(t, a, CURVE_TANH, 0), "factor")
#define X(name, step, says)                                                                        \
    static void build_##name(struct steps *t)                                                      \
    {                                                                                              \
        const int a = step_linear(t, STEPS_INPUT, 12, "a"), b = steps_columns(t, a, 0, 4);         \
        const int c = steps_columns(t, a, 0, 4);                                                   \
        (void)b, (void)c;                                                                          \
        t->result = step_copy(t, step);                                                            \
    }
STEPS(X)
#undef X

static void build_good(struct steps *t) { mix_output(t, step_recur(t, good(t))); }
static void build_nothing(struct steps *t) { (void)t; }
static void build_no_result(struct steps *t) { step_recur(t, good(t)); }
static void build_input(struct steps *t) { t->result = STEPS_INPUT; }
static void build_part(struct steps *t) { t->result = mix_qkv(t, false).v; }

Test(registry, what_a_list_of_steps_lacks)
{
    static const struct {
        steps_build *build;
        const char *says;
    } list[] = {
#define X(name, change, says) {build_##name, says},
        MISTAKES(X) STEPS(X)
#undef X
            {build_nothing, "no result"},
        {build_no_result, "no result"},
        {build_input, "no result"},
        {build_part, "part of another"},
    };
    struct config c = config_default(variant_find("gla"), 12, 4, 3, 17, 1, 0);

    cr_expect_null(steps_lack(build_good, &c), "%s", steps_lack(build_good, &c));
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        const char *const lacks = steps_lack(list[i].build, &c);
        cr_expect(lacks && strstr(lacks, list[i].says) && strstr(lacks, "  -> "), "%s: %s",
                  list[i].says, lacks ? lacks : "nothing");
    }
    c.mixer = mixer_find("mingru"); /* whose numbers are others */
    const char *const lacks = steps_lack(build_good, &c);
    cr_expect(lacks && strstr(lacks, ".numbers"), "%s", lacks ? lacks : "nothing");
}

/* A build that lacks something is refused with the mixer's name. */
Test(registry, steps_of_a_variant)
{
    struct mixer mixer = *mixer_find("gla");
    struct variant v = *variant_find("gla");

    v.mixer = &mixer;
    cr_expect_eq(registry_steps(&v, &failure), OK);
    mixer.build = build_narrow_g;
    REFUSED(registry_steps(&v, &failure), E_UNSUPPORTED, "steps of mixer gla: ");
}

/* ---- what a small training needs ------------------------------------------------------------- */

/* Train, and decode one token, with a config. */
static void use(const struct config *c)
{
    EACH_TEXT (
        line,
        "-b ref -w train -V vanilla --d-model 16 --heads 2 --seq 6 --mem 0 --layers 2 --threads 1",
        "-b ref -w decode -V vanilla --d-model 16 --heads 2 --mem 5 --layers 2 --threads 1") {
        struct job j;
        struct plan p = planned("%s", line);
        struct config *const own = &p.cases[0].config;
        *own = *c;
        if (job_open(&j, &p.cases[0], NULL) == OK && job_place(&j, NULL, NULL, NULL) == OK)
            job_run(&j);
        job_close(&j);
    }
}

/* Does that end by a signal? */
static bool dies(const struct config *c)
{
    const pid_t pid = fork();
    int status = 0;

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL);
        use(c);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status);
}

/* The structs that a config has pointers to. */
static const struct {
    size_t at;
    const char *noun;
} pointed[] = {
    {offsetof(struct config, mixer), "mixer"},
    {offsetof(struct config, ffn), "ffn"},
    {offsetof(struct config, pos), "pos"},
    {offsetof(struct config, gate), "gate"},
};

static const struct registered *list_of(const char *noun)
{
    const struct registered *r = registered;

    while (strcmp(r->needs->noun, noun) != 0)
        r++;
    return r;
}

/* A model that has it as it is usually had; false if none has. */
static bool model_of(struct config *c, size_t at, const void *part)
{
    for (int v = 0; variants[v]; v++) {
        const void *has;
        *c = config_default(variants[v], 16, 2, 8, 24, 2, 11);
        memcpy(&has, (const char *)c + at, sizeof(has));
        if (has == part && config_check(c, NULL) == OK)
            return true;
    }
    return false;
}

/* Each pointer of a copy in turn is NULL. Numbers of its own are the part's affair. */
static void one_part(size_t at, const struct needs *needs, const struct entry *x, int *tried)
{
    char copy[MOST];
    struct config c;
    const void *const pointer = copy;

    if (!model_of(&c, at, x->at))
        return;
    memcpy(copy, x->at, needs->size);
    memcpy((char *)&c + at, &pointer, sizeof(pointer));
    if (dies(&c)) /* it is known by its address */
        return;
    for (size_t i = 0; i + sizeof(void *) <= needs->size; i += sizeof(void *)) {
        uintptr_t was;
        memcpy(&was, copy + i, sizeof(was));
        if (was >> 24 == 0 || i == needs->inner[0].at.at)
            continue;
        memset(copy + i, 0, sizeof(was));
        if (registry_lacks(needs, x->word, copy, NULL) == OK)
            cr_expect(!dies(&c), "%s %s: the pointer at %zu", needs->noun, x->word, i);
        memcpy(copy + i, &was, sizeof(was));
        ++*tried;
    }
}

TEST_EACH(int *which, registry, no_pointer_is_missed, every_number(ARRAY_LEN(pointed)))
{
    const struct registered *const r = list_of(pointed[*which].noun);
    int tried = 0;

    SKIP_SANITIZED("a sanitizer turns signals into exits");
    for (const struct entry *x = r->entry; x->word; x++)
        one_part(pointed[*which].at, r->needs, x, &tried);
    cr_expect_gt(tried, 3, "%d", tried);
}
