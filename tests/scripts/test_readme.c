/* SPDX-License-Identifier: MIT
 *
 * The README is complete: its tables name every command, variant and setting and no others, and it
 * uses no option that the program does not take. */
#include "harness/cli/option_table.h"
#include "harness/table/record.h"
#include "tests/support/program.h"
#include "variants/model/settings.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct bytes readme(void)
{
    struct bytes text;
    struct err e = {""};

    cr_assert_eq(file_read(&text, "README.md", &e), OK, "%s", e.msg);
    return text;
}

/* The table below this heading line, cut out of the text. */
static char *table_of(char *text, const char *heading)
{
    char *const at = strstr(text, heading);

    cr_assert(at, "README.md has no table %s", heading);
    char *const end = strstr(at, "\n\n");
    if (end)
        *end = '\0';
    return at;
}

static bool in_code(const char *table, const char *name)
{
    char code[64];

    snprintf(code, sizeof(code), "`%s`", name);
    return strstr(table, code) != NULL;
}

/* As the program prints it. */
Test(readme, table_of_variants)
{
    struct bytes text = readme();
    struct ran r =
        run_bench(".", "list variants --format md --columns family,variant,alias,about,memory");
    char *const table = table_of(text.data, "| family | variant | alias | about | memory |");

    expect_exit(&r, 0);
    cr_expect_eq(strncmp(r.out.data, table, strlen(table)), 0, "README.md has another table");
    cr_expect_str_eq(r.out.data + strlen(table), "\n", "README.md has a shorter table");
    for (int v = 0; variants[v]; v++) {
        char cell[64];
        snprintf(cell, sizeof(cell), "| %s |", variants[v]->name);
        cr_expect(strstr(table, cell), "no row for %s", variants[v]->name);
    }
    ran_free(&r);
    free(text.data);
}

Test(readme, table_of_settings)
{
    struct bytes text = readme();
    const char *const table = table_of(text.data, "| `--set` | counts | of |");

    const struct choice *s;

    for (struct settings all = {0}; (s = setting_next(&all));)
        cr_expect(in_code(table, s->name), "no row for %s", s->name);
    free(text.data);
}

/* As "bench NAME", or alone in code among others. */
Test(readme, commands)
{
    struct bytes text = readme();
    char *const table = table_of(text.data, "| command | does |");

    for (int c = 0; c < COMMAND_COUNT; c++) {
        char called[48];
        snprintf(called, sizeof(called), "bench %s", command_specs[c].name);
        const bool sweep = c == CMD_SWEEP && strstr(table, "`bench [sweep]`");
        if (command_specs[c].doc)
            cr_expect(sweep || strstr(table, called) || in_code(table, command_specs[c].name),
                      "no row for %s", command_specs[c].name);
    }
    free(text.data);
}

Test(readme, options_exist)
{
    struct bytes text = readme();
    int n = 0;

    for (const char *at = text.data; (at = strstr(at, "--")); at += 2) {
        char name[32] = "";
        const bool begins = at > text.data && strchr(" `\n(", at[-1]);
        if (!begins || sscanf(at + 2, "%31[a-z-]", name) != 1 || *name == '-')
            continue;
        cr_expect(option_find(name) >= 0, "bench has no --%s", name);
        n++;
    }
    cr_expect_gt(n, 50);
    free(text.data);
}
