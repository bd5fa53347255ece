/* SPDX-License-Identifier: MIT
 *
 * The files of `bench plot`, its messages, and what it refuses. */
#include "tests/support/program.h"
#include "tests/support/run_folder.h"
#include "tests/support/words.h"

TestSuite(plot_files, .init = folder_make, .fini = folder_remove, .timeout = 100);

/* Two backends, two lengths; hostile names where a user's table may have them. */
static void make_run(void)
{
    static const struct made_case cases[] = {
        {"first", "one", "1111", 128, 1000},
        {"first", "one", "2222", 256, 4000},
        {"a,b<i>\"q'", "two", "3333", 128, 1500},
        {"a,b<i>\"q'", "two", "4444", 256, 6000},
    };

    made_cases("run", "CPU", cases, ARRAY_LEN(cases));
}

static void make_run_to_draw(void)
{
    need_programs("gnuplot");
    make_run();
}

Test(plot_files, writes_svg_with_its_series)
{
    make_run_to_draw();
    for (int again = 0; again < 2; again++) { /* its own files are replaced */
        struct ran r = must_bench("plot run --figure latency-seq");
        cr_expect_str_eq(r.out.data, "run/plots/latency-seq.svg\n");
    }
    struct bytes svg = folder_read("run/plots/latency-seq.svg");
    HAS(svg.data, "<svg", ">first</text>", "<title>Latency against sequence length</title>");
    cr_expect(strstr(svg.data, "ab&lt;i"), "a name from the table is escaped");
    cr_expect_not(strstr(svg.data, "<i>"));
    cr_expect(strstr(svg.data, "> 256</text>"), "the axis names the lengths");
    cr_expect(strstr(svg.data, "<desc>drawn by bench "), "for who asks which version");
    cr_expect_not(strstr(svg.data, "GNUPLOT"), "the same bytes by each gnuplot that draws alike");
}

/* Names of files are all that it prints, unless a figure that was asked for is missing. The report
 * says in words what it shows. */
Test(plot_files, says_what_was_asked)
{
    make_run();
    struct ran r = must_bench("plot run --format csv");
    cr_expect_str_eq(r.err.data, "");
    bench_exits(77, "no figure has what it needs", "plot run --format csv --filter seq:7");
    r = run_bench("report run -o page.html");
    expect_said(&r, "variants by time");
    cr_expect_str_eq(r.out.data, "page.html\n");
    struct bytes page = folder_read("page.html");
    cr_expect(strstr(page.data, "data-answer=\"No variant is shown") ||
              strstr(page.data, "data-answer=\"Use ") ||
              strstr(page.data, "data-answer=\"Probably use "));
}

/* By the checkpoint beside the curve. */
Test(plot_files, a_training_names_its_text_and_sizes)
{
    need_programs("gnuplot");
    must_bench("train --variant xl --layers 1 --d-model 8 --heads 2 --seq 4 --mem 4 --batch 2 "
               "--steps 2 --backend ref --threads 1 --corpus copy:lag=3,alphabet=4 --ckpt m -q");
    must_bench("plot . --figure training -o .");
    struct bytes svg = folder_read("training.svg");
    HAS(svg.data, "copy:lag=3,alphabet=4, layers 1, d_model 8, heads 2");
}

/* Without one, nothing is said: fresh memory is no text. */
Test(plot_files, a_training_without_a_checkpoint_names_neither)
{
    need_programs("gnuplot");
    must_bench("train --variant xl --layers 1 --d-model 8 --heads 2 --seq 4 --mem 4 --batch 2 "
               "--steps 2 --backend ref --threads 1 --corpus copy:lag=3,alphabet=4 --ckpt m -q");
    must_shell("rm m && MALLOC_PERTURB_=165 \"$BENCH\" plot . --figure training -o .");
    struct bytes svg = folder_read("training.svg");
    cr_expect(strstr(svg.data, "<text>ref, threads 1</text>"), "%.3000s", svg.data);
}

/* Two variants in two kinds each, that is two colours and two dashes: the legend has both. */
Test(plot_files, the_legend_draws_what_the_curve_draws)
{
    const char *const kinds[] = {"hidden", "kv"};
    int dashed = 0;

    need_programs("gnuplot");
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 8; i++) {
        const struct made_case c = {i & 1 ? "first" : "second", "one", "", i & 2 ? 128 : 256, 1000};
        struct key_row k = made_key(&r, &c, "host");
        text_put(k.mem_kind, TEXT_SIZE, kinds[i / 4]);
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.median_ns = 1000 * (i + 1);
        made_write(&r, TABLE_LATENCY, &row);
    }
    made_close(&r, "host", "CPU");
    must_bench("plot %s --figure latency-seq -o t", r.path);
    struct bytes svg = folder_read("t/latency-seq.svg");
    for (const char *at = svg.data; (at = strstr(at, "stroke-dasharray")); at++)
        dashed++;
    cr_expect_eq(dashed, 2 * 2, "of two series, in the legend and as a curve: %d", dashed);
}

Test(plot_files, says_what_is_left_out)
{
    make_run_to_draw();
    struct ran r = must_bench("plot run --figure latency-seq,training,perplexity-mem,latency-mem");
    HAS(r.out.data, "run/plots/latency-seq.svg\n");
    cr_expect_not(strstr(r.out.data, "training"));
    expect_said(&r, "left out training: ");
    expect_said(&r, "left out perplexity-mem: perplexity.csv has no scored row");
    expect_said(&r, "left out latency-mem: ");
    r = bench_exits(77, NULL, "plot run --figure training");
    cr_expect_eq(r.out.n, 0);
}

Test(plot_files, foreign_files_are_kept)
{
    make_run_to_draw();
    must_bench("plot run --figure latency-seq -o there --format png");
    struct bytes png = folder_read("there/latency-seq.png");
    cr_expect_eq(memcmp(png.data, "\x89PNG", 4), 0);
    bench_exits(7, "there/latency-seq.png exists  -> overwrite it with --force",
                "plot run --figure latency-seq -o there --format png");
    must_bench("plot run --figure latency-seq -o there --format png --force");
}

Test(plot_files, several_runs_have_folders_of_their_own)
{
    make_run_to_draw();
    struct ran r =
        must_shell("cp -r run other && $BENCH plot run other --figure latency-seq -q -o there");
    cr_expect_str_eq(r.out.data, "there/run/latency-seq.svg\nthere/other/latency-seq.svg\n");
}

Test(plot_files, draws_in_the_terminal)
{
    make_run_to_draw();
    struct ran r = must_shell("COLUMNS=70 $BENCH plot run --figure latency-seq --term");
    HAS(r.out.data, "first", "sequence length (tokens)");
    for (const char *line = r.out.data; line && *line; line = strchr(line, '\n'), line += !!line)
        cr_expect_leq(strcspn(line, "\n"), 70);
    cr_expect_not(folder_has("run/plots"));
}

/* The longest run of one character. */
static int longest_run(const char *text, char of)
{
    int longest = 0, n = 0;

    for (; *text; text++) {
        n = *text == of ? n + 1 : 0;
        longest = n > longest ? n : longest;
    }
    return longest;
}

/* Lines that contain the character after the first `from` ones. */
static int lines_with(const char *text, char of, int from)
{
    int n = 0;

    for (const char *line = text; *line;
         line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        const int length = (int)strcspn(line, "\n");
        n += length > from && memchr(line + from, of, (size_t)(length - from)) != NULL;
    }
    return n;
}

/* Bars are rows or columns of the number that the legend gives them. */
Test(plot_files, draws_bars_in_the_terminal)
{
    static const struct made_case cases[] = {{"v", "one", "1", 128, 4000},
                                             {"v", "two", "2", 128, 500}};

    need_programs("gnuplot");
    struct rundir r = made_open("aaaa");
    for (int i = 0; i < 2; i++) {
        const struct key_row k = made_key(&r, &cases[i], "host");
        made_row(&r, &cases[i], "host", "ok", "", 100);
        struct memory_row m = ROW_OF(memory, MEMORY, &k);
        m.weights_bytes = 3 << 20;
        m.activations_bytes = 1 << 20;
        m.arena_peak_bytes = 4 << 20;
        made_write(&r, TABLE_MEMORY, &m);
    }
    made_close(&r, "host", "CPU");
    struct ran ran = must_bench("plot %s --figure memory-parts --term", r.path);
    const int weights = longest_run(ran.out.data, '1'), rest = longest_run(ran.out.data, '2');
    cr_expect_gt(weights, 20, "%s", ran.out.data);
    cr_expect_leq(abs(weights - 3 * rest), 3, "three times as long: %s", ran.out.data);
    const char *const entry = strstr(ran.out.data, "1 weights"), *const bar = strstr(ran.out.data,
                                                                                     "v one 1");
    cr_expect(entry && bar && entry < bar, "the legend is above the bars: %s", ran.out.data);
    cr_expect_eq(lines_with(ran.out.data, '2', 40), 3, "bars and nothing else: %s", ran.out.data);
    ran = must_bench("plot %s --figure backends --term --base one", r.path);
    cr_expect_geq(lines_with(ran.out.data, '2', 20), 8, "%s", ran.out.data);
}

/* A page of the size that was asked for; dpi only makes a PNG finer. */
Test(plot_files, pictures_have_the_size_that_was_asked_for)
{
    make_run_to_draw();
    must_bench("plot run --figure latency-seq --size 640x480 -o t");
    struct bytes svg = folder_read("t/latency-seq.svg");
    HAS(svg.data, "width=\"640\" height=\"480\"");
    must_bench("plot run --figure latency-seq --size 640x480 --format png --dpi 192 -o t");
    struct bytes png = folder_read("t/latency-seq.png");
    const unsigned char *const p = (const unsigned char *)png.data;
    NUMBERS({p[18] * 256 + p[19], 1280}, {p[22] * 256 + p[23], 960});
}

/* Figures that fit are drawn all the same. */
Test(plot_files, a_figure_without_room_is_left_out)
{
    make_run_to_draw();
    bench_exits(2, "--size", "plot run --figure latency-seq --size 200x200");
    cr_expect_not(folder_has("run/plots"));
}

Test(plot_files, writes_pdf)
{
    make_run_to_draw();
    struct ran r = run_bench("plot run --figure latency-seq --format pdf -o t");
    if (r.code == 6)
        cr_skip_test("this gnuplot writes no PDF");
    expect_exit(&r, 0);
    struct bytes pdf = folder_read("t/latency-seq.pdf");
    cr_expect_eq(memcmp(pdf.data, "%PDF", 4), 0);
}

/* A stand-in for a gnuplot that lacks the terminal ends as style.gp does. */
Test(plot_files, a_form_that_gnuplot_lacks_says_what_to_install)
{
    make_run();
    shell_exits(6, "gnuplot-nox",
                "mkdir bin; printf '#!/bin/sh\nexit 3\n' >bin/gnuplot; chmod +x bin/gnuplot; "
                "PATH=$PWD/bin:$PATH $BENCH plot run --figure latency-seq --format pdf");
    if (access("plots/style.gp", R_OK) != 0)
        return;
    shell_exits(3, NULL,
                "$BENCH plot run --figure latency-seq --format csv -o t && cd $SRC && sed "
                "'s/pdfcairo/pdf_of_nobody/' plots/style.gp >$OLDPWD/style.gp && cp "
                "plots/latency-seq.gp $OLDPWD && gnuplot -e \"here='$OLDPWD/'; "
                "data='$OLDPWD/t/latency-seq.csv'; out='x.pdf'\" $OLDPWD/latency-seq.gp");
}

Test(plot_files, history_draws_several_runs_in_one_figure)
{
    make_run_to_draw();
    struct ran r = must_shell("cp -r run other; $BENCH history run other -o there");
    cr_expect_str_eq(r.out.data, "there/history.svg\n");
    r = must_shell("mkdir results && cp -r run results/a && cp -r run results/b && ln -s b "
                   "results/latest && $BENCH history --format csv");
    cr_expect_str_eq(r.out.data, "results/b/plots/history.csv\n");
    r = must_shell(
        "$BENCH report run other -o page.html -q && grep -c 'id=\"figure-.*-history\"' page.html "
        "&& $BENCH report run -o one.html -q && ! grep -q 'id=\"figure-.*-history\"' one.html");
    cr_expect_str_eq(r.out.data, "page.html\n1\none.html\n");
}

/* The table that a script reads is documented, and the script runs by hand. */
Test(plot_files, scripts_run_by_hand)
{
    make_run_to_draw();
    must_bench("plot run --figure latency-seq,backends --format csv -o t");
    struct bytes csv = folder_read("t/latency-seq.csv");
    cr_expect_eq(count_in(csv.data, "\n"), 5);
    HAS(csv.data, ",first,");
    if (access("plots/latency-seq.gp", R_OK) != 0)
        cr_skip_test("run from the top of the repository");
    must_shell("cd $SRC && gnuplot -e \"data='$OLDPWD/t/latency-seq.csv'; out='$OLDPWD/hand.svg'\" "
               "plots/latency-seq.gp");
    struct bytes svg = folder_read("hand.svg");
    HAS(svg.data, ">first</text>");
}

/* gnuplot executes its input: only the program's own scripts, and no start-up file. */
Test(plot_files, runs_no_script_but_its_own)
{
    make_run_to_draw();
    struct ran r =
        must_shell("mkdir plots; echo 'system(\"touch $PWD/alien\")' | tee plots/latency-seq.gp "
                   "plots/style.gp >.gnuplot; HOME=$PWD $BENCH plot run --figure latency-seq");
    cr_expect_str_eq(r.out.data, "run/plots/latency-seq.svg\n");
    cr_expect_not(folder_has("alien"));
}

/* What a report has gnuplot draw: changes and a curve. */
static void add_changes_and_curve(void)
{
    static const char changes[] = "case,before,after,change_pct,ci95_low_pct,ci95_high_pct,verdict,"
                                  "threshold_pct\na,old,new,-12.5,-13,-12,faster,2\n";
    struct train_row row = train_row_empty();

    folder_put_text("run/changes.csv", changes);
    text_put(row.variant, TEXT_SIZE, "first");
    row.step = 10;
    row.loss_nats = 3;
    made_table(in_folder("run/m.train.csv"), TABLE_TRAIN, &row, 1);
}

/* A stand-in for gnuplot holds the first figure until the signal has been sent. */
Test(plot_files, a_signal_stops_between_figures)
{
    make_run();
    add_changes_and_curve();
    EACH_TEXT (line, "plot run", "report run -o page.html") {
        struct ran r = shell_exits(
            143, NULL,
            "rm -f go count; mkdir -p bin tmp; printf '#!/bin/sh\necho x >>count; while [ ! -f go "
            "]; do sleep 0.01; done\n' >bin/gnuplot; chmod +x bin/gnuplot; PATH=$PWD/bin:$PATH "
            "TMPDIR=$PWD/tmp $BENCH %s & while [ ! -f count ]; do sleep 0.01; done; kill -TERM $!; "
            "touch go; wait $!; code=$?; ls tmp; wc -l <count; exit $code",
            line);
        cr_expect_str_eq(r.out.data, "1\n", "no folder stays, no second figure begins");
    }
    cr_expect_not(folder_has("page.html"), "half a page");
}

Test(plot_files, without_gnuplot)
{
    make_run();
    shell_exits(6, "gnuplot is not installed  -> install gnuplot-nox",
                "PATH=nowhere; $BENCH plot run");
}

Test(plot_files, usage)
{
    static const struct {
        const char *line;
        int code;
        const char *said;
    } bad[] = {
        {"plot run --figure latency-sec", 2, "did you mean latency-seq?"},
        {"plot run --format md", 2, "bench plot has no --format md"},
        {"plot run --term --format png", 2, "--term draws no file"},
        {"plot run --size 640", 2, "--size 640"},
        {"plot run --size 640x99", 2, "--size 640x99"},
        {"plot run --size 640x480x3", 2, "--size"},
        {"plot run --size 640x480 --term", 2, "--size"},
        {"plot run --dpi 300", 2, "--format png"},
        {"history run", 2, "two runs"},
        {"history run run --figure latency-seq", 2, "--figure"},
        {"history run run --format jsonl", 2, "jsonl"},
        {"history", 7, "results"},
        {"plot", 7, "there is no run results/latest  -> bench plot RUN"},
        {"plot .", 7, "has no tables of bench"},
        {"plot nowhere", 7, "nowhere"},
        {"plot run sub/../run -o there", 2, "would both write to there/run"},
        {"plot run --base onw", 2, "unknown backend \"onw\""},
        {"list variants --format svg", 2, "bench list has no --format svg  -> use table, csv"},
        {"list variants --term", 2, "--term does not apply to list"},
    };

    make_run();
    cr_assert_eq(mkdir(in_folder("sub"), 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct ran r = bench_exits(bad[i].code, bad[i].said, "%s", bad[i].line);
        cr_expect_eq(r.out.n, 0, "%s", bad[i].line);
    }
}

Test(plot_files, topo_draws_what_it_measured)
{
    need_programs("gnuplot");
    struct ran r = must_bench("topo --roofline --threads 1 --format table");
    HAS(r.out.data, "\n1 thread\n", "FLOP / byte", " L1 ");

    shell_exits(0, "note: no drawing: ",
                "PATH=nowhere; exec \"$BENCH\" topo --roofline --threads 1 --format table");
}
