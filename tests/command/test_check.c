/* SPDX-License-Identifier: MIT
 *
 * What `bench check` leaves out: shapes that a variant excludes, types that its weights refuse. */
#include "harness/command/check/finding.h"
#include "tests/support/pty.h"

TestSuite(check_cases, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* One variant's exclusion takes a shape from it, and from no other. */
Test(check_cases, shapes_that_a_variant_excludes)
{
    if (!backend_find("openblas") || backend_usable(backend_find("openblas"), NULL) != OK)
        cr_skip_test("openblas is not usable here");
    struct ran r = must_bench("check --variant set,shaw --backend openblas -v");
    HAS(r.out.data, "shaw layer seq=37 mem=19 kv_heads=3");
    cr_expect_null(strstr(r.out.data, "set layer seq=37 mem=0 kv_heads=3"), "%s", r.out.data);
}

/* Of the two attentions of a layer the first alone shares key heads: what runs them takes both. */
Test(check_cases, attentions_of_a_layer_that_differ)
{
    if (!backend_find("onednn") || backend_usable(backend_find("onednn"), NULL) != OK)
        cr_skip_test("onednn is not usable here");
    struct ran r = must_bench("check --variant nystrom --backend onednn -v");
    HAS(r.out.data, "nystrom layer seq=37 mem=0 kv_heads=3");
}

Test(check_cases, types_that_weights_refuse)
{
    const struct backend *b = NULL;

    for (int i = 0; backends[i]; i++)
        if (backends[i]->adds != ELEM_F32 && backend_usable(backends[i], NULL) == OK)
            b = backends[i];
    if (!b)
        cr_skip_test("no backend here adds a type");
    struct ran r = must_bench("check --variant delight --backend %s", b->name);
    HAS(r.out.data, " 0 failed, ");
    cr_expect_null(strstr(r.out.data, " 0 skipped"), "%s", r.out.data);
}

/* ---- failures that are alike ---------------------------------------------------------------- */

static void take_failures(void *arg)
{
    static const struct finding all[] = {
        {FINDING_FAILED, "ref", "case", "xl layer seq=1", NULL, 0.5, 0.1, "nmse 1", "xl layer"},
        {FINDING_FAILED, "ref", "case", "xl layer seq=2", NULL, 0.7, 0.1, "nmse 2", "xl layer"},
        {FINDING_FAILED, "ref", "backend", "xl layer seq=3", NULL, NAN, NAN, "killed", "xl layer"},
        {FINDING_FAILED, "avx2", "backend", "xl layer seq=3", NULL, NAN, NAN, "killed", "xl layer"},
        {FINDING_FAILED, "avx2", "backend", "xl attn seq=3", NULL, NAN, NAN, "killed", "xl attn"},
        {FINDING_FAILED, "ref", "case", "xl layer seq=4", NULL, 0.9, 0.1, "nmse 3", "xl layer"},
        {FINDING_FAILED, "ref", "backend", "xl layer seq=5", NULL, NAN, NAN, "wedged", "xl layer"},
        {FINDING_FAILED, "ref", "golden", "a out", NULL, NAN, NAN, "odd\tname", NULL},
        {FINDING_FAILED, "ref", "golden", "a out", NULL, NAN, NAN, "odd\tname", NULL},
    };
    const struct options o = {.format = FORMAT_TABLE};
    struct failures failures = {0};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char text[FAILURE_TEXT];
        failure_text(text, &all[i]);
        failure_take(&failures, text);
    }
    findings_end(&o, &failures);
    failures_name(stdout, &failures);
    failures_free(&failures);
}

/* One line for those of one variant, operation and reason, on any backend; their number and name in the
 * end. What is of no group has a line each. */
Test(check_cases, failures_that_are_alike)
{
    struct view v;

    watch(&v, ON_STDERR, 80, take_failures, NULL);
    cr_expect_str_eq(v.file, "FAILED   ref       xl layer seq=1: error 0.5, limit 0.1; nmse 1\n"
                             "FAILED   ref       xl layer seq=3: killed\n"
                             "FAILED   avx2      xl attn seq=3: killed\n"
                             "FAILED   ref       xl layer seq=5: wedged\n"
                             "FAILED   ref       a out: odd\\tname\n"
                             "FAILED   ref       a out: odd\\tname\n"
                             "3 alike: xl layer: wrong numbers  -> -v lists them\n"
                             "2 alike: xl layer: killed  -> -v lists them\n"
                             "; failed: xl layer 6, xl attn 1");
}
