#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models of images and texts, of which `bench` reads the texts' part.

    scripts/crosscheck/images.py DIR
    bench check --golden DIR

writes a folder for each, with what transformers makes of texts without images, as models.py does. Needs
torch, transformers and safetensors (docs/crosschecks.md)."""

import json
import os
import sys

import torch
import transformers

from models import SEED, begin, expect, spread

VISION = dict(hidden_size=16, intermediate_size=16, num_attention_heads=2, image_size=28, patch_size=14)
TEXT = dict(hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, head_dim=12)
MODELS = {
    "gemma3": ("Gemma3Config", dict(
        text_config=dict(TEXT, num_attention_heads=8, num_hidden_layers=7, sliding_window=9,
                         query_pre_attn_scalar=20),
        vision_config=dict(VISION, num_hidden_layers=1), mm_tokens_per_image=1)),
    "mistral3": ("Mistral3Config", dict(
        text_config=dict(TEXT, model_type="mistral", sliding_window=None), tie_word_embeddings=False,
        vision_config=dict(VISION, model_type="pixtral", head_dim=8, num_hidden_layers=1))),
    "llava": ("LlavaConfig", dict(
        text_config=dict(TEXT, model_type="llama"),
        vision_config=dict(VISION, model_type="clip_vision_model", num_hidden_layers=2))),
    "smolvlm": ("SmolVLMConfig", dict(
        text_config=dict(TEXT, model_type="llama", pad_token_id=1),
        vision_config=dict(VISION, num_hidden_layers=1), scale_factor=2)),
}
# As files have it: keys with the usual value left out; another one in the text's part, which is not read.
LACKS = {"gemma3": [("text_config", "num_attention_heads"), ("text_config", "tie_word_embeddings")],
         "llava": [("text_config", "tie_word_embeddings"), (None, "tie_word_embeddings")]}
IMAGE = {"smolvlm": "image_token_id"}
SAYS = {"mistral3": {"tie_word_embeddings": True}}


def rewrite(path, name):
    with open(path) as f:
        config = json.load(f)
    for part, key in LACKS.get(name, []):
        (config[part] if part else config).pop(key, None)
    config["text_config"].update(SAYS.get(name, {}))
    with open(path, "w") as f:
        json.dump(config, f, indent=1)


def main():
    begin(__doc__)
    for name, (kind, values) in MODELS.items():
        config = getattr(transformers, kind)(**{IMAGE.get(name, "image_token_index"): 60},
                                                          **values)
        config._attn_implementation = "eager"
        torch.manual_seed(SEED)
        model = transformers.AutoModelForImageTextToText.from_config(
            config, dtype=torch.float32).eval()
        spread(model)
        folder = os.path.join(sys.argv[1], name)
        model.save_pretrained(folder)
        rewrite(os.path.join(folder, "config.json"), name)
        model.config.vocab_size = config.get_text_config().vocab_size
        expect(folder, config.get_text_config().model_type, model)
        print(name)


if __name__ == "__main__":
    main()
