/* SPDX-License-Identifier: MIT
 *
 * What programs that are already compiled rely on: the symbols of the library, the layout of the
 * public structs, and that a struct of an older header is taken. */
#include "tests/support/program.h"
#include "variants/backends/library/inner.h"

TestSuite(library_abi, .timeout = 240);

/* `line` with the library in $LIB and its folder in $SRC, or a test that is skipped. */
static struct ran of_library(const char *line)
{
    struct ran r = run_shell(
        "SRC=$SRC/variants/backends/library; LIB=$(dirname \"$BENCH\")/libbenchattn.so.1; [ -e "
        "\"$LIB\" ] && command -v nm >/dev/null || exit 77; %s",
        line);
    if (r.code == 77)
        cr_skip_test("no libbenchattn.so.1 beside the program (make library), or no nm");
    return r;
}

/* The map, the header and the library name the same functions, and nothing else is seen. */
Test(library_abi, symbols_are_those_of_the_map)
{
    struct ran r = of_library(
        "map=$(grep -o 'ba_[a-z_]*;' \"$SRC/benchattn.map\" | tr -d ';' | sort); "
        "header=$(tr '\\n' ' ' <\"$SRC/benchattn.h\" | grep -oE 'BA_API [a-z][^(]*\\(' | "
        "    grep -oE 'ba_[a-z_]+\\(' | tr -d '(' | sort); "
        "got=$(nm -D --defined-only \"$LIB\" | awk '$2 != \"A\" { print $3 }' | "
        "    sed 's/@@BENCHATTN_1$//' | sort); "
        "printf '%s\\n' \"$got\"; [ \"$map\" = \"$got\" ] && [ \"$header\" = \"$got\" ]");

    expect_exit(&r, 0);
    cr_expect(strstr(r.out.data, "ba_attention_backward\n"), "%s", r.out.data);
}

/* arm64 names the CPU by a file of the kernel's. */
#ifdef __aarch64__
#define OPENS "open(at)?(64)?"
#else
#define OPENS "f?open(at)?(64)?"
#endif

/* Of the C library it has nothing that writes, ends the process (but abort, of CHECK), handles
 * signals or asks the environment. */
Test(library_abi, neither_writes_nor_exits)
{
    struct ran r = of_library(
        "nm -D --undefined-only \"$LIB\" | sed -E 's/^ *[A-Za-z] //; s/@.*//' | grep -xE "
        "'_?_?[a-z]*(exit|_Exit)|(__)?[fvd]*printf(_chk)?|f?puts|f?putc|putchar|f?write|perror|"
        "std(out|err)|" OPENS "|syslog|system|signal|sigaction|raise|kill|(secure_)?getenv|"
        "setenv|setlocale|rand|dlopen'");

    cr_expect_eq(r.code, 1, "%s", r.out.data);
}

/* Members are added at the end and never move. */
Test(library_abi, layout_of_version_1)
{
#define WHOLE(type, last, bytes)                                                                   \
    cr_expect_geq(sizeof(struct type), bytes, #type);                                              \
    cr_expect_eq(FIRST_SIZE(struct type, last), bytes, #type)
#define AT(type, member, bytes) cr_expect_eq(offsetof(struct type, member), bytes, #member)
    if (sizeof(void *) != 8)
        cr_skip_test("these are the layouts of 64 bits");
    WHOLE(ba_engine_options, reserved, 24);
    WHOLE(ba_stride, row, 16);
    WHOLE(ba_mask, rows, 80);
    AT(ba_mask, random_from, 56);
    AT(ba_mask, rect_rows, 80);
    WHOLE(ba_attention, texts, 400);
    AT(ba_attention, scale, 56);
    AT(ba_attention, q, 64);
    AT(ba_attention, o, 152);
    AT(ba_attention, u, 168);
    AT(ba_attention, sinks, 244);
    AT(ba_attention, add, 280);
    AT(ba_attention, soft_cap, 384);
    WHOLE(ba_attention_grad, d_sink_logit, 152);
    AT(ba_attention_grad, d_u, 48);
    AT(ba_attention_grad, d_add, 96);
    WHOLE(ba_rows, per, 40);
    WHOLE(ba_recurrence, den, 448);
    AT(ba_recurrence, q, 56);
    AT(ba_recurrence, u, 376);
    WHOLE(ba_recurrence_grad, d_z0, 112);
    WHOLE(ba_conv, cu_seqlens, 88);
    WHOLE(ba_conv_grad, d_s0, 56);
}

/* The members that a header of version 1 lacks are 0, and what it has is read. */
Test(library_abi, structs_of_older_versions)
{
    struct grown {
        size_t size;
        int first, second;
        void *added;
    };
    const size_t first_size = FIRST_SIZE(struct grown, second);
    struct grown old = {.size = first_size, .first = 1, .second = 2, .added = &old}, got;
    struct err e = {""};

    cr_expect_eq(take_struct(&got, sizeof(got), first_size, &old, "grown", &e), OK, "%s", e.msg);
    NUMBERS({got.first, 1}, {got.second, 2});
    cr_expect_null(got.added, "read beyond the caller's struct");
    old.size = sizeof(old);
    cr_expect_eq(take_struct(&got, sizeof(got), first_size, &old, "grown", &e), OK, "%s", e.msg);
    cr_expect_eq(got.added, &old);
    old.size = first_size - sizeof(void *);
    cr_expect_eq(take_struct(&got, sizeof(got), first_size, &old, "grown", &e), E_USAGE);
}
