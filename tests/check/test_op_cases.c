/* SPDX-License-Identifier: MIT
 *
 * Every case of every operation on every backend, with one thread and with three, attention with
 * six, which share the keys of few queries; and the comparison detects an operation that is wrong.
 */
#include "harness/check/op_cases.h"
#include "tests/support/open_engine.h"

#include <criterion/parameterized.h>
#include <string.h>

/* Criterion copies parameters into other processes: indices, no pointers. */
struct who {
    int backend, op;
};

ParameterizedTestParameters(op_cases, every_case_on_every_backend)
{
    static struct who list[256];
    size_t n = 0;

    for (int b = 0; backends[b]; b++)
        for (int op = 0; op_case_name(op) && n < ARRAY_LEN(list); op++)
            list[n++] = (struct who){b, op};
    return cr_make_param_array(struct who, list, n);
}
ParameterizedTest(struct who *w, op_cases, every_case_on_every_backend, .timeout = 600)
{
    const int threads = strcmp(op_case_name(w->op), "attn") == 0 ? 6 : 3;
    const struct engine g = open_engine(backends[w->backend]->name, threads);
    const struct op_result r = op_check(&g, w->op, 1);

    cr_expect_eq(r.failed, 0, "%s: %s: %d of %d cases failed, first %s", g.backend->name,
                 op_case_name(w->op), r.failed, r.cases, r.first);
    cr_expect_str_eq(r.refused, "");
    cr_expect_gt(r.cases, 0);
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
        const struct op_result r = op_check(&g, op_called(faults[i].op), 11);
        cr_expect_gt(r.failed, 0, "%s", faults[i].op);
        cr_expect(strstr(r.first, faults[i].says), "%s: %s", faults[i].op, r.first);
    }
}

/* An operation that an engine refuses is neither right nor wrong. */
Test(op_cases, refusal_is_no_failure)
{
    struct engine g = open_engine("ref", 1);

    g.impl = "nosuch";
    const struct op_result r = op_check(&g, op_called("attn"), 97);
    cr_expect_eq(r.failed, 0);
    cr_expect(strstr(r.refused, "nosuch"), "%s", r.refused);
}
