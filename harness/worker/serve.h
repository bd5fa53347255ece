/* SPDX-License-Identifier: MIT
 *
 * The child's side of the protocol: it greets and serves requests from a table until "close".
 * Requests that need more than this folder are defined where their work is done. */
#pragma once

#include "worker.h"

struct request;

struct server {
    /* Set by whoever starts the server. */
    struct protocol protocol;
    const struct request *const *requests; /* NULL-terminated */
    const struct bench_case *bcase;        /* NULL after exec: rebuilt from the words of "open" */
    enum role role;
    int reference; /* file descriptor, see enum role */
    /* Private. */
    struct worker worker;
    bool opened;
    struct options opt;
    struct plan plan;
};

/* `words` is what follows the request's name in its line. The request writes its own answer; a
 * status other than OK is sent as "fail ...". */
struct request {
    const char *name;
    enum status (*obey)(struct server *s, const char *words, struct err *e);
};

/* Of a measuring child, in this order:
 *
 *   open REPRO            report                     pinned, engine open, arena counted
 *   place                 report                     placed, filled, checked
 *   reference SECONDS     report                     likewise; writes rows of its output, as many
 *                                                    as take so long (0 = all)
 *   block CALLS PRIME     sample WALL CPU SWITCHES
 */
extern const struct request request_open, request_place, request_reference, request_block;
extern const struct request *const measuring_requests[];

/* Serve until "close", which is answered with the last report. Returns the exit code. Failures are
 * sent to the parent; only a broken socket ends it early. */
int serve(struct server *s);
