/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes, read as a table of the kind that the first byte names. What is
 * accepted, written and read again must give the same bytes. */
#include "harness/table/record.h"
#include "structure.h"

/* The rows as a file has them. */
static char *print(const struct table *t, const struct rows *rows, size_t *size)
{
    char *text = NULL;
    FILE *const f = open_memstream(&text, size);
    struct bytes line;

    CHECK(f);
    table_bytes(&line, t, NULL);
    fwrite(line.data, 1, line.n, f);
    free(line.data);
    for (size_t i = 0; i < rows->n; i++) {
        table_bytes(&line, t, (const char *)rows->row + i * t->row_size);
        fwrite(line.data, 1, line.n, f);
        free(line.data);
    }
    CHECK(fclose(f) == 0);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct rows rows, again;
    struct err e = {""};

    if (size == 0)
        return 0;
    const struct table *t = &tables[bytes[0] % (TABLE_SAMPLES + 1)];
    if (csv_rows(&rows, t, "FILE", (const char *)bytes + 1, size - 1, &e) != OK) {
        CHECK(strstr(e.msg, "FILE") && !strpbrk(e.msg, "\n\r\033"));
        return 0;
    }
    size_t n, n_again;
    char *const text = print(t, &rows, &n);
    CHECK(csv_rows(&again, t, "FILE", text, n, &e) == OK && again.n == rows.n);
    char *const second = print(t, &again, &n_again);
    CHECK(n == n_again && memcmp(text, second, n) == 0);
    free(text);
    free(second);
    rows_free(&rows);
    rows_free(&again);
    return 0;
}
