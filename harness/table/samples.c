/* SPDX-License-Identifier: MIT
 *
 * Raw samples to disk. The zst form is a sequence of zstd frames, one for each start or resumption
 * of a run; a flush ends a block inside the frame, so that a killed run's frame can be decompressed
 * up to its last flush. */
#include "samples.h"

#if HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

enum { FLUSH_ROWS = 64 };

const char *const raw_file[] = {
    [RAW_NONE] = "", [RAW_CSV] = "samples.csv", [RAW_ZST] = "samples.csv.zst"};
static const struct table *const table = &tables[TABLE_SAMPLES];

static enum status zst_missing(struct err *e)
{
    return fail(e, E_UNSUPPORTED,
                "zstd was not built in  -> install libzstd-dev and run make again, or --raw csv");
}

/* What a piece of the stream ends. */
enum zst_then { GO_ON, FLUSH, END };

#if HAVE_ZSTD
enum { LEVEL = 3 };

static enum status zst_fail(struct err *e, const char *path, size_t code)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
        return fail(e, E_NOMEM, "no memory to read or write %s", path);
    return fail(e, E_IO, "%s is damaged (zstd: %s)  -> restore it or use another run", path,
                ZSTD_getErrorName(code));
}

static enum status zst_open(struct samples *s, struct err *e)
{
    s->zst = ZSTD_createCCtx();
    s->room_bytes = ZSTD_CStreamOutSize();
    s->room = malloc(s->room_bytes);
    if (!s->zst || !s->room)
        return fail(e, E_NOMEM, "no memory for the compressor of %s", s->out.path);
    ZSTD_CCtx_setParameter(s->zst, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(s->zst, ZSTD_c_checksumFlag, 1);
    return OK;
}

static enum status zst_put(struct samples *s, const char *data, size_t n, enum zst_then then,
                           struct err *e)
{
    static const ZSTD_EndDirective means[] = {
        [GO_ON] = ZSTD_e_continue, [FLUSH] = ZSTD_e_flush, [END] = ZSTD_e_end};
    const ZSTD_EndDirective how = means[then];
    ZSTD_inBuffer in = {data, n, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {s->room, s->room_bytes, 0};
        left = ZSTD_compressStream2(s->zst, &out, &in, how);
        if (ZSTD_isError(left))
            return zst_fail(e, s->out.path, left);
        if (out.pos > 0)
            append_write(&s->out, s->room, out.pos);
    } while (then == GO_ON ? in.pos < in.size : left > 0);
    return append_status(&s->out, e);
}

static void zst_free(struct samples *s)
{
    ZSTD_freeCCtx(s->zst);
    free(s->room);
}

/* Compress into one whole frame. */
static enum status zst_pack(struct bytes *out, const char *data, size_t n, struct err *e)
{
    const size_t room = ZSTD_compressBound(n);
    *out = (struct bytes){malloc(room), 0};
    if (!out->data)
        return fail(e, E_NOMEM, "no memory for %zu bytes of samples", room);
    out->n = ZSTD_compress(out->data, room, data, n, LEVEL);
    if (ZSTD_isError(out->n)) {
        free(out->data);
        *out = (struct bytes){0};
        return fail(e, E_NOMEM, "no memory to pack %zu bytes of samples", n);
    }
    return OK;
}

/* Decompress all frames; *torn: the last one is incomplete, *out is what it holds so far. */
static enum status zst_unpack(struct bytes *out, bool *torn, const char *path,
                              const struct bytes *file, struct err *e)
{
    const size_t room = ZSTD_DStreamOutSize();
    ZSTD_inBuffer in = {file->data, file->n, 0};
    ZSTD_outBuffer to = {malloc(room), room, 0};
    ZSTD_DCtx *d = ZSTD_createDCtx();
    size_t left = 1;
    FILE *const f = bytes_open(out, e);

    if (!d || !to.dst || !f) {
        if (f)
            fclose(f);
        ZSTD_freeDCtx(d);
        free(to.dst);
        return fail(e, E_NOMEM, "no memory to read %s", path);
    }
    /* If the output is full, more may follow without new input. */
    for (bool full = false; (in.pos < in.size || full) && !ZSTD_isError(left);) {
        to.pos = 0;
        left = ZSTD_decompressStream(d, &to, &in);
        fwrite(to.dst, 1, to.pos, f);
        full = to.pos == to.size && left > 0;
    }
    ZSTD_freeDCtx(d);
    free(to.dst);
    *torn = left > 0;
    enum status st = bytes_close(f, out, e);
    if (st == OK && ZSTD_isError(left)) {
        free(out->data);
        *out = (struct bytes){0};
        st = zst_fail(e, path, left);
    }
    return st;
}
#else
static enum status zst_open(struct samples *s, struct err *e) { return zst_missing(e); }
static enum status zst_put(struct samples *s, const char *data, size_t n, enum zst_then then,
                           struct err *e)
{
    return zst_missing(e);
}
static void zst_free(struct samples *s) { (void)s; }
static enum status zst_pack(struct bytes *out, const char *data, size_t n, struct err *e)
{
    return zst_missing(e);
}
static enum status zst_unpack(struct bytes *out, bool *torn, const char *path,
                              const struct bytes *file, struct err *e)
{
    return zst_missing(e);
}
#endif

enum status raw_choose(enum raw *raw, const char **note, enum raw wanted, bool given, struct err *e)
{
    *note = NULL;
    *raw = wanted;
    if (wanted != RAW_ZST || HAVE_ZSTD)
        return OK;
    if (given)
        return zst_missing(e);
    *raw = RAW_CSV;
    *note = "zstd was not built in: raw samples go to samples.csv";
    return OK;
}

/* Write the header (row NULL) or a row to the stream. */
static enum status put_line(struct samples *s, const struct sample_row *row, struct err *e)
{
    struct bytes line;
    enum status st;

    table_bytes(&line, table, row);
    if (s->raw == RAW_ZST) {
        st = zst_put(s, line.data, line.n, GO_ON, e);
    } else {
        append_write(&s->out, line.data, line.n);
        st = append_status(&s->out, e);
    }
    free(line.data);
    return st;
}

/* Open the file, and a frame in it. */
static enum status begin(struct samples *s, const char *dir, bool create, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, dir, raw_file[s->raw], e));
    TRY(append_open(&s->out, path, create, e));
    if (s->raw == RAW_ZST)
        TRY(zst_open(s, e));
    if (s->out.end > 0)
        return OK;
    TRY(put_line(s, NULL, e));
    return samples_flush(s, e);
}

/* After a failure it has nothing open. */
static enum status start(struct samples *s, const char *dir, enum raw raw, bool create,
                         struct err *e)
{
    *s = (struct samples){.raw = raw, .out = {.fd = -1}};
    const enum status st = raw == RAW_NONE ? OK : begin(s, dir, create, e);
    if (st != OK) {
        zst_free(s);
        append_close(&s->out, NULL);
        *s = (struct samples){.out = {.fd = -1}};
    }
    return st;
}

enum status samples_create(struct samples *s, const char *dir, enum raw raw, struct err *e)
{
    return start(s, dir, raw, true, e);
}

static enum raw raw_of(const char *dir, char path[FILE_PATH])
{
    for (int i = RAW_CSV; i <= RAW_ZST; i++)
        if (file_join(path, dir, raw_file[i], NULL) == OK && access(path, F_OK) == 0)
            return (enum raw)i;
    return RAW_NONE;
}

/* The text of a stream; *torn: its last frame is incomplete. */
static enum status load(struct bytes *text, bool *torn, enum raw raw, const char *path,
                        struct err *e)
{
    struct bytes file;

    *torn = false;
    *text = (struct bytes){0};
    TRY(file_read(&file, path, e));
    if (raw == RAW_CSV) {
        *text = file;
        return OK;
    }
    const enum status st = zst_unpack(text, torn, path, &file, e);
    free(file.data);
    return st;
}

/* Cut the text's torn end: a torn frame is packed anew up to its last whole line. */
static enum status cut_end(const char *path, enum raw raw, const struct bytes *text, bool torn,
                           struct err *e)
{
    const size_t whole = csv_whole(text->data, text->n);
    struct bytes frame;
    struct rows rows;

    if (whole > 0) { /* damage in the middle is not a torn end */
        TRY(csv_rows(&rows, table, path, text->data, whole, e));
        rows_free(&rows);
    }
    if (!torn && whole == text->n)
        return OK;
    if (raw != RAW_ZST || whole == 0)
        return file_replace(path, text->data, whole, e);
    TRY(zst_pack(&frame, text->data, whole, e));
    const enum status st = file_replace(path, frame.data, frame.n, e);
    free(frame.data);
    return st;
}

static enum status repair(const char *path, enum raw raw, struct err *e)
{
    struct bytes text;
    bool torn;

    TRY(load(&text, &torn, raw, path, e));
    const enum status st = cut_end(path, raw, &text, torn, e);
    free(text.data);
    return st;
}

enum status samples_resume(struct samples *s, const char *dir, struct err *e)
{
    char path[FILE_PATH];
    const enum raw raw = raw_of(dir, path);

    *s = (struct samples){.out = {.fd = -1}};
    if (raw != RAW_NONE)
        TRY(repair(path, raw, e));
    return start(s, dir, raw, false, e);
}

enum status samples_write(struct samples *s, const struct sample_row *row, struct err *e)
{
    if (s->raw == RAW_NONE)
        return OK;
    TRY(put_line(s, row, e));
    if (s->raw != RAW_ZST || ++s->pending < FLUSH_ROWS)
        return OK;
    s->pending = 0;
    return zst_put(s, NULL, 0, FLUSH, e);
}

enum status samples_flush(struct samples *s, struct err *e)
{
    enum status st = OK;
    if (s->raw == RAW_NONE)
        return OK;
    s->pending = 0;
    if (s->raw == RAW_ZST)
        st = zst_put(s, NULL, 0, FLUSH, e);
    append_sync(&s->out);
    return st == OK ? append_status(&s->out, e) : st;
}

enum status samples_close(struct samples *s, struct err *e)
{
    enum status st = OK;
    if (s->out.fd >= 0 && s->raw == RAW_ZST && s->out.st == OK)
        st = zst_put(s, NULL, 0, END, e);
    if (s->out.fd >= 0)
        append_sync(&s->out);
    zst_free(s);
    const enum status closed = append_close(&s->out, st == OK ? e : NULL);
    *s = (struct samples){.out = {.fd = -1}};
    return st == OK ? closed : st;
}

bool samples_exist(const char *dir)
{
    char path[FILE_PATH];

    return raw_of(dir, path) != RAW_NONE;
}

enum status samples_read(struct rows *out, const char *dir, struct err *e)
{
    char path[FILE_PATH];
    struct bytes text;
    bool torn;
    const enum raw raw = raw_of(dir, path);

    *out = (struct rows){0};
    if (raw == RAW_NONE)
        return fail(e, E_IO, "%s has no raw samples  -> run again with --raw zst or csv", dir);
    enum status st;
    TRY(load(&text, &torn, raw, path, e));
    if (torn)
        st = fail(e, E_IO, "%s: the last frame is incomplete  -> repair it with --resume", path);
    else
        st = csv_rows(out, table, path, text.data, text.n, e);
    free(text.data);
    return st;
}
