/* SPDX-License-Identifier: MIT
 *
 * A kernel from a file (library/benchkernel.h) as a backend. What it has not, or refuses, goes to the
 * best of our own. */
#include "outside.h"

#include "library/benchkernel.h"
#include "library/fields.h"
#include "recur.h"

#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 64, LIST = 16, MASKS = 256 };

/* What a kernel must leave as it was. */
struct state {
    int rounding, traps;
    bool denormal, flushed; /* what two products give, whose operand or result is a denormal */
    sigset_t signals;
    char locale[32];
};

/* Of this process: the kernel that is open. */
static struct {
    const struct backend *b;
    struct bk_kernel k;
    struct engine base; /* what it lacks */
    void *own;          /* of its open */
    pid_t pid;
    struct state before;
    long calls[BK_FUNCTIONS], seen[BK_FUNCTIONS];
    char name[128], file[256];
    outside_start *start;
    struct ba_mask masks[MASKS];
    const struct attn_impl *attn_list[LIST];
    const struct recur_impl *recur_list[LIST];
} now;

const char *outside_name(void) { return now.name; }
static const char *file(void) { return now.file; }
long outside_calls(int function) { return now.calls[function]; }
void outside_processes(outside_start *start) { now.start = start; }

/* ---- calls --------------------------------------------------------------------------------- */

static void team_run(const struct bk_team *team, void (*work)(void *arg, int thread), void *arg)
{
#pragma omp parallel num_threads(team->threads)
    work(arg, omp_get_thread_num());
}

static struct bk_team team_of(int threads)
{
    return (struct bk_team){sizeof(struct bk_team), threads, team_run};
}

bool outside_has(int function)
{
    return (const bool[BK_FUNCTIONS]){now.k.linear, now.k.attention_forward,
                                      now.k.attention_backward, now.k.recurrence_forward,
                                      now.k.recurrence_backward}[function];
}

static const char *refusal(enum bk_function f, const void *call)
{
    if (!outside_has(f))
        return "the kernel has no such function";
    return now.k.why ? now.k.why(now.own, f, call) : NULL;
}

/* A copy of this process that the kernel made must not go on in its place. */
static void called(enum bk_function f)
{
    if (getpid() != now.pid)
        _exit(1);
    now.calls[f]++;
}

/* ---- products ------------------------------------------------------------------------------ */

/* False for what is not a linear map of all rows, or is refused. */
static bool linear(const struct gemm *p, const float *bias)
{
    const bool narrow = p->b_narrow != NULL;
    const struct bk_team team = team_of(p->threads);
    const struct bk_linear l = {.size = sizeof(l),
                                .rows = p->m,
                                .in = p->k,
                                .out = p->n,
                                .w_type = narrow ? BK_BF16 : BK_F32,
                                .x = p->a,
                                .w = narrow ? p->b_narrow : p->b,
                                .bias = bias,
                                .y = p->c,
                                .x_row = p->lda,
                                .w_row = narrow ? p->k : p->ldb,
                                .y_row = p->ldc};

    if (p->ta || !p->tb || p->alpha != 1 || p->beta != 0 || p->rounds || p->quantises ||
        (narrow && p->elem != ELEM_BF16) || omp_in_parallel() || p->lda < p->k || p->ldb < p->k)
        return false;
    if (refusal(BK_LINEAR, &l))
        return false;
    now.k.linear(now.own, &team, &l);
    called(BK_LINEAR);
    return true;
}

static void gemm(const struct gemm *p)
{
    if (!linear(p, NULL))
        now.base.ops.gemm(p);
}

static void gemm_act(const struct gemm *p, const struct act *after)
{
    const bool bias = after->kind == ACT_NONE && !after->add && !after->factor && after->y == p->c;

    if (!linear(p, bias ? after->bias : NULL))
        engine_gemm_act(&now.base, p, after);
    else if (!bias)
        now.base.ops.act(after);
}

/* ---- attention ----------------------------------------------------------------------------- */

static struct ba_stride stride(struct stride x) { return (struct ba_stride){x.batch, x.row}; }

static struct ba_mask mask_of(const struct mask *x)
{
    return (struct ba_mask){.size = sizeof(struct ba_mask), SAME_IN_MASK(SAME)};
}

/* Its masks are those of `now`. */
static struct ba_attention attention_of(const struct attn *x)
{
    int n = x->mask != NULL;

    for (int h = 0; n && x->mask_of_head && h < x->H; h++)
        n = max_int(n, x->mask_of_head[h] + 1);
    for (int i = 0; i < n; i++)
        now.masks[i] = mask_of(&x->mask[i]);
    struct ba_attention call = {
        .size = sizeof(struct ba_attention),
        SAME_IN_ATTENTION(SAME).Hkv = x->Hkv,
        .scale = x->scale,
        .n_masks = n,
        .masks = n ? now.masks : NULL,
        .q_at = stride(x->q_at),
        .k_at = stride(x->k_at),
        .v_at = stride(x->v_at),
        .o_at = stride(x->o_at),
        .add = x->add.at,
        .add_batch = x->add.batch,
        .add_head = x->add.head,
        .add_row = x->add.row,
        .fade = x->fade.at,
        .fade_batch = x->fade.batch,
        .fade_head = x->fade.head,
    };
    /* Heads of tables that are not there. */
    call.rel_head = x->rel_k || x->rel_v || x->rel_q ? x->rel_head : 0;
    call.bias_head = x->bias ? x->bias_head : 0;
    return call;
}

/* Forward by the kernel; `backward`: that too. */
static bool takes(const struct attn *a, bool backward, const char **why)
{
    if (!attn_supports(a, ~(unsigned)(TERM_BF16 | TERM_Q8 | TERM_ROUNDED | TERM_WEIGH), why))
        return false;
    const struct ba_attention call = attention_of(a);
    *why = refusal(BK_ATTENTION_FORWARD, &call);
    if (!*why && backward)
        *why = refusal(BK_ATTENTION_BACKWARD, &call);
    return !*why;
}

static bool accepts(const struct attn *a, const char **why) { return takes(a, false, why); }
static struct attn_need no_need(const struct attn *a, int threads) { return (struct attn_need){0}; }

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const struct ba_attention call = attention_of(a);
    const struct bk_team team = team_of(g->threads);

    now.k.attention_forward(now.own, &team, &call);
    called(BK_ATTENTION_FORWARD);
}

/* Whose backward pass stands in for the kernel's; NULL = none has to. */
static const struct attn_impl *stand_in(const struct attn *a)
{
    const struct attn_impl *impl;
    const char *why;

    if (takes(a, true, &why))
        return NULL;
    CHECK(engine_attn(&now.base, a, &impl, NULL) == OK);
    return impl;
}

static struct attn_need need_backward(const struct attn *a, int threads)
{
    const struct attn_impl *const other = stand_in(a);

    return other ? other->need_backward(a, threads) : (struct attn_need){0};
}

static void backward(const struct engine *g, const struct attn *a, const struct attn_grad *x,
                     void *scratch)
{
    const struct attn_impl *const other = stand_in(a);
    const struct ba_attention_grad d = {.size = sizeof(d), SAME_IN_ATTENTION_GRAD(SAME)};
    const struct bk_team team = team_of(g->threads);
    struct engine base = now.base;

    base.threads = g->threads;
    if (other) {
        other->backward(&base, a, x, scratch);
        return;
    }
    const struct ba_attention call = attention_of(a);
    now.k.attention_backward(now.own, &team, &call, &d);
    called(BK_ATTENTION_BACKWARD);
}

static const struct attn_impl own_attention = {.name = now.name,
                                               .accepts = accepts,
                                               .need = no_need,
                                               .forward = forward,
                                               .need_backward = need_backward,
                                               .backward = backward};

/* ---- recurrences --------------------------------------------------------------------------- */

static struct ba_rows rows(const struct recur_rows *x)
{
    return (struct ba_rows){x->at, x->batch, x->row, x->head, x->per};
}

static struct ba_recurrence recurrence_of(const struct recur *x)
{
#define ROWS(field) .field = rows(&x->field),
    return (struct ba_recurrence){.size = sizeof(struct ba_recurrence),
                                  SAME_IN_RECURRENCE(SAME) ROWS_IN_RECURRENCE(ROWS).Hs = x->Hs,
                                  .scale = x->scale,
                                  .eps = x->norm == RECUR_SUM && !x->i.at ? x->eps : 0};
#undef ROWS
}

static bool takes_recurrence(const struct recur *r, bool back)
{
    const struct ba_recurrence call = recurrence_of(r);

    return !r->bf16 && !refusal(back ? BK_RECURRENCE_BACKWARD : BK_RECURRENCE_FORWARD, &call);
}

static size_t recurrence_need(const struct recur *r, int threads, bool back) { return 0; }

static void recurrence(const struct engine *g, const struct recur *r, void *scratch)
{
    const struct ba_recurrence call = recurrence_of(r);
    const struct bk_team team = team_of(g->threads);

    now.k.recurrence_forward(now.own, &team, &call);
    called(BK_RECURRENCE_FORWARD);
}

static void recurrence_grad(const struct engine *g, const struct recur *r,
                            const struct recur_grad *x, void *scratch)
{
    const struct ba_recurrence call = recurrence_of(r);
    const struct ba_recurrence_grad d = {.size = sizeof(d), SAME_IN_RECURRENCE_GRAD(SAME)};
    const struct bk_team team = team_of(g->threads);

    now.k.recurrence_backward(now.own, &team, &call, &d);
    called(BK_RECURRENCE_BACKWARD);
}

static const struct recur_impl own_recurrence = {
    .name = "outside",
    .accepts = takes_recurrence,
    .need = recurrence_need,
    .forward = recurrence,
    .backward = recurrence_grad,
};

/* ---- what it may not do -------------------------------------------------------------------- */

static void look(struct state *s)
{
    volatile float tiny = 0x1p-140f, small = 0x1p-126f, half = 0.5f;

    memset(s, 0, sizeof(*s));
    s->rounding = fegetround();
    s->traps = fegetexcept();
    s->denormal = tiny + tiny != 0;
    s->flushed = small * half == 0;
    pthread_sigmask(SIG_SETMASK, NULL, &s->signals);
    snprintf(s->locale, sizeof(s->locale), "%s", setlocale(LC_ALL, NULL));
}

const char *outside_changed(void)
{
    struct state is;

    look(&is);
    if (!backend_is_process(now.b->name) && waitpid(-1, NULL, WNOHANG) >= 0)
        return "it started a process";
    if (is.rounding != now.before.rounding || is.traps != now.before.traps ||
        is.denormal != now.before.denormal || is.flushed != now.before.flushed)
        return "it changed the rounding or denormals of the processor";
    if (memcmp(&is.signals, &now.before.signals, sizeof(is.signals)) != 0)
        return "it changed the signal mask";
    return strcmp(is.locale, now.before.locale) != 0 ? "it changed the locale" : NULL;
}

/* What of it ran since the last call; its attention has its name already. */
static enum status ran(char *names, size_t size, struct err *e)
{
    static const char *const function[BK_FUNCTIONS] = {"linear", "attention", "attention backward",
                                                       "recurrence", "recurrence backward"};
    const char *const changed = outside_changed();
    const bool named = now.calls[BK_ATTENTION_FORWARD] > now.seen[BK_ATTENTION_FORWARD];

    names[0] = '\0';
    for (int f = 0; f < BK_FUNCTIONS; f++) {
        if (now.calls[f] > now.seen[f])
            text_append(names, size, "%s%s%s",
                        names[0] ? "+"
                        : named  ? ""
                                 : now.name,
                        names[0] || named ? "" : ".", function[f]);
        now.seen[f] = now.calls[f];
    }
    return changed ? fail(e, E_CHILD, "%s: %s  -> a call leaves its process as it was", now.name,
                          changed)
                   : OK;
}

/* ---- the backend --------------------------------------------------------------------------- */

static enum isa core_isa(enum elem elem) { return cpu_isa(); }

static const char *lacks(enum elem elem) { return now.base.lacks[elem]; }

const struct backend *outside_find(const char *name)
{
    static struct backend all[FILES];
    int i = 0;

    if (!backend_is_outside(name))
        return NULL;
    while (i < FILES && all[i].name && strcmp(all[i].name, name) != 0)
        i++;
    if (i == FILES)
        return NULL;
    if (!all[i].name)
        all[i] = (struct backend){.name = need_text("%s", name),
                                  .about = "a kernel from outside",
                                  .inherits = "simd",
                                  .core = outside_name,
                                  .config = file,
                                  .core_isa = core_isa,
                                  .ran = ran,
                                  .makes_kernels = true};
    return &all[i];
}

/* Its table, as far as this version knows it. */
static enum status load(const char *path, struct err *e)
{
    void *const object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct bk_kernel *const k = object ? dlsym(object, "bench_kernel") : NULL;

    if (!k)
        return fail(e, E_IO, "cannot load %s: %s  -> cc -shared -fPIC, with benchkernel.h", path,
                    dlerror());
    if (k->abi != BK_ABI || k->size < offsetof(struct bk_kernel, open) || !k->name || !k->version)
        return fail(e, E_IO, "%s has a table of ABI %d  -> compile it with this benchkernel.h",
                    path, k->abi);
    memcpy(&now.k, k, k->size < sizeof(now.k) ? k->size : sizeof(now.k));
    return OK;
}

/* Its own before those of the base; lists have room for what any base has. */
static void fill(struct backend *b)
{
    const struct backend *const products = backend_find(now.base.provider[OP_gemm]);
    int n = 0;

    now.attn_list[n++] = &own_attention;
    for (int i = 0; now.base.attn[i] && n < LIST - 1; i++)
        now.attn_list[n++] = now.base.attn[i];
    n = 0;
    now.recur_list[n++] = &own_recurrence;
    for (int i = 0; now.base.recur_rows && now.base.recur_rows[i] && n < LIST - 1; i++)
        now.recur_list[n++] = now.base.recur_rows[i];
    b->attn = now.attn_list;
    b->recur_rows = now.recur_list;
    b->recur = now.base.recur;
    if (!now.k.linear)
        return;
    b->ops.gemm = gemm;
    b->gemm_act = gemm_act;
    b->gemm_room = products->gemm_room;
    b->int8_by = products->int8_by;
    b->rounds = products->rounds;
    b->lacks = lacks;
}

enum status outside_open(const struct backend *b, int threads, struct err *e)
{
    const struct bk_team team = team_of(threads);
    char why[256] = "says nothing", note[64] = "-";

    if (now.b)
        return now.b == b
                   ? OK
                   : fail(e, E_CHILD, "a second kernel in one process: %s  -> one a case", b->name);
    now.pid = getpid();
    look(&now.before);
    if (backend_is_process(b->name))
        now.start(b->name + strlen("exec:"), threads, &now.k, note);
    else
        TRY(load(b->name, e));
    snprintf(now.name, sizeof(now.name), "%.60s@%.60s", now.k.name, now.k.version);
    for (char *c = now.name; *c; c++)
        *c = *c > ' ' && *c < 127 && !strchr(",;:/", *c) ? *c : '_';
    snprintf(now.file, sizeof(now.file), "outside %s %s %s", now.name, note, b->name);
    TRY(engine_open(&now.base, backend_parent(b)->name, threads, NULL, e));
    if (now.k.open && !(now.own = now.k.open(&team, why, sizeof(why))))
        return fail(e, E_UNSUPPORTED, "%s cannot run here: %.200s  -> choose another backend",
                    now.name, why);
    now.b = b;
    fill((struct backend *)b);
    return OK;
}

void outside_close(void)
{
    if (now.b && now.k.close)
        now.k.close(now.own);
}
