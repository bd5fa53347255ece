/* SPDX-License-Identifier: MIT
 *
 * The stream of raw samples: one row of SAMPLE_COLUMNS a timed block, as CSV, plain or compressed
 * with zstd. What was flushed is readable after a kill. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "record.h"

enum raw { RAW_NONE, RAW_CSV, RAW_ZST, RAW_COUNT };
extern const char *const raw_name[RAW_COUNT]; /* "none" "csv" "zst": the words of --raw */
extern const char *const raw_file[RAW_COUNT]; /* "" "samples.csv" "samples.csv.zst" */

/* From the word of --raw. NULL is the default: zst, or csv with one line in *note (NULL otherwise)
 * where this build has no zstd. E_USAGE for another word, E_UNSUPPORTED for zst without zstd. */
enum status raw_choose(enum raw *raw, const char **note, const char *word, struct err *e);

struct ZSTD_CCtx_s;
struct samples {
    enum raw raw;
    struct appender out;
    struct ZSTD_CCtx_s *zst;
    void *room; /* the compressor's output, room_bytes */
    size_t room_bytes;
    int pending; /* rows since the last flush of the compressor */
};

enum status samples_create(struct samples *s, const char *dir, enum raw raw, struct err *e);

/* Continue whatever stream DIR has (RAW_NONE where it has none): a torn end is cut, and rows for
 * which `drop` (may be NULL) says so are removed. zst gets a new frame. */
enum status samples_resume(struct samples *s, const char *dir, drop_fn *drop, void *arg,
                           struct err *e);

/* csv writes at once; zst when 64 rows are together, or at a flush. */
enum status samples_write(struct samples *s, const struct sample_row *row, struct err *e);

/* Everything written so far becomes readable and reaches the disk: call after each group. */
enum status samples_flush(struct samples *s, struct err *e);

/* End the frame and close; releases everything in any case. */
enum status samples_close(struct samples *s, struct err *e);

/* All samples of a run's folder. A torn end is an error, as in any table. */
enum status samples_read(struct rows *out, const char *dir, struct err *e);

#endif
