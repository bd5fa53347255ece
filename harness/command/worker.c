/* SPDX-License-Identifier: MIT
 *
 * `bench worker SOCKET REFERENCE ROLE` (hidden): a child process. Its requests come as lines over
 * the file descriptor SOCKET (harness/worker/protocol.h). This is the list of all requests. */
#include "commands.h"

#include "child_requests.h"
#include "harness/learn/score/score_child.h"
#include "harness/worker/peak_child.h"

enum status cmd_worker(struct options *opt, int *code, struct err *e)
{
    static const struct request *const requests[] = {
        &request_open,  &request_place, &request_reference, &request_block,
        &request_score, &request_play,  &request_train,     &request_peaks,
        &request_rates, &request_check, &request_judge,     NULL};

    if (opt->words.n != 3) {
        *code = EXIT_BAD_USAGE;
        return OK;
    }
    struct server *const s = need_room(1, sizeof(*s));
    s->protocol.fd = atoi(opt->words.v[0]);
    s->requests = requests;
    s->reference = atoi(opt->words.v[1]);
    s->role = (enum role)atoi(opt->words.v[2]);
    *code = serve(s);
    free(s);
    return OK;
}
