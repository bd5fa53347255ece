#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions of choice, answered by `bench eval --choices` and by lm-evaluation-harness.

    scripts/crosscheck/choices.py BENCH DIR [MODEL...]

makes random models with tokenizers of their own in DIR: of bytes without a token in front of a text,
and as Llama 2 has them, with one and a space in front. They, and folders of other models with a
tokenizer, answer awkward questions and drawn ones: by the harness in double precision, and by `bench`.
Prints a row for each model and backend: questions, the largest difference of a log-likelihood as a share
of it, the largest of acc, acc_norm, acc_bytes and exact_match, and how many continuations differ in
being the greedy one. Exit code 1: a log-likelihood is farther than 1e-6, or another number differs.
Needs torch, transformers and lm-eval (docs/crosschecks.md)."""

import csv
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

import lm_eval
import torch
import transformers
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from models import SEED, begin, made

LIMIT, CONTEXT, DRAWN = 1e-6, 24, 60
WORDS = ["the", "theory", " then", "ab", "abab", "caf\u00e9", "\u65e5\u672c\u8a9e", "\U0001f600", "12", "3.14",
         ",", "don't", "\n", " ", "  ", "\u00a0", "x=1;", "A", "zebra", "\u00fc\u00df"]
AWKWARD = [
    ("", ["the", " the", "abab"]),                        # nothing in front
    ("", ["<s>the", "<|end|>the", "ab"]),                 # the token that begins a text, written
    ("<s>the", [" theory", "ory"]),
    ("  \n", ["the", " ab"]),                             # white space alone
    ("the ", ["theory", "ab", "12"]),                     # which ends a context
    ("the\u00a0\u2003 \x1c", ["theory", "ab"]),
    ("the\n\n", ["ab", "\nab"]),
    ("the", ["ory", "n", " theory", "re"]),               # merged across the border
    ("a", ["b", "bab", "babab"]),
    ("caf", ["\u00e9", "e\u0301", "\u00e9 \u65e5\u672c"]),
    ("\u65e5\u672c", ["\u8a9e", "\U0001f600", "\u00fc\u00df\u00fc\u00df"]),
    ("ab ab", [" ab", " ab", " ab ab"]),                  # equal ones, one the beginning of another
    ("the theory then " * 30, ["ab", "the end of it all"]),  # longer than the model reads
    ("\U0001f600" * 40, ["the", "\u8a9e"]),
    ("the", ["ab" * 8, "ab"]),
]


def questions():
    rng = random.Random(SEED)

    def text(least, most):
        return "".join(rng.choice(["", " "]) + rng.choice(WORDS) for _ in range(rng.randint(least, most)))
    drawn = [(text(0, 20), [text(1, 5) or "ab" for _ in range(rng.randint(2, 5))]) for _ in range(DRAWN)]
    return [{"context": c, "continuations": k, "gold": rng.randrange(len(k))} for c, k in AWKWARD + drawn]


def of_bytes():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return t, trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<|end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), {"eos_token": "<|end|>"}


def like_llama():
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                     special_tokens=[("<s>", 1)])
    return t, trainers.BpeTrainer(
        vocab_size=500, show_progress=False, limit_alphabet=60, max_token_length=8,
        special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]), {
            "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def make(folder, kind, config):
    tokenizer, trainer, names = kind()
    text = [" ".join(random.Random(n).choices(WORDS, k=40)) + "\n" for n in range(200)]
    tokenizer.train_from_iterator(text, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **names)
    ids = {k: fast.convert_tokens_to_ids(names[k.replace("_id", "")]) for k in ("bos_token_id", "eos_token_id")
           if k.replace("_id", "") in names}
    model = made(config(vocab_size=len(fast), **ids))
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


def llama(**more):
    return transformers.LlamaConfig(hidden_size=24, intermediate_size=28, num_hidden_layers=2,
                                    num_attention_heads=4, num_key_value_heads=2,
                                    max_position_embeddings=CONTEXT, **more)


def gpt2(**more):
    return transformers.GPT2Config(n_embd=24, n_layer=2, n_head=4, n_positions=CONTEXT, **more)


def asks(lm, question):
    """Does the harness answer it? It stops where a context or a continuation has no token."""
    context = question["context"]
    return all(all(map(len, lm._encode_pair(context, k))) if context else
               lm.tok_encode(k, add_special_tokens=False) not in ([], [lm.prefix_token_id])
               for k in question["continuations"])


def by_harness(folder, path):
    """Log-likelihood and greediness of each continuation, and the shares; writes the questions."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).double()
    lm = HFLM(pretrained=model, tokenizer=transformers.AutoTokenizer.from_pretrained(folder), batch_size=1,
              device="cpu")
    with open(path, "w") as f:
        f.writelines(json.dumps(q) + "\n" for q in questions() if asks(lm, q))
    task = ConfigurableTask(config={
        "task": "choices", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": path}},
        "test_split": "test", "output_type": "multiple_choice", "target_delimiter": "", "num_fewshot": 0,
        "doc_to_text": lambda d: d["context"], "doc_to_choice": lambda d: d["continuations"],
        "doc_to_target": lambda d: d["gold"],
        "metric_list": [{"metric": m} for m in ("acc", "acc_norm", "acc_bytes", "exact_match")]})
    got = lm_eval.simple_evaluate(lm, tasks=[task], bootstrap_iters=0, verbosity="ERROR")
    samples = sorted(got["samples"]["choices"], key=lambda s: s["doc_id"])
    return ([tuple(r) for s in samples for r in s["filtered_resps"]],
            {m: got["results"]["choices"][m + ",none"] for m in ("acc", "acc_norm", "acc_bytes", "exact_match")})


def by_bench(bench, folder, path, backend):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([bench, "eval", "--ckpt", folder, "--choices", path, "--backend", backend, "--threads", "1",
                        "--pin", "none", "--losses", out, "--out", out + "/r", "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        rows = list(csv.DictReader(open(glob.glob(out + "/*.csv")[0])))
        shares = next(csv.DictReader(open(glob.glob(out + "/r/*/perplexity.csv")[0])))
    return ([(float(r["log_likelihood"]), r["greedy"] == "1") for r in rows],
            {"acc": float(shares["accuracy"]),
             **{m: float(shares[m]) for m in ("acc_norm", "acc_bytes", "exact_match")}})


def main():
    begin(__doc__, 2)
    bench, home, fine = sys.argv[1], sys.argv[2], True
    own = {"bytes.gpt2": (of_bytes, gpt2), "bytes.llama": (of_bytes, llama), "llama.gpt2": (like_llama, gpt2),
           "llama.llama": (like_llama, llama)}
    for name, (kind, config) in own.items():
        make(os.path.join(home, name), kind, config)
    print("| model | backend | questions | log-likelihood | shares | greedy |\n|---|---|%s" % ("---:|" * 4))
    for folder in [os.path.join(home, n) for n in own] + sys.argv[3:]:
        path = os.path.join(home, os.path.basename(folder.rstrip("/")) + ".jsonl")
        want, shares = by_harness(folder, path)
        for backend in ("ref", "auto"):
            got, its = by_bench(bench, folder, path, backend)
            assert len(got) == len(want)
            apart = max(abs(g - w) / abs(w) for (g, _), (w, _) in zip(got, want))
            share = max(abs(its[m] - shares[m]) for m in shares)
            greedy = sum(g != w for (_, g), (_, w) in zip(got, want))
            print("| %s | %s | %d | %.1e | %.1e | %d |" % (os.path.basename(folder.rstrip("/")), backend,
                                                       sum(1 for _ in open(path)), apart, share, greedy), flush=True)
            fine = fine and apart <= LIMIT and share < 1e-9 and greedy == 0
    sys.exit(not fine)


if __name__ == "__main__":
    main()
