/* SPDX-License-Identifier: MIT
 *
 * Energy counters below a root of the test's own. */
#include "harness/machine/energy.h"
#include "tests/support/tmp_folder.h"

TestSuite(energy, .init = folder_make, .fini = folder_remove, .timeout = 240);

static void put(const char *zone, const char *file, const char *text)
{
    const char *const whole = in_folder(kept_text("sys/class/powercap/%s", zone));
    const char *const command =
        kept_text("mkdir -p '%s' && printf '%s\\n' >'%s/%s'", whole, text, whole, file);
    cr_assert_eq(system(command), 0); // NOLINT: a folder of our own
}

static void zone(const char *folder_name, const char *name, const char *range, const char *used)
{
    put(folder_name, "name", name);
    put(folder_name, "max_energy_range_uj", range);
    put(folder_name, "energy_uj", used);
}

Test(energy, none)
{
    struct energy e;

    energy_find(&e, folder);
    cr_expect_eq(e.packages, 0);
    energy_start(&e);
    cr_expect(isnan(energy_joules(&e)));
}

/* Packages are added; what is inside one is part of it; a counter that begins again loses nothing. */
Test(energy, of_packages)
{
    struct energy e;

    zone("intel-rapl:0", "package-0", "1000000", "900000");
    zone("intel-rapl:0:0", "core", "1000000", "5");
    zone("intel-rapl:1", "package-1", "1000000", "100");
    zone("intel-rapl:2", "psys", "1000000", "100");
    put("intel-rapl", "enabled", "1");
    energy_find(&e, folder);
    cr_expect_eq(e.packages, 2);
    energy_start(&e);
    cr_expect_eq(energy_joules(&e), 0);
    put("intel-rapl:1", "energy_uj", "500100");
    put("intel-rapl:0:0", "energy_uj", "700000");
    cr_expect_float_eq(energy_joules(&e), 0.5, 1e-12);
    put("intel-rapl:0", "energy_uj", "150000");
    cr_expect_float_eq(energy_joules(&e), 0.75, 1e-12);
}

/* A part of the machine's energy would be mistaken for all of it. */
Test(energy, all_or_none)
{
    struct energy e;

    zone("intel-rapl:0", "package-0", "1000000", "900000");
    zone("intel-rapl:1", "package-1", "1000000", "x");
    energy_find(&e, folder);
    cr_expect_eq(e.packages, 0);
    zone("intel-rapl:1", "package-1", "0", "5");
    energy_find(&e, folder);
    cr_expect_eq(e.packages, 0);
}
