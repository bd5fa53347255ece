/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: a run's folder with any bytes in its files, read by what reads runs: comparing,
 * ranking, figures. The input is the files one after the other, each behind a line "== NAME". */
#include "harness/compare/compare.h"
#include "harness/figure/figure.h"
#include "harness/measure/ranking.h"
#include "harness/table/runjson.h"
#include "structure.h"

#include <unistd.h>

static const char *const names[] = {"latency.csv", "memory.csv",  "perplexity.csv",
                                    "env.csv",     "samples.csv", "run.json"};

static void remove_files(void)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)unlink(fuzz_path(names[i]));
}

static void clean(void)
{
    remove_files();
    (void)rmdir(fuzz_folder());
}

static void write_files(const char *text, size_t size)
{
    FILE *f = NULL;

    for (size_t at = 0; at < size;) {
        const char *const end = memchr(text + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - text) + 1 - at : size - at;
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            const size_t length = strlen(names[i]);
            if (n == length + 4 && memcmp(text + at, "== ", 3) == 0 &&
                memcmp(text + at + 3, names[i], length) == 0) {
                if (f)
                    fclose(f);
                f = fopen(fuzz_path(names[i]), "w");
                at += n;
                break;
            }
            if (i + 1 == ARRAY_LEN(names)) {
                if (f)
                    fwrite(text + at, 1, n, f);
                at += n;
            }
        }
    }
    if (f)
        fclose(f);
}

static void use(void)
{
    const char *const folder = fuzz_folder();
    static const char *const axes[] = {"variant", "backend", "seq"};
    struct plot_data data = {0};
    struct run run;
    struct err e;
    char *options = NULL, started[TEXT_SIZE];

    if (run_read(&run, folder, &e) == OK) {
        struct comparisons c = {0};
        compare_runs(&c, &run, &run, 0.05, 1);
        comparisons_free(&c);
        for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
            c = (struct comparisons){0};
            (void)compare_axis(&c, &run, axes[i], NULL, 0.05, 1, &e);
            comparisons_free(&c);
        }
        for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS; what++) {
            struct rankings r = rankings_make(&run, what);
            char *text = NULL;
            size_t size;
            FILE *const f = open_memstream(&text, &size);
            rankings_print(f, &r, what, 80, false);
            fclose(f);
            free(text);
            rankings_free(&r);
        }
        run_free(&run);
    }
    if (plot_read(&data, folder, &e) == OK)
        for (int i = 0; i < figure_count; i++) {
            struct plot p = {0};
            (void)plot_make(&p, &figures[i], &data, &e);
            plot_free(&p);
        }
    plot_data_free(&data);
    (void)runjson_read(folder, &options, started, &e);
    free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static bool made;

    if (!made)
        atexit(clean);
    made = true;
    remove_files();
    write_files((const char *)bytes, size);
    use();
    return 0;
}
