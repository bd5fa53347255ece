/* SPDX-License-Identifier: MIT
 *
 * The list of backends, inheritance, and selection of an attention implementation. */
#include "backend.h"
#include "list.h"
#include "outside.h"
#include "variants/base/arena.h"

/* The library is linked without those of list.h: there NULL ends the list. */
#define X(name, built, package)                                                                    \
    extern const struct backend backend_##name __attribute__((weak, visibility("hidden")));
BACKENDS(X)
#undef X
/* Nor does it load kernels. */
const struct backend *outside_find(const char *name) __attribute__((weak, visibility("hidden")));
enum status outside_open(const struct backend *b, int threads, struct err *e)
    __attribute__((weak, visibility("hidden")));

#define BUILT_0(name)
#define BUILT_1(name) &backend_##name,
#define IF_BUILT(name, built) BUILT_##built(name)
#define LEVEL(ID, name, flags) &backend_##name,
#define X(name, built, package) IF_BUILT(name, built)
const struct backend *const backends[] = {&backend_ref, ISA_LIST(LEVEL) BACKENDS(X) NULL};
#undef X
#undef LEVEL

const struct backend *backend_find(const char *name)
{
    for (int i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return outside_find ? outside_find(name) : NULL;
}

const struct backend *backend_acting(const struct backend *b, enum elem elem)
{
    return b->adds == ELEM_F32 || b->adds == elem ? b : backend_parent(b);
}

enum status backend_usable(const struct backend *b, struct err *e)
{
    char cpu[64];

    if (b->incomplete)
        return fail(e, E_UNSUPPORTED, "backend %s: %s  -> choose another, or auto", b->name,
                    b->incomplete);
    if (b->needs > cpu_isa_unmasked()) {
        cpu_name(cpu, sizeof(cpu));
        return fail(e, E_UNSUPPORTED,
                    "backend %s needs %s; this CPU (%s) lacks some of it  -> use --backend auto",
                    b->name, isa_needs[b->needs], cpu);
    }
    if (b->needs > cpu_isa())
        return fail(e, E_UNSUPPORTED, "backend %s is above --max-isa %s  -> raise it, or auto",
                    b->name, isa_name[cpu_isa()]);
    return OK;
}

/* ---- inheritance -------------------------------------------------------------------------- */

const struct backend *backend_parent(const struct backend *b)
{
#define X(ID, name, flags) &backend_##name,
    static const struct backend *const simd[ISA_COUNT] = {&backend_ref, ISA_LIST(X)};
#undef X

    if (!b->inherits)
        return NULL;
    return strcmp(b->inherits, "simd") == 0 ? simd[cpu_isa()] : backend_find(b->inherits);
}

const char *lacks_nothing(enum elem elem) { return NULL; }

static const char *lacks_narrow(enum elem elem)
{
    return elem == ELEM_F32 ? NULL : "its products have weights in f32 only";
}

static void inherit(struct engine *g)
{
    for (const struct backend *b = g->backend; b; b = backend_parent(b)) {
        if (!g->ops.gemm && b->ops.gemm) {
            for (enum elem t = 0; t < ELEM_COUNT; t++)
                g->lacks[t] = (b->lacks ? b->lacks : lacks_narrow)(t);
            g->can_round = b->rounds;
            g->packed_floats = b->packed_floats;
            g->pack = b->pack;
            g->room_each = b->gemm_room ? b->gemm_room() : 0;
            g->int8_by = b->int8_by;
            /* The act or gate of a nearer backend takes precedence. */
            g->gemm_act = g->ops.act ? NULL : b->gemm_act;
            g->gemm_gate = g->ops.gate ? NULL : b->gemm_gate;
        }
#define X(op, type)                                                                                \
    if (!g->ops.op && b->ops.op) {                                                                 \
        g->ops.op = b->ops.op;                                                                     \
        g->provider[OP_##op] = b->name;                                                            \
    }
        OPS(X)
#undef X
        if (!g->attn)
            g->attn = b->attn;
        if (!g->recur)
            g->recur = b->recur;
        if (!g->recur_rows)
            g->recur_rows = b->recur_rows;
    }
}

enum status engine_open(struct engine *g, const char *name, int threads, const char *impl,
                        struct err *e)
{
    const struct backend *b = backend_find(name);

    if (!b)
        return fail(e, E_UNSUPPORTED, "backend %s was not built in  -> see: bench list backends",
                    name);
    TRY(backend_usable(b, e));
    if (backend_is_outside(name))
        TRY(outside_open(b, threads, e));
    if (b->open)
        TRY(b->open(threads, e));
    *g = (struct engine){.backend = b, .impl = impl, .threads = threads};
    g->isa = engine_isa(g, ELEM_F32);
    inherit(g);
    for (int op = 0; op < OP_COUNT; op++)
        CHECK(g->provider[op]);
    CHECK(g->attn && g->recur);
    return OK;
}

void engine_bind(struct engine *g, struct arena *a)
{
    if (g->room_each)
        g->room = arena_take(a, PART_SCRATCH, (size_t)g->threads * g->room_each);
}

enum status engine_place(struct engine *g, struct arena *a, struct err *e)
{
    engine_bind(g, a);
    TRY(arena_place(a, HUGE_NEVER, NULL, NULL, e));
    engine_bind(g, a);
    return OK;
}

char *engine_room_here(const struct engine *g)
{
    /* An engine of one thread may be called from a team that is not its own. */
    const size_t at = g->threads > 1 ? (size_t)omp_get_thread_num() : 0;

    return g->room_each ? g->room + at * g->room_each : NULL;
}

enum isa engine_isa(const struct engine *g, enum elem elem)
{
    return g->backend->core_isa ? g->backend->core_isa(elem) : g->backend->needs;
}

enum status engine_train_in(struct engine *g, enum elem elem, struct err *e)
{
    if (elem_in_blocks(elem))
        return fail(e, E_UNSUPPORTED, "weights are not trained in %s  -> use f32 or bf16",
                    elem_name[elem]);
    if (elem == ELEM_BF16 && !g->can_round)
        return fail(e, E_UNSUPPORTED,
                    "unsupported in bf16: products of %s do not round both operands  -> use "
                    "another backend",
                    g->provider[OP_gemm]);
    g->rounds = elem == ELEM_BF16;
    return OK;
}

void engine_gemm_act(const struct engine *g, const struct gemm *p, const struct act *epilogue)
{
    CHECK(epilogue->x == p->c && p->ldc == p->n && epilogue->n == p->n && epilogue->rows == p->m);
    const bool idle = epilogue->kind == ACT_NONE && !epilogue->bias && !epilogue->add &&
                      !epilogue->factor && epilogue->y == p->c;
    if (g->gemm_act && !idle) {
        g->gemm_act(p, epilogue);
        return;
    }
    g->ops.gemm(p);
    if (!idle)
        g->ops.act(epilogue);
}

void engine_gemm_gate(const struct engine *g, const struct gemm *p, const struct gate_op *gate)
{
    CHECK((gate->c ? gate->c : gate->a) == p->c && gate->ld == p->ldc);
    CHECK(gate->n <= p->n && gate->rows == p->m);
    if (g->gemm_gate) {
        g->gemm_gate(p, gate);
        return;
    }
    g->ops.gemm(p);
    g->ops.gate(gate);
}

enum status engine_attn(const struct engine *g, const struct attn *a, const struct attn_impl **impl,
                        struct err *e)
{
    char refusals[256] = "", names[128] = "";

    attn_check(a);
    for (int i = 0; g->attn[i]; i++) {
        const struct attn_impl *candidate = g->attn[i];
        const char *why = "";
        text_append(names, sizeof(names), "%s%s", *names ? ", " : "", candidate->name);
        if (g->impl && strcmp(g->impl, candidate->name) != 0)
            continue;
        if (candidate->accepts(a, &why)) {
            *impl = candidate;
            return OK;
        }
        text_append(refusals, sizeof(refusals), "%s%s: %s", *refusals ? "; " : "", candidate->name,
                    why);
    }
    if (refusals[0] == '\0')
        return fail(e, E_UNSUPPORTED, "backend %s has no implementation \"%s\"  -> it has %s",
                    g->backend->name, g->impl, names);
    return fail(e, E_UNSUPPORTED,
                "backend %s cannot run this attention (%s)  -> use another backend",
                g->backend->name, refusals);
}

enum status engine_attn_backward(const struct engine *g, const struct attn_impl *impl,
                                 struct err *e)
{
    if (impl->backward)
        return OK;
    return fail(e, E_UNSUPPORTED,
                "backend %s has no backward pass for its attention %s  -> use another backend",
                g->backend->name, impl->name);
}

bool gemm_of_overlapping_rows(const struct gemm *g)
{
    if (g->lda >= (g->ta ? g->m : g->k) && g->ldb >= (g->tb ? g->k : g->n))
        return false;
    backend_ref.ops.gemm(g);
    return true;
}
