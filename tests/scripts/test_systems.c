/* SPDX-License-Identifier: MIT
 *
 * No system of the founding papers is forgotten: each is built, and then one command plans at least
 * one case of it, or it is not built, with a reason; docs/systems.md says so. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"
#include "variants/systems.h"

TestSuite(systems, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* All that these papers name, however it was decided. */
static const char named[] =
    "Transformer|Al-Rfou et al.|Shaw et al.|Transformer-XL|naive segment recurrence|GTrXL|"
    "R-Transformer|RealFormer|Universal Transformer|adaptive computation time|Funnel-Transformer|"
    "DeLighT|sliding window|dilated window|random keys|block-local|global tokens|"
    "Sparse Transformer, strided|Sparse Transformer, fixed|Longformer|BigBird|linear attention|"
    "Performer|average attention|Synthesizer|talking heads|multi-query attention|adaptive span|"
    "all-attention|Compressive Transformer|Macaron|Sandwich|RoPE|ALiBi|T5|KERPLE|TUPE|DeBERTa|"
    "learned positions|ReZero|ScaleNorm|RMSNorm|GLU family|Swish|GELU|mixture of experts|"
    "Switch Transformer|SAC|Image Transformer, 1-D local|Image Transformer, 2-D local|"
    "Axial Transformer|Star-Transformer|low-rank attention, head size free|"
    "low-rank and band attention|Gaussian localness|Gaussian Transformer|"
    "hard-coded Gaussian attention|Predictive Attention Transformer|LazyFormer|CA-MTL|"
    "collaborative heads|multi-scale attention|dilated heads|routing aggregation|"
    "EM-routing aggregation|head disagreement|attention guidance|learned sinusoid frequencies|"
    "FLOATER|complex embeddings|CPE|TENER|Music Transformer|no positions in decoders|AdaNorm|"
    "PowerNorm|Admin|product-key memory|hash experts|expert prototypes|"
    "one vector per past segment|transparent attention|transparent attention in a decoder|"
    "early exit by entropy|early exit by patience|depth-adaptive Transformer|early exit by votes|"
    "early exit by a window|conditional computation|MAN|Evolved Transformer|DARTSformer|BERT|"
    "masked language model|RoBERTa|GPT|cross attention|Performer's other features|"
    "Routing Transformer|Reformer|Sparse Sinkhorn attention|BP-Transformer|ETC|Linformer|"
    "Nystromformer|Nystrom with an identity (CSALR)|memory-compressed attention|"
    "clustered attention|Informer|Poolingformer|Set Transformer|Lite Transformer|"
    "Feedback Transformer|ERNIE-Doc|Memformer|HIBERT|Hi-Transformer|TNT|document translation|"
    "TENER's character encoder|ViT|encoder and decoder|sequence to sequence|BART";

static const struct system *find(const struct system *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

static int count(const struct system *list)
{
    int n = 0;

    while (list[n].name)
        n++;
    return n;
}

Test(systems, each_is_built_or_not_and_once)
{
    int n = 0;

    for (char **name = words_between(named, "|"); name[n]; n++)
        cr_expect(find(systems, name[n]) != NULL, "%s is missing", name[n]);
    cr_expect_eq(count(systems), n);
    for (const struct system *s = systems; s->name; s++) {
        cr_expect((s->run != NULL) != (s->why != NULL), "%s is either run or explained", s->name);
        cr_expect(!s->why || s->why[strlen(s->why) - 1] == '.', "%s: a sentence", s->name);
    }
}

Test(systems, what_is_built_runs)
{
    for (const struct system *s = systems; s->name; s++) {
        int n = 0;
        if (!s->run)
            continue;
        if (strncmp(s->run, "train ", strlen("train ")) == 0) {
            must_bench("%s --backend ref --steps 1 --seq 8 --batch 1", s->run);
            continue;
        }
        struct plan p = planned("%s -b ref", s->run);
        plan_drop_unsupported(&p);
        n = p.n;
        cr_expect_gt(n, 0, "%s: %s runs nothing", s->name, s->run);
    }
}

Test(systems, the_page_is_the_list)
{
    struct ran r = must_bench("list systems --format md");
    struct bytes page = must_load("docs/systems.md");
    cr_expect_str_eq(page.data, r.out.data, "make && scripts/pages.sh");
}
