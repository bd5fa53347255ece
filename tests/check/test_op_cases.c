/* SPDX-License-Identifier: MIT
 *
 * Every case of every operation on every backend, with one thread and with three, attention with
 * six, which share the keys of few queries; and the comparison detects an operation that is wrong.
 */
#include "harness/check/op_cases.h"
#include "tests/support/op_name.h"
#include "tests/support/open_engine.h"
#include "tests/support/sanitized.h"

#include <criterion/parameterized.h>

enum { MOST_OPS = 64, MOST_BACKENDS = 16 };

ParameterizedTestParameters(op_cases, every_case_on_every_backend)
{
    static int all[MOST_OPS];
    size_t n = 0;

    for (; op_case_name((int)n); n++) {
        cr_assert_lt(n, MOST_OPS);
        all[n] = (int)n;
    }
    return cr_make_param_array(int, all, n);
}
/* The usual build judges the numbers; under sanitizers each kind and each shape has its turn, not
 * every pair of them. */
ParameterizedTest(int *op, op_cases, every_case_on_every_backend, .timeout = 600)
{
    const char *const name = op_case_name(*op);
    const int threads = strcmp(name, "attn") == 0 ? 6 : 3;
    struct engine g[MOST_BACKENDS];
    struct op_result r[MOST_BACKENDS];
    int n = 0;

    for (int b = 0; backends[b]; b++)
        if (backend_usable(backends[b], NULL) == OK) {
            cr_assert_lt(n, MOST_BACKENDS);
            g[n++] = open_engine(backends[b]->name, threads);
        }
    op_check(g, n, *op, SANITIZED ? 7 : 1, r);
    for (int i = 0; i < n; i++) {
        cr_expect_eq(r[i].failed, 0, "%s: %s: %d of %d cases failed, first %s", g[i].backend->name,
                     name, r[i].failed, r[i].cases, r[i].first);
        const char *const no_rounding =
            g[i].can_round ? NULL : "does not round both operands of its products";
        const char *const lacks =
            strcmp(name, "gemm_rounded") == 0 ? no_rounding : g[i].lacks[op_case_elem(*op)];
        cr_expect_str_eq(r[i].refused, lacks ? lacks : "", "%s: %s: %s", g[i].backend->name, name,
                         r[i].refused);
        cr_expect_gt(r[i].cases, 0);
    }
}

/* Every operation of the contract has cases. */
Test(op_cases, list_is_complete)
{
    for (int k = 0; k < OP_COUNT; k++) {
        int op = 0;
        while (op_case_name(op) && strcmp(op_case_name(op), op_name[k]) != 0)
            op++;
        cr_expect(op_case_name(op), "no cases of %s", op_name[k]);
        cr_expect_gt(op_case_count(op), 10);
    }
}

/* ---- what must not pass ------------------------------------------------------------------- */

static int op_called(const char *name)
{
    int op = 0;

    while (strcmp(op_case_name(op), name) != 0)
        op++;
    return op;
}

static void act_off_by_little(const struct act *o)
{
    backend_ref.ops.act(o);
    for (int i = 0; i < o->rows * o->n; i++)
        o->y[i] *= 1 + 1e-4f;
}

static void norm_beyond_its_end(const struct norm *o)
{
    backend_ref.ops.norm(o);
    o->y[o->rows * o->n] = 0;
}

static void gate_that_skips_the_last(const struct gate_op *o)
{
    struct gate_op less = *o;

    less.n = o->n > 1 ? o->n - 1 : 1;
    backend_ref.ops.gate(o->n > 1 ? &less : o);
}

static void softmax_by_threads(const struct softmax *o)
{
    backend_ref.ops.softmax(o);
    if (o->threads > 1 && o->s[0] > 0)
        o->s[0] += o->s[0] * 0x1p-23f;
}

Test(op_cases, faults_are_noticed)
{
    static const struct {
        const char *op;
        struct ops ops;
        const char *says;
    } faults[] = {
        {"act", {.act = act_off_by_little}, "of the bound"},
        {"norm", {.norm = norm_beyond_its_end}, "beyond its end"},
        {"gate", {.gate = gate_that_skips_the_last}, "of the bound"},
        {"softmax", {.softmax = softmax_by_threads}, "bits"},
    };

    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct engine g = open_engine("ref", 2);
        if (faults[i].ops.act)
            g.ops.act = faults[i].ops.act;
        if (faults[i].ops.norm)
            g.ops.norm = faults[i].ops.norm;
        if (faults[i].ops.gate)
            g.ops.gate = faults[i].ops.gate;
        if (faults[i].ops.softmax)
            g.ops.softmax = faults[i].ops.softmax;
        struct op_result r;
        op_check(&g, 1, op_called(faults[i].op), 11, &r);
        cr_expect_gt(r.failed, 0, "%s", faults[i].op);
        cr_expect(strstr(r.first, faults[i].says), "%s: %s", faults[i].op, r.first);
    }
}

/* Reference and subject run by the same line, so what it leaves out would differ for neither. */
static bool over_act, over_gate, over_norm, over_act_grad, over_nll_grad, has_d_beta, has_d_bias;

#define SEEN(op, call, look)                                                                       \
    static void op##_seen(const struct call *o)                                                    \
    {                                                                                              \
        look;                                                                                      \
        backend_ref.ops.op(o);                                                                     \
    }
SEEN(act, act, over_act |= o->x == o->y)
SEEN(gate, gate_op, over_gate |= o->x == o->out)
SEEN(norm, norm, over_norm |= o->x == o->y)
SEEN(act_grad, act_grad, over_act_grad |= o->d_y == o->d_x;
     has_d_beta |= o->d_beta && o->d_beta != o->d_bias)
SEEN(norm_grad, norm_grad, has_d_bias |= o->d_bias && o->d_bias != o->d_weight)
SEEN(nll_grad, nll_grad, over_nll_grad |= o->logits == o->d_logits)

Test(op_cases, results_lie_over_operands_and_each_gradient_is_asked)
{
    static const char *const ops[] = {"act", "gate", "norm", "act_grad", "norm_grad", "nll_grad"};
    struct engine g = open_engine("ref", 2);

    g.ops.act = act_seen;
    g.ops.gate = gate_seen;
    g.ops.norm = norm_seen;
    g.ops.act_grad = act_grad_seen;
    g.ops.norm_grad = norm_grad_seen;
    g.ops.nll_grad = nll_grad_seen;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        struct op_result r;
        op_check(&g, 1, op_called(ops[i]), 11, &r);
        cr_expect_eq(r.failed, 0, "%s: %s", ops[i], r.first);
    }
    cr_expect(over_act && over_gate && over_norm && over_act_grad && over_nll_grad);
    cr_expect(has_d_beta && has_d_bias);
}

/* An operation that an engine refuses is neither right nor wrong. */
Test(op_cases, refusal_is_no_failure)
{
    struct engine g = open_engine("ref", 1);
    struct op_result r;

    g.impl = "nosuch";
    op_check(&g, 1, op_called("attn"), 97, &r);
    cr_expect_eq(r.failed, 0);
    HAS(r.refused, "nosuch");
}
