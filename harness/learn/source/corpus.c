/* SPDX-License-Identifier: MIT
 *
 * Texts as mapped memory. */
#include "corpus.h"

#include "harness/util/fileio.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <xxhash.h>

enum { FEWEST = 2 }; /* bytes: one to read and one to predict */

static enum status map_text(struct corpus *c, const char *path, size_t max_bytes, struct err *e)
{
    struct stat info;
    enum status st = OK;
    const char *why;
    const int fd = file_open_regular(path, &why);

    if (fd < 0)
        return fail(e, E_IO, "text %s: cannot open: %s  -> give the path of a text", path, why);
    if (fstat(fd, &info) != 0) {
        st = fail(e, E_IO, "text %s: cannot open: %s  -> check the path", path, strerror(errno));
        goto out;
    }
    const size_t size = (size_t)info.st_size;
    if (size < FEWEST) {
        st = fail(e, E_IO, "text %s: %zu byte%s  -> give a text of %d bytes or more", path, size,
                  size == 1 ? "" : "s", FEWEST);
        goto out;
    }
    const size_t n = max_bytes > 0 && max_bytes < size ? max_bytes : size;
    void *map = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        st = fail(e, E_IO, "text %s: cannot map %zu bytes: %s  -> free some memory", path, n,
                  strerror(errno));
        goto out;
    }
    c->bytes = map;
    c->n = n;
out:
    close(fd);
    return st;
}

/* Anonymous memory, so that closing is the same for both kinds. */
static enum status generate(struct corpus *c, const char *text, enum split split, size_t max_bytes,
                            struct err *e)
{
    const size_t n = max_bytes > 0 ? max_bytes : SOURCE_TOKENS;

    TRY(synthetic_parse(&c->synthetic, text, e));
    void *map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return fail(e, E_NOMEM, "text %s: no memory for %zu symbols  -> lower --bytes", text, n);
    synthetic_fill(&c->synthetic, split, map, n);
    c->bytes = map;
    c->n = n;
    c->generated = true;
    c->vocab = synthetic_vocab(&c->synthetic);
    c->unit = "symbol";
    return OK;
}

enum status corpus_open(struct corpus *c, const char *path, enum split split, size_t max_bytes,
                        struct err *e)
{
    const bool generated = synthetic_named(path);

    *c = (struct corpus){.vocab = 256, .unit = "byte"};
    if (max_bytes > 0 && max_bytes < FEWEST)
        return fail(e, E_USAGE, "text %s: --bytes %zu is too few  -> use %d or more, or 0 for all",
                    path, max_bytes, FEWEST);
    TRY(generated ? generate(c, path, split, max_bytes, e) : map_text(c, path, max_bytes, e));
    c->name = strdup(generated ? path : path_name(path));
    if (!c->name) {
        corpus_close(c);
        return fail(e, E_NOMEM, "text %s: no memory for its name  -> free some memory", path);
    }
    snprintf(c->xxh3, sizeof(c->xxh3), "%016" PRIx64, (uint64_t)XXH3_64bits(c->bytes, c->n));
    return OK;
}

void answers_add(struct answers *a, double nll, double floor, double blind)
{
    a->nll += nll;
    a->floor += floor;
    a->blind += blind;
    a->tokens++;
}

struct answers answers_mean(struct answers a)
{
    a.nll /= a.tokens; /* 0 / 0 is NAN */
    a.floor /= a.tokens;
    a.blind /= a.tokens;
    return a;
}

void corpus_close(struct corpus *c)
{
    if (c->bytes)
        munmap((void *)c->bytes, c->n);
    free(c->name);
    *c = (struct corpus){0};
}
