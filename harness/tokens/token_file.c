/* SPDX-License-Identifier: MIT
 *
 * Reading files of ids. Formats: NEP 1 (.npy), and dev/data/data_common.py of llm.c. */
#include "token_file.h"

#include "harness/util/grow.h"

/* Where the ids of a file lie, and what one of them is. */
struct layout {
    size_t at, n; /* bytes before the first; ids */
    int width;    /* bytes of one */
    bool is_signed;
};

static enum status bad(const char *path, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static enum status bad(const char *path, struct err *e, const char *fmt, ...)
{
    char what[sizeof(e->msg)];

    VPRINT(what, sizeof(what), fmt);
    return fail(e, E_IO, "tokens %s: %s", path, what);
}

static uint64_t number_at(const struct bytes *f, size_t at, int width)
{
    uint64_t value = 0;

    for (int i = width - 1; i >= 0; i--)
        value = value << 8 | (unsigned char)f->data[at + (size_t)i];
    return value;
}

/* ---- .npy --------------------------------------------------------------------------------- */

/* What follows 'name': in the header, a dictionary as Python writes it; NULL = no such key. */
static const char *value_of(const char *header, const char *name)
{
    char key[32];

    snprintf(key, sizeof(key), "'%s':", name);
    const char *const found = strstr(header, key);
    return found ? found + strlen(key) + strspn(found + strlen(key), " ") : NULL;
}

/* The type: order of bytes, kind, width. */
static bool read_descr(struct layout *l, const char *descr)
{
    static const struct {
        const char *descr;
        int width;
        bool is_signed;
    } types[] = {
        {"'|u1'", 1, false}, {"'<u2'", 2, false}, {"'<u4'", 4, false}, {"'<u8'", 8, false},
        {"'|i1'", 1, true},  {"'<i2'", 2, true},  {"'<i4'", 4, true},  {"'<i8'", 8, true},
    };

    for (size_t i = 0; descr && i < ARRAY_LEN(types); i++)
        if (strncmp(descr, types[i].descr, strlen(types[i].descr)) == 0) {
            l->width = types[i].width;
            l->is_signed = types[i].is_signed;
            return true;
        }
    return false;
}

/* Type and shape of a header. */
static enum status read_header(struct layout *l, const char *header, const char *path,
                               struct err *e)
{
    const char *const descr = value_of(header, "descr"), *const shape = value_of(header, "shape");
    char *end = NULL;

    if (!read_descr(l, descr))
        return bad(path, e, ".npy of %.16s  -> integers, little-endian", descr ? descr : "no type");
    if (shape && *shape == '(')
        l->n = (size_t)strtoull(shape + 1, &end, 10);
    if (!end || end == shape + 1 || *end != ',' || end[1 + strspn(end + 1, " ")] != ')')
        return bad(path, e, ".npy of shape %.24s  -> one row of ids, ids.ravel()",
                   shape ? shape : "nothing");
    return OK;
}

static enum status read_npy(struct layout *l, const struct bytes *f, const char *path,
                            struct err *e)
{
    const int version = f->n > 6 ? f->data[6] : 0, size = version > 1 ? 4 : 2;
    const size_t from = 8 + (size_t)size; /* behind the header's length */
    const size_t length = f->n > from ? (size_t)number_at(f, 8, size) : 0;

    if (version < 1 || version > 3 || length == 0 || length > f->n - from)
        return bad(path, e, ".npy with a header that is not known  -> numpy.save of one array");
    char *const header = strndup(f->data + from, length);
    if (!header)
        return fail(e, E_NOMEM, "tokens %s: no memory for its header", path);
    const enum status st = read_header(l, header, path, e);
    free(header);
    l->at = from + length;
    return st;
}

/* ---- llm.c -------------------------------------------------------------------------------- */

enum { LLMC_HEADER = 256 * 4 };
static const struct {
    uint32_t magic, version;
    int width;
} llmc[] = {{20240520, 1, 2}, {20240801, 7, 4}};

/* Index in llmc; -1 = another file. */
static int llmc_kind(const struct bytes *f)
{
    for (int i = 0; i < (int)ARRAY_LEN(llmc); i++)
        if (f->n >= LLMC_HEADER && number_at(f, 0, 4) == llmc[i].magic)
            return i;
    return -1;
}

static enum status read_llmc(struct layout *l, const struct bytes *f, int kind, const char *path,
                             struct err *e)
{
    const unsigned version = (unsigned)number_at(f, 4, 4);

    if (version != llmc[kind].version)
        return bad(path, e, "llm.c's version %u: not supported  -> version %u", version,
                   llmc[kind].version);
    *l = (struct layout){LLMC_HEADER, (size_t)number_at(f, 8, 4), llmc[kind].width, false};
    return OK;
}

/* ---- bare ids ----------------------------------------------------------------------------- */

/* Is every second word of 32 bits 0, as those of int64 are? */
static bool looks_int64(const struct bytes *f)
{
    if (f->n % 8)
        return false;
    for (size_t at = 4; at < f->n; at += 8)
        if (number_at(f, at, 4))
            return false;
    return true;
}

static enum status read_bare(struct layout *l, const struct bytes *f, enum id_type type,
                             const char *path, struct err *e)
{
    static const struct layout of[] = {[ID_AUTO] = {.width = 4, .is_signed = true},
                                       [ID_UINT16] = {.width = 2},
                                       [ID_INT32] = {.width = 4, .is_signed = true},
                                       [ID_UINT32] = {.width = 4},
                                       [ID_INT64] = {.width = 8, .is_signed = true}};

    *l = of[type];
    l->n = f->n / (size_t)l->width;
    if (type == ID_AUTO && looks_int64(f))
        return bad(path, e,
                   "every second id would be 0: these are 64 bits wide?  -> --tokens-type int64 "
                   "(or int32, if they are not)");
    if (f->n % (size_t)l->width)
        return bad(path, e, "%zu bytes are not ids of %d bytes each  -> another --tokens-type",
                   f->n, l->width);
    return OK;
}

/* ------------------------------------------------------------------------------------------- */

static enum status read_layout(struct layout *l, const struct bytes *f, enum id_type type,
                               const char *path, struct err *e)
{
    const bool npy = f->n >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0;
    const int kind = llmc_kind(f);

    TRY(npy         ? read_npy(l, f, path, e)
        : kind >= 0 ? read_llmc(l, f, kind, path, e)
                    : read_bare(l, f, type, path, e));

    if (type != ID_AUTO && (npy || kind >= 0))
        return fail(e, E_USAGE,
                    "tokens %s: its header says of which type they are  -> leave out --tokens-type",
                    path);
    if (l->n > f->n || l->at + l->n * (size_t)l->width != f->n)
        return bad(path, e,
                   "its header says %zu ids of %d bytes, %zu bytes follow  -> a whole file", l->n,
                   l->width, f->n - l->at);
    if (l->n < 2)
        return bad(path, e, "%zu bytes  -> 2 ids or more", f->n);
    return OK;
}

enum status token_file_read(struct ids *out, const char *path, enum id_type type, struct err *e)
{
    struct bytes f = {0};
    struct layout l = {0};
    enum status st = file_read(&f, path, e);

    if (st == OK)
        st = read_layout(&l, &f, type, path, e);
    for (size_t i = 0; st == OK && i < l.n; i++) {
        const uint64_t value = number_at(&f, l.at + i * (size_t)l.width, l.width);
        const int shift = 64 - 8 * l.width;
        const int64_t id = (int64_t)(value << shift) >> shift; /* with its sign */
        const bool negative = l.is_signed && id < 0;
        if (negative || value > INT32_MAX) {
            char shown[24];
            snprintf(shown, sizeof(shown), negative ? "%lld" : "%llu",
                     negative ? (long long)id : (long long)value);
            st = bad(path, e, "id %s at place %zu (from 0) is none  -> %s", shown, i,
                     l.at ? "ids of 0 or more" : "another --tokens-type; nanoGPT writes uint16");
        } else if ((st = GROW(out->v, out->n, e)) == OK) {
            out->v[out->n++] = (int32_t)value;
        }
    }
    free(f.data);
    return st;
}

bool token_file_looks_uint16(const int32_t *ids, size_t n, int vocab)
{
    for (size_t i = 0; i < n; i++)
        if ((ids[i] & 0xffff) >= vocab || ids[i] >> 16 >= vocab)
            return false;
    return true;
}
