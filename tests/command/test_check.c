/* SPDX-License-Identifier: MIT
 *
 * What `bench check` leaves out: shapes that a variant excludes, types that its weights refuse. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "variants/backends/backend.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(check_cases, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* One variant's exclusion takes a shape from it, and from no other. */
Test(check_cases, shapes_that_a_variant_excludes)
{
    if (!backend_find("openblas") || backend_usable(backend_find("openblas"), NULL) != OK)
        cr_skip_test("openblas is not usable here");
    struct ran r = run_bench(folder, "check --variant set,shaw --backend openblas -v");
    expect_exit(&r, 0);
    cr_expect(strstr(r.out.data, "shaw layer seq=37 mem=19 kv_heads=3"), "%s", r.out.data);
    cr_expect_null(strstr(r.out.data, "set layer seq=37 mem=0 kv_heads=3"), "%s", r.out.data);
    ran_free(&r);
}

Test(check_cases, types_that_weights_refuse)
{
    const struct backend *b = NULL;

    for (int i = 0; backends[i]; i++)
        if (backends[i]->adds != ELEM_F32 && backend_usable(backends[i], NULL) == OK)
            b = backends[i];
    if (!b)
        cr_skip_test("no backend here adds a type");
    struct ran r = run_bench(folder, "check --variant delight --backend %s", b->name);
    expect_exit(&r, 0);
    cr_expect(strstr(r.out.data, " 0 failed, "), "%s", r.out.data);
    cr_expect_null(strstr(r.out.data, " 0 skipped"), "%s", r.out.data);
    ran_free(&r);
}
