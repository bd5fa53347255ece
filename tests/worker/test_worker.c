/* SPDX-License-Identifier: MIT
 *
 * The child's side of the protocol: it serves a whole conversation, answers nonsense with a
 * failure, and ends when its parent does. */
#include "harness/learn/score/score_child.h"
#include "harness/worker/reference.h"
#include "tests/support/command_line.h"
#include "tests/support/failure.h"
#include <sys/socket.h>
#include <sys/wait.h>

TestSuite(serve, .timeout = 240);

/* A child that serves the requests in `orders`, then sees the end of the input. Returns its exit
 * code; `said` holds all its answers. */
static int converse(const char *orders, char *said, size_t size)
{
    static const struct request *const requests[] = {&request_open, &request_place, &request_block,
                                                     &request_score, NULL};
    struct server s = {
        .requests = requests, .role = ROLE_NONE, .reference = -1, .protocol = {.patience_s = 10}};
    size_t n = 0;
    int ends[2], how = 0;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        s.protocol.fd = ends[0];
        _exit(serve(&s));
    }
    close(ends[0]);
    cr_assert_eq(write(ends[1], orders, strlen(orders)), (ssize_t)strlen(orders));
    shutdown(ends[1], SHUT_WR);
    for (ssize_t got; n + 1 < size && (got = read(ends[1], said + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = '\0';
    close(ends[1]);
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_assert(WIFEXITED(how), "the child died of signal %d", WTERMSIG(how));
    return WEXITSTATUS(how);
}

#define ONE_CASE                                                                                   \
    "--variant xl --backend ref --workload layer --seq 4 --mem 2 --d-model 16 --heads 2 "          \
    "--threads "                                                                                   \
    "1 --pin none"

static int count_lines(const char *text, const char *line)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, line)); at++)
        n += at == text || at[-1] == '\n';
    return n;
}

Test(serve, a_whole_conversation)
{
    char said[16384];

    cr_expect_eq(
        converse("open " ONE_CASE "\nplace\nblock 2 1\nblock 1 0\nclose\n", said, sizeof(said)), 0);
    cr_expect_eq(count_lines(said, PROTOCOL_HELLO "\n"), 1);
    cr_expect_eq(count_lines(said, "end\n"), 3, "%s", said);
    cr_expect_eq(count_lines(said, "sample "), 2, "%s", said);
    cr_expect_eq(count_lines(said, "fail "), 0, "%s", said);
}

Test(serve, a_child_answers_nonsense_with_a_failure)
{
    char said[16384], line[512];

    EACH_TEXT (order, "block", "block 0 1", "block many 1", "dance", "", "open x") {
        snprintf(line, sizeof(line), "open " ONE_CASE "\n%s\nplace\nblock 1 0\nclose\n", order);
        cr_expect_eq(converse(line, said, sizeof(said)), 0, "%s", order);
        cr_expect_eq(count_lines(said, "fail 6 unexpected request"), 1, "%s: %s", order, said);
        cr_expect_eq(count_lines(said, "sample "), 1, "%s goes on", order);
    }
}

Test(serve, a_child_refuses_what_is_no_case)
{
    char said[16384], line[512];

    EACH_TEXT (word, "dance", "", "open", "open --variant nothing", "open --seq 1..",
               "open --variant xl --backend ref --seq 4,8 --mem 0 --threads 1",
               "score --ckpt nothing --corpus nothing --seq 4 --mem 0 --backend ref --threads 1") {
        snprintf(line, sizeof(line), "%s\n", word);
        cr_expect_neq(converse(line, said, sizeof(said)), 0, "%s", word);
        cr_expect_eq(count_lines(said, "fail "), 1, "%s: %s", word, said);
        cr_expect_eq(count_lines(said, "end\n"), 0, "%s: %s", word, said);
    }
}

Test(serve, a_child_whose_parent_is_gone_ends)
{
    char said[16384];

    cr_expect_neq(converse("", said, sizeof(said)), 0);
    cr_expect_neq(converse("open " ONE_CASE "\nplace\n", said, sizeof(said)), 0);
    cr_expect_neq(converse("open " ONE_CASE "\nplace\nblo", said, sizeof(said)), 0);
}

/* Memory that the process took and released earlier is not the case's. */
Test(serve, memory_of_a_cell_in_a_process_that_had_more)
{
    enum { MUCH = 64 << 20 };
    struct worker s;
    char *const before = room(1, MUCH);

    memset(before, 1, MUCH);
    cr_expect_eq(before[MUCH - 1], 1);
    struct plan p = planned(ONE_CASE);
    MUST(worker_open(&s, &p.cases[0], ROLE_NONE, -1, NULL, &failure));
    MUST(worker_place(&s, &failure));
    worker_close(&s);
    cr_expect(s.report.rss_peak_bytes >= s.report.rss_before_bytes, "%g below %g",
              s.report.rss_peak_bytes, s.report.rss_before_bytes);
}

/* A reference is compared with itself: numbers that are none are not its expectation. */
Test(serve, a_reference_says_whether_it_is_finite)
{
    struct plan p = planned(ONE_CASE);
    for (int bad = 0; bad < 2; bad++) {
        const struct bench_case *const c = &p.cases[0];
        struct worker s;
        int file = -1;
        char detail[LINE_SIZE];
        MUST(reference_open(&file, &failure));
        MUST(worker_open(&s, c, ROLE_MAKE, file, NULL, &failure));
        if (bad) /* norms take the root of a negative number */
            s.job.config.ln_eps = -1e30f;
        MUST(worker_place(&s, &failure));
        cr_expect_eq(report_is_wrong(c, &s.report, detail), bad == 1);
        worker_close(&s);
        close(file);
    }
}

/* Every timed call of a cold block finds the caches swept: each byte that stands for a cache line
 * is written once before it. */
Test(serve, cold_blocks_sweep_before_every_call)
{
    enum { CALLS = 3 };
    struct worker s;
    struct sample x;

    struct plan p = planned(ONE_CASE " --cache cold");
    MUST(worker_open(&s, &p.cases[0], ROLE_NONE, -1, NULL, &failure));
    MUST(worker_place(&s, &failure));
    cr_assert(s.flush && s.flush_bytes >= 64);
    const size_t last = (s.flush_bytes - 1) / 64 * 64;
    const int first_was = s.flush[0], last_was = s.flush[last];
    MUST(worker_block(&s, CALLS, false, &x, &failure));
    NUMBERS({s.flush[0], first_was + CALLS}, {s.flush[last], last_was + CALLS});
    cr_expect(x.calls == CALLS && x.wall_ns > 0);
    worker_close(&s);
}

/* Each backend that provides row operations is named, once. */
Test(serve, rows_are_named_after_all_that_give_them)
{
    for (int b = 0; backends[b]; b++) {
        struct worker s;
        if (backend_usable(backends[b], NULL) != OK)
            continue;
        struct plan p =
            planned("-b %s -V xl -w layer --seq 4 --mem 2 --d-model 16 --heads 2 --threads 1 "
                    "--pin none",
                    backends[b]->name);
        MUST(worker_open(&s, &p.cases[0], ROLE_NONE, -1, NULL, &failure));
        const char *const *from = s.job.engine.provider;
        cr_expect(strncmp(s.report.rows_from, from[OP_softmax], strlen(from[OP_softmax])) == 0);
        HAS(s.report.rows_from, from[OP_norm], from[OP_gate]);
        cr_expect_eq(!strchr(s.report.rows_from, '+'), from[OP_softmax] == from[OP_norm] &&
                                                           from[OP_softmax] == from[OP_act] &&
                                                           from[OP_softmax] == from[OP_gate]);
        worker_close(&s);
    }
}
