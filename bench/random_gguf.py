#!/usr/bin/env python3
"""Writes a model of llama.cpp with random weights: nothing to download, and the times are those of a trained one.

    bench/random_gguf.py model.gguf [--layers 16] [--width 1024] [--experts 8]

The architecture is `llama`; with --experts its feed-forward layers are mixtures of experts, two of which a token uses.
Weights are Q8_0. 16 layers of width 1024 have 200 MB, with 8 experts 1.2 GB. Needs `scripts/setup llama`.
"""

import argparse

import gguf
import numpy

VOCABULARY = 256
HEAD = 64


def quantised(random, rows, columns):
    weights = random.standard_normal((rows, columns), dtype=numpy.float32) * numpy.float32(columns**-0.5)
    return gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)


def add_vocabulary(writer):
    """A byte is a token; the first three are those that SentencePiece wants."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(VOCABULARY - 3)]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * (VOCABULARY - 3)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def add_layer(writer, random, layer, width, hidden, experts):
    def add(name, rows, columns):
        writer.add_tensor(f"blk.{layer}.{name}.weight", quantised(random, rows, columns),
                          raw_dtype=gguf.GGMLQuantizationType.Q8_0)

    for norm in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(width, dtype=numpy.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(name, width, width)
    shapes = {"ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden)}
    if not experts:
        for name, shape in shapes.items():
            add(name, *shape)
        return
    writer.add_tensor(f"blk.{layer}.ffn_gate_inp.weight",
                      random.standard_normal((experts, width), dtype=numpy.float32))
    for name, shape in shapes.items():
        stacked = numpy.stack([quantised(random, *shape) for _ in range(experts)])
        writer.add_tensor(f"blk.{layer}.{name}_exps.weight", stacked, raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def write(path, layers, width, experts=0, seed=1):
    """Writes the model."""
    random = numpy.random.default_rng(seed)
    hidden = width * 8 // 3 // 32 * 32
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(width // HEAD)
    writer.add_head_count_kv(width // HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(min(2, experts))
    add_vocabulary(writer)
    for name in ("token_embd", "output"):
        writer.add_tensor(f"{name}.weight", quantised(random, VOCABULARY, width),
                          raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", numpy.ones(width, dtype=numpy.float32))
    for layer in range(layers):
        add_layer(writer, random, layer, width, hidden, experts)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.path, options.layers, options.width, options.experts, options.seed)


if __name__ == "__main__":
    main()
