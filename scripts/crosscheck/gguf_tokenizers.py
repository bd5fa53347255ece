#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SentencePiece tokenizers in GGUF files, and what the package sentencepiece makes of texts.

    scripts/crosscheck/gguf_tokenizers.py DIR TEXT [TEXT...]
    for d in DIR/*; do bench check --tokens $d/model.gguf --golden $d/golden.jsonl; done

trains tokenizers of byte pairs on the first text: as Llama 2 has them, with a space in front of each
text; as Gemma, without, and with symbols of its own; and one with pieces that contain spaces. The
package gguf writes them. golden.jsonl has the ids of strings that are hard to cut and of pieces of
all texts, by sentencepiece. Needs sentencepiece and gguf (docs/crosschecks.md)."""

import json
import os
import random
import sys

import gguf
import numpy as np
import sentencepiece

HARD = [
    "", " ", "  ", "   ", "\n", "\n\n\n", " \n ", "\t\t\tx", "a", " a", "a ", "  a  b  ", "a\n b",
    "\u2581", " \u2581 ", "\u2581\u2581a", "caf\u00e9", "cafe\u0301", "\u00fc\u00df\u00a0\u00ad",
    "\u65e5\u672c\u8a9e \u6587\u5b57", "\ud55c\uad6d\uc5b4", "\u0627\u0644\u0639\u0631", "\u0e44\u0e17\u0e22",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ufeffx", "\x00a\x00", "\x7f\x1b[0m",
    "\ufffd", "\U0010ffff", "<0x41><0x0A>", "<unk", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababab",
    "the the theth ethe", "3.14159 1000000 007", "x=1;\r\ny = 2\r", "don't can't I'LL",
    "http://a.b/c?d=e&f#g", "\u00e9" * 40 + " " + "\u4e2d" * 40, "-" * 50, "=" * 17 + ">" * 9,
    "mixed \u03b1\u03b2\u03b3 \u0434\u0430 \u2014 \u201cquote\u201d \u2026", "end\n",
]

LIKE_LLAMA = dict(normalization_rule_name="identity", remove_extra_whitespaces=False,
                  byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
                  character_coverage=0.9995, model_type="bpe")
KINDS = {
    "llama": dict(vocab_size=2000),
    "gemma": dict(vocab_size=1500, add_dummy_prefix=False,
                  user_defined_symbols=["<table>", "\n\n", "<start_of_turn>", "thethe"]),
    "small": dict(vocab_size=420),
    "own": dict(vocab_size=430, add_dummy_prefix=False,
                user_defined_symbols=["<table>", "\n\n", "<start_of_turn>", "thethe"]),
    "crossing": dict(vocab_size=1200, split_by_whitespace=False, split_by_number=False,
                     split_by_unicode_script=False),
}


def kind_of(sp, i):
    types = gguf.TokenType
    return (types.UNKNOWN if sp.is_unknown(i) else types.CONTROL if sp.is_control(i)
            else types.BYTE if sp.is_byte(i) else types.UNUSED if sp.is_unused(i)
            else types.USER_DEFINED if sp.id_to_piece(i) in OWN else types.NORMAL)


OWN = set(KINDS["gemma"]["user_defined_symbols"])


def write(folder, sp, prefix):
    out = gguf.GGUFWriter(os.path.join(folder, "model.gguf"), "llama")
    n = sp.vocab_size()
    out.add_tokenizer_model("llama")
    out.add_tokenizer_pre("default")
    out.add_token_list([sp.id_to_piece(i).encode() for i in range(n)])
    out.add_token_scores([sp.get_score(i) for i in range(n)])
    out.add_token_types([kind_of(sp, i) for i in range(n)])
    out.add_bos_token_id(sp.bos_id())
    out.add_eos_token_id(sp.eos_id())
    out.add_unk_token_id(sp.unk_id())
    out.add_add_bos_token(True)
    out.add_add_eos_token(False)
    if not prefix:
        out.add_add_space_prefix(False)
    out.add_chat_template("{{ messages }}")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    # names of control tokens are cut out of texts here and by transformers, not by sentencepiece
    texts = [open(path, encoding="utf-8").read().replace("<unk>", "<unk") for path in sys.argv[2:]]
    rng = random.Random(7)
    pieces = list(HARD)
    for text in texts:
        for length in (3, 20, 200, 2000) * 25:
            at = rng.randrange(max(1, len(text) - length))
            pieces.append(text[at:at + length])
    for _ in range(300):
        pieces.append("".join(rng.choice(" \n\tabtheTHE12\u2581\u00e9\u4e2d\U0001f600<>x0A")
                              for _ in range(rng.randrange(40))))
    for name, options in KINDS.items():
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        model = os.path.join(folder, "tokenizer")
        sentencepiece.SentencePieceTrainer.train(
            input=sys.argv[2], model_prefix=model, minloglevel=2, **dict(LIKE_LLAMA, **options))
        sp = sentencepiece.SentencePieceProcessor(model_file=model + ".model")
        write(folder, sp, options.get("add_dummy_prefix", True))
        with open(os.path.join(folder, "golden.jsonl"), "w") as f:
            for text in pieces:
                f.write(json.dumps({"hex": text.encode().hex(), "ids": sp.encode(text)}) + "\n")
        print(name, len(pieces))


main()
