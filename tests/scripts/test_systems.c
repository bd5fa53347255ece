/* SPDX-License-Identifier: MIT
 *
 * No system of the founding papers is forgotten: each is built, and then one command plans at least
 * one case of it, or it is not built, with a reason; docs/systems.md says so. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"
#include "variants/systems.h"

TestSuite(systems, .init = folder_make, .fini = folder_remove, .timeout = 120);

static const struct system *find(const struct system *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

static int count(const struct system *list)
{
    int n = 0;

    while (list[n].name)
        n++;
    return n;
}

Test(systems, each_is_built_or_not_and_once)
{
    char **const name = words_between(must_load("tests/scripts/systems.txt").data, "\n");
    int n = 0;

    for (; *name[n]; n++)
        cr_expect(find(systems, name[n]) != NULL, "%s is missing", name[n]);
    cr_expect_eq(count(systems), n);
    for (const struct system *s = systems; s->name; s++) {
        cr_expect((s->run != NULL) != (s->why != NULL), "%s is either run or explained", s->name);
        cr_expect(!s->why || s->why[strlen(s->why) - 1] == '.', "%s: a sentence", s->name);
    }
}

Test(systems, what_is_built_runs)
{
    for (const struct system *s = systems; s->name; s++) {
        int n = 0;
        if (!s->run)
            continue;
        if (strncmp(s->run, "train ", strlen("train ")) == 0) {
            must_bench("%s --backend ref --steps 1 --seq 8 --batch 1", s->run);
            continue;
        }
        struct plan p = planned("%s -b ref", s->run);
        plan_drop_unsupported(&p);
        n = p.n;
        cr_expect_gt(n, 0, "%s: %s runs nothing", s->name, s->run);
    }
}

Test(systems, the_page_is_the_list)
{
    struct ran r = must_bench("list systems --format md");
    struct bytes page = must_load("docs/systems.md");
    cr_expect_str_eq(page.data, r.out.data, "make && scripts/pages.sh");
}
