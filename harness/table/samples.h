/* SPDX-License-Identifier: MIT
 *
 * The stream of raw samples: one row of SAMPLE_COLUMNS a timed block, as CSV, plain or compressed
 * with zstd. What was flushed is readable after a kill. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "harness/cli/options.h" /* enum raw */
#include "record.h"

/* Names of the stream's file; "" for none. */
extern const char *const raw_file[3];

/* What this build can do. zst without zstd is E_UNSUPPORTED where the user gave it, and becomes csv
 * with one line in *note (NULL otherwise) where it is only the default. */
enum status raw_choose(enum raw *raw, const char **note, enum raw wanted, bool given,
                       struct err *e);

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

/* Continue whatever stream DIR has (RAW_NONE where it has none); a torn end is cut. zst gets a new
 * frame. */
enum status samples_resume(struct samples *s, const char *dir, struct err *e);

/* csv writes at once; zst when 64 rows are together, or at a flush. After a failed write a frame
 * has lost a piece, so nothing more is written. */
enum status samples_write(struct samples *s, const struct sample_row *row, struct err *e);

/* Everything written so far becomes readable and reaches the disk: call after each group. */
enum status samples_flush(struct samples *s, struct err *e);

/* End the frame (not after a failed write: its whole blocks stay readable to a resume) and close;
 * releases everything in any case. */
enum status samples_close(struct samples *s, struct err *e);

/* All samples of a run's folder. A torn end is an error, as in any table. */
enum status samples_read(struct rows *out, const char *dir, struct err *e);

#endif
