/* SPDX-License-Identifier: MIT
 *
 * JSON: what is wrong, and what is want of memory, which loses nothing silently. */
#include "tests/support/kept.h"
#include "tests/support/sanitized.h"
#include "variants/base/json_text.h"

#include <sys/resource.h>

Test(json_text, tells_wrong_text_from_right)
{
    json_error_t why;
    json_t *const json = json_read("{\"a\": \"b\"}", 10, 0, &why);

    cr_assert_not_null(json);
    cr_expect_str_eq(json_string_value(json_object_get(json, "a")), "b");
    cr_expect_eq(errno, 0);
    json_decref(json);
    cr_expect_null(json_read("{\"a\": \"b}", 9, 0, &why));
    cr_expect_eq(errno, 0);
}

/* No more than `more` bytes besides what the process has. */
static void limit_memory(size_t more)
{
    FILE *const f = fopen("/proc/self/statm", "r");
    size_t pages;

    cr_assert(f && fscanf(f, "%zu", &pages) == 1); // NOLINT: a number of the kernel's
    fclose(f);
    const rlim_t all = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){all, all}), 0);
}

/* A text of so many bytes with its quotes; the buffer that it needs doubles as it grows. */
enum { LONG = 64 << 20, ROOM = 32 << 20 };
static char *long_text(char c)
{
    char *const text = room(1, LONG + 1);

    memset(text, c, LONG);
    text[0] = text[LONG - 1] = '"';
    text[LONG] = '\0';
    return text;
}

/* Pairs of backslashes, of which half a pair is left. */
Test(json_text, reads_no_string_that_memory_does_not_hold)
{
    json_error_t why;

    SKIP_SANITIZED("the sanitizers take memory of their own");
    char *const text = long_text('\\');
    limit_memory(ROOM);
    cr_expect_null(json_read(text, LONG, JSON_DECODE_ANY, &why));
    cr_expect_eq(errno, ENOMEM);
    json_t *const json = json_read("[1]", 3, 0, &why);
    cr_expect(json_is_array(json), "it reads on");
    json_decref(json);
}

Test(json_text, writes_no_object_without_its_keys)
{
    SKIP_SANITIZED("the sanitizers take memory of their own");
    char *const key = long_text('a');
    json_t *const json = json_object();
    cr_assert_eq(json_object_set_new(json, key, json_integer(1)), 0);
    limit_memory(ROOM);
    cr_expect_null(json_write(json, 0));
    char *const text = kept(json_write(json_object_get(json, key), JSON_ENCODE_ANY));
    cr_expect_str_eq(text, "1");
    json_decref(json);
}
