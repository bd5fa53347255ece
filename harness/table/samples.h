/* SPDX-License-Identifier: MIT
 *
 * The stream of raw samples: one row of SAMPLE_COLUMNS per timed block, as CSV, plain or compressed
 * with zstd. Everything flushed is readable after a kill. */
#pragma once

#include "record.h"

/* Name of the stream's file; "" for none. */
extern const char *const raw_file[3];

/* Check that this build can write the format. zst without zstd is E_UNSUPPORTED if the user asked
 * for it; as a default it becomes csv, with one line in *note (NULL otherwise). */
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

/* Continue the stream that DIR has (RAW_NONE if it has none); a torn end is cut. zst gets a new
 * frame. */
enum status samples_resume(struct samples *s, const char *dir, struct err *e);

/* csv writes at once; zst every 64 rows, or at a flush. After a failed write a frame is incomplete,
 * so nothing more is written. */
enum status samples_write(struct samples *s, const struct sample_row *row, struct err *e);

/* Make everything written so far readable and durable: call after each group. */
enum status samples_flush(struct samples *s, struct err *e);

/* End the frame (not after a failed write: its whole blocks stay readable to a resume) and close.
 * Always releases. */
enum status samples_close(struct samples *s, struct err *e);

/* Does the run's folder have samples? */
bool samples_exist(const char *dir);

/* All samples of a run's folder. A torn end is an error, as in any table. */
enum status samples_read(struct rows *out, const char *dir, struct err *e);
