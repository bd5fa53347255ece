/* SPDX-License-Identifier: MIT
 *
 * Files that must survive a kill and a full disk: whole-file reads, atomic replacement, and
 * appending in pieces that are there whole or not at all. Independent of the contents. */
#pragma once

#include "variants/base/base.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_PATH = 4096 };

struct bytes {
    char *data; /* malloc'ed; a NUL follows the n bytes */
    size_t n;
};

/* E_IO: "cannot VERB PATH: why  -> what to do", from an errno value. */
enum status file_fail(struct err *e, const char *verb, const char *path, int error);

/* dst = dir/name; E_IO where that is longer than FILE_PATH. */
enum status file_join(char dst[FILE_PATH], const char *dir, const char *name, struct err *e);

/* A stream that writes into memory; NULL with E_NOMEM. */
FILE *bytes_open(struct bytes *out, struct err *e);

/* Close the stream: *out is what was written. E_NOMEM, and an empty *out, if it did not fit. */
enum status bytes_close(FILE *f, struct bytes *out, struct err *e);

/* The same for a small text, which the end returns. */
FILE *bytes_begin(struct bytes *out);
char *bytes_end(FILE *f, struct bytes *out);

/* A file to read from the start, -1 if there is none; *why says why not. Never waits: pipes,
 * devices and folders are refused. */
int file_open_regular(const char *path, const char **why);

enum status file_read(struct bytes *out, const char *path, struct err *e);

/* Of a small file, such as one of /proc: what follows `key` and blanks or ':' in the first line that
 * begins with it; the whole first line if it is "". False, and "", if there is none. */
bool file_key(const char *path, const char *key, char *buf, size_t size);

bool file_is_folder(const char *path);

/* The folder that a file is in, as its path says it: "." without one. */
void file_parent(char dir[FILE_PATH], const char *path);

/* E_IO unless `path` is a regular file, or nothing yet: a device or a pipe is not to become a file.
 */
enum status file_may_replace(const char *path, struct err *e);

/* Write beside PATH (variants/base/half.h), sync, rename over it, sync the folder: readers see the old
 * bytes or the new. */
enum status file_replace(const char *path, const void *data, size_t n, struct err *e);

/* A copy of a file, as file_replace writes it; of the file of that name in another folder. */
enum status file_copy(const char *from, const char *to, struct err *e);
enum status file_copy_into(const char *to, const char *from, const char *name, struct err *e);

/* Make a folder, unless there is one. */
enum status file_make_folder(const char *path, struct err *e);

/* Make changes to the names in a folder durable. */
enum status file_sync_dir(const char *dir, struct err *e);
enum status file_sync_parent(const char *path, struct err *e);

/* Rename over what may be there, durably. */
enum status file_move(const char *from, const char *to, struct err *e);

/* Flush a stream and report any error on it since it was opened or last reported (stdout on a full
 * disk). */
enum status file_flush(FILE *f, const char *name, struct err *e);

/* Has the reader of this pipe closed it? `| head` does so when it has seen enough: no error. */
bool file_reader_gone(int fd);

/* Keeps its first error and does nothing afterwards, so the caller may check once, at the end. */
struct appender {
    int fd;    /* -1: closed */
    off_t end; /* bytes of the file after the last whole piece */
    char path[FILE_PATH];
    enum status st; /* of the first fault */
    struct err why;
};

/* create: the file must not exist yet; otherwise it must exist. */
enum status append_open(struct appender *a, const char *path, bool create, struct err *e);

/* One write(2). A partly written piece is cut off again and E_IO names the file. */
void append_write(struct appender *a, const void *data, size_t n);
void append_cut(struct appender *a, off_t end); /* drop everything from byte `end` on */
void append_sync(struct appender *a);           /* fdatasync */

/* OK or the first error. */
enum status append_status(const struct appender *a, struct err *e);
enum status append_close(struct appender *a, struct err *e);
