#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokenizers with added tokens of every kind, and what the package tokenizers makes of texts.

    scripts/crosscheck/added_tokens.py DIR TEXT [N]
    for d in DIR/*; do bench check --tokens $d --golden $d/golden.jsonl; done

trains two tokenizers of byte pairs on a text, of bytes and of characters, and writes N (100) folders in
which up to five random tokens are added to one of them: with lstrip, rstrip, single_word, normalized and
special by chance, some of them white space or parts of each other. golden.jsonl has the ids of 60 texts of
these tokens, white space and letters. Where the package itself breaks (a token of white space that takes
white space, behind another that has taken it), the text is left out. Needs tokenizers
(docs/crosschecks.md)."""

import copy
import json
import os
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

BLOCK = "\u2581"
WHITE = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x0b", "\x85", "\u200b", "\x1c"]
LETTERS = ["a", "the", "key", "\u00e9", "e\u0301", "\u4e2d", "12", ".", "_", "-", "\u200d", "\u24d0",
           "\u2167", "\u0903", BLOCK]
NAMES = ["<t>", "<|x|>", "the", "ab", "\n\n", "\n", " ", " x", "x ", "  ", "e\u0301", "_y", "12",
         "<t><t>", "\u00a0z", BLOCK, "\u4e2d"]


def of_bytes(text):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    plain = json.loads(t.to_str())
    composed = copy.deepcopy(plain)
    composed["normalizer"] = {"type": "NFC"}
    blank = copy.deepcopy(plain)
    blank["pre_tokenizer"]["add_prefix_space"] = True
    return [plain, composed, blank]


def of_characters(text):
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, show_progress=False))
    first = json.loads(t.to_str())
    first["added_tokens"] = first["added_tokens"][:3]
    first["pre_tokenizer"] = {"type": "Metaspace", "replacement": BLOCK, "prepend_scheme": "first",
                              "split": False}
    each = copy.deepcopy(first)
    each["pre_tokenizer"] = None
    each["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": BLOCK},
        {"type": "Replace", "pattern": {"String": " "}, "content": BLOCK}]}
    return [first, each]


def add(j, names, rng):
    vocab, there = j["model"]["vocab"], [a["content"] for a in j["added_tokens"]]
    after = len(vocab)
    for name in names:
        if name in there:
            continue
        j["added_tokens"].append(dict(
            id=vocab.get(name, after), content=name, single_word=rng.random() < 0.3,
            lstrip=rng.random() < 0.5, rstrip=rng.random() < 0.5, normalized=rng.random() < 0.4,
            special=rng.random() < 0.5))
        after += name not in vocab
    j["added_tokens"].sort(key=lambda a: a["id"])


def draw(names, rng):
    kinds = [WHITE] * 7 + [LETTERS] * 4 + [names] * 9
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randrange(9)))


def write(folder, j, texts):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokenizer.json"), "w") as f:
        json.dump(j, f, ensure_ascii=False)
    t = Tokenizer.from_str(json.dumps(j))
    with open(os.path.join(folder, "golden.jsonl"), "w") as f:
        for text in texts:
            try:
                ids = t.encode(text, add_special_tokens=False).ids
            except BaseException:  # a panic is no Exception
                continue
            f.write(json.dumps({"hex": text.encode().hex(), "ids": ids}) + "\n")


def main(top, text, n="100"):
    with open(text) as f:
        whole = f.read()[:30000]
    bases = of_bytes(whole) + of_characters(whole)
    for i in range(int(n)):
        rng = random.Random(i)
        j, names = copy.deepcopy(bases[i % len(bases)]), rng.sample(NAMES, rng.randrange(1, 6))
        add(j, names, rng)
        write(os.path.join(top, f"{i:04d}"), j, [draw(names, rng) for _ in range(60)])


main(*sys.argv[1:])
