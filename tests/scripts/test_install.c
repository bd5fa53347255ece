/* SPDX-License-Identifier: MIT
 *
 * What `make install`, `scripts/deb.sh` and contrib/ give to a user: the program runs from where it
 * was put, with everything that it reads at run time. */
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

TestSuite(install, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* The sanitizers' build has no library. */
#define INSTALL_LIBRARY                                                                            \
    "lib=$(dirname \"$BENCH\")/libbenchattn.so.1; [ -e \"$lib\" ] || lib=; "                       \
    "DESTDIR=\"$PWD/d\" PREFIX=/opt/b \"$SRC/scripts/install.sh\" install \"$BENCH\" $lib && "
#define INSTALL                                                                                    \
    "DESTDIR=\"$PWD/d\" PREFIX=/opt/b \"$SRC/scripts/install.sh\" install \"$BENCH\" && "

Test(install, runs_from_where_it_was_put)
{
    struct ran r = must_shell(INSTALL "find d -type f | sort");

    for (const char *file = "bin/bench\0share/man/man1/bench.1\0share/bench/plots/style.gp\0"
                            "share/bench/plots/report.html\0share/bench/harness/sweeps/smoke.args\0"
                            "share/bash-completion/completions/bench\0"
                            "share/zsh/site-functions/_bench\0"
                            "share/fish/vendor_completions.d/bench.fish\0";
         *file; file += strlen(file) + 1)
        cr_expect(strstr(r.out.data, file), "%s is not in %s", file, r.out.data);

    r = must_shell("PATH=\"$PWD/d/opt/b/bin:$PATH\"; bench -q " TINY
                   "--variant xl --backend ref --workload attn --seq 4,8 --mem 0 >/dev/null && "
                   "bench list cases @harness/sweeps/smoke.args -q --columns variant | sort -u");
    HAS(r.out.data, "\nxl\n");

    need_programs("gnuplot");
    r = must_shell("mv d e; PATH=\"$PWD/e/opt/b/bin:$PATH\"; bench plot r/latest --figure "
                   "latency-seq && bench report r/latest -o page.html && grep -c '<svg' page.html");
    HAS(r.out.data, "latency-seq.svg\n");
}

/* The example sees nothing but what was installed. */
Test(install, library)
{
    SKIP_SANITIZED("the library is of builds for users");
    need_programs("cc pkg-config");
    struct ran r =
        must_shell(INSTALL_LIBRARY
                   "mv d e && export PKG_CONFIG_PATH=\"$PWD/e/opt/b/lib/pkgconfig\" && cc -std=c11 "
                   "-Wall -Wextra -Werror \"$SRC/contrib/c/attend.c\" -o attend $(pkg-config "
                   "--cflags --libs benchattn) -lm && LD_LIBRARY_PATH=\"$PWD/e/opt/b/lib\" "
                   "./attend && pkg-config --modversion benchattn && \"$BENCH\" --version");

    HAS(r.out.data, ": the gradients of the values sum to ");
    const char *const version = strstr(r.out.data, "\nbench ");
    cr_assert_not_null(version, "%s", r.out.data);
    HAS(r.out.data, kept_text("\n%.*s\n", (int)strcspn(version + 7, " "), version + 7));
    need_programs("c++");
    must_shell("echo '#include <benchattn.h>' >x.cc && c++ -Wall -Wextra -Wpedantic -Werror "
               "-fsyntax-only -Ie/opt/b/include x.cc");
}

Test(install, uninstall_leaves_no_file)
{
    struct ran r =
        must_shell(INSTALL_LIBRARY "touch d/opt/b/bin/other && DESTDIR=\"$PWD/d\" PREFIX=/opt/b "
                                   "\"$SRC/scripts/install.sh\" uninstall && find d -not -type d");

    const char *const left = strstr(r.out.data, "\nd/"); /* after what install said */
    cr_assert_not_null(left, "%s", r.out.data);
    cr_expect_str_eq(left, "\nd/opt/b/bin/other\n");
}

Test(install, a_debian_package)
{
    SKIP_SANITIZED("packages are made of builds for users");
    need_programs("dpkg-deb dpkg-shlibdeps");
    struct ran r =
        must_shell("deb=$(\"$SRC/scripts/deb.sh\" \"$BENCH\" .) && dpkg-deb -f \"$deb\" && "
                   "dpkg-deb -x \"$deb\" x && find x -type f && x/usr/bin/bench --version");

    HAS(r.out.data, "Package: bench-attention\n", "Depends: ", "libhwloc15",
        "\nx/usr/share/man/man1/bench.1.gz\n", "\nbench ");
}

Test(install, python_module)
{
    need_programs("python3");
    shell_exits(0, "\nOK\n", "exec python3 \"$SRC/tests/contrib/test_bench.py\"");
}

/* `line` with a Python that has `module`, as $PY, and the library as $BENCHATTN; or skipped by name.
 * 77 to 79 are exit codes that say why. */
static void run_python(const char *module, const char *line)
{
    struct ran r =
        run_shell("export BENCHATTN=$(dirname \"$BENCH\")/libbenchattn.so.1; "
                  "[ -e \"$BENCHATTN\" ] || exit 77; "
                  "for PY in python3 /usr/bin/python3; do "
                  "\"$PY\" -c 'import numpy, %s' 2>/dev/null && { %s; exit; }; done; exit 78",
                  module, line);
    const int code = r.code;
    if (code < 77 || code > 79) {
        expect_exit(&r, 0);
        expect_said(&r, "\nOK\n");
    }
    if (code == 77)
        cr_skip_test("no libbenchattn.so.1 beside the program");
    if (code == 78)
        cr_skip_test("no python3 with numpy and %s", module);
    if (code == 79)
        cr_skip_test("pip cannot install setuptools here");
}

Test(install, library_for_numpy)
{
    run_python("ctypes", "\"$PY\" \"$SRC/tests/contrib/test_benchattn.py\" Structs Numbers Numpy");
}

#define TORCH "torch; torch.library.custom_op" /* since 2.4 */

Test(install, library_for_torch, .timeout = 600)
{
    run_python(TORCH, "\"$PY\" \"$SRC/tests/contrib/test_benchattn.py\" Torch");
}

Test(install, library_in_transformers, .timeout = 600)
{
    run_python(TORCH "; import transformers", "\"$PY\" \"$SRC/tests/contrib/test_adapters.py\"");
}

Test(install, library_beside_transformers, .timeout = 600)
{
    run_python(
        TORCH "; import transformers",
        "\"$PY\" \"$SRC/contrib/python/compare_transformers.py\" --tiny --rounds 2 >out.md && "
        "grep -q '^| Mamba-2 | generate | ' out.md && printf '\\nOK\\n' >&2");
}

/* The comparison that a reader runs. */
Test(install, library_beside_torch, .timeout = 600)
{
    run_python(TORCH,
               "\"$PY\" \"$SRC/contrib/python/compare_torch.py\" --tiny --rounds 2 >out.md && "
               "grep -q '^| soft cap | benchattn | ' out.md && grep -q '^| causal | composed | ' "
               "out.md && "
               "printf '\\nOK\\n' >&2");
}

/* A training with the attention replaced: the losses agree. */
Test(install, library_trains_in_torch)
{
    run_python(
        TORCH,
        "printf 'to be or not to be, that is the question' >text && "
        "\"$PY\" \"$SRC/contrib/python/train_torch.py\" text --setting tiny >out.md && "
        "[ \"$(sed -n 's/^| .* | \\([0-9.]*\\) |$/\\1/p' out.md | sort -u | wc -l)\" = 1 ] && "
        "[ \"$(grep -c '^| .* | [0-9.]* |$' out.md)\" = 2 ] && "
        "printf '\\nOK\\n' >&2");
}

/* What was installed finds the library that was installed beside it. */
Test(install, library_beside_its_module)
{
    run_python("ctypes",
               "DESTDIR=\"$PWD/d\" PREFIX=/opt/b \"$SRC/scripts/install.sh\" install \"$BENCH\" "
               "\"$BENCHATTN\" >/dev/null && unset BENCHATTN && mv d e && "
               "PYTHONPATH=e/opt/b/share/benchattn \"$PY\" -c '\n"
               "import sys, numpy as np, benchattn\n"
               "x = np.ones((1, 3, 2, 4), np.float32)\n"
               "good = (benchattn.attention(x, x, x, causal=True) == 1).all()\n"
               "good &= \"/e/opt/b/lib/\" in open(\"/proc/self/maps\").read()\n"
               "print(\"\\nOK\" if good else \"wrong\", file=sys.stderr)'");
}

/* What pip installs from the wheel tests itself, with the library that is inside; the sources are whole. */
Test(install, a_wheel)
{
    run_python(
        "pip",
        "PYTHON=$PY \"$SRC/scripts/wheel.sh\" \"$BENCHATTN\" d >said || { [ $? = 3 ] && exit 79; "
        "exit 1; }; "
        "unset BENCHATTN; \"$PY\" -m pip install -q --no-index --no-deps --target t d/*.whl && "
        "[ -e t/benchattn_adapters/transformers.py ] && "
        "PYTHONPATH=t \"$PY\" -m benchattn >said && cat said && grep -q '/t/benchattn/lib.*; OK "
        "in' said && "
        "tar xf d/*.tar.gz && cd benchattn-* && "
        "make -n library REQUIRED= INCDIRS= OPENBLAS_INC= >lines && grep -q "
        "'soname,libbenchattn.so.1' lines && "
        "printf '\\nOK\\n' >&2");
}
