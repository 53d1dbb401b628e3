#!/usr/bin/env python3
"""Writes tokenizers, and the encodings of texts that Hugging Face's tokenizers computes with them.

    python3 make.py [FOLDER [TEXTS [TOKENIZER.json...]]]

Needs PyPI's tokenizers. Each NAME.json is a tokenizer.json, trained here on a few sentences; each
NAME.vectors.json is a list of texts with their encodings. Without FOLDER the golden files beside this
script are written. With FOLDER, random texts and the given TOKENIZER.json files are added:
build/release/bin/unit_tokenizer reads the folder that WEFT_TOKENIZER_VECTORS names.
"""

import json
import os
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

here = os.path.dirname(os.path.abspath(__file__))
folder = sys.argv[1] if len(sys.argv) > 1 else here
random_texts = int(sys.argv[2]) if len(sys.argv) > 2 else 0
os.makedirs(folder, exist_ok=True)

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? It's 12345 times they've done so.",
    "In 1998 the price of 3.50 was paid; we'll see what I'd pay in 2024 for (two) of them!",
    "Der schnelle braune Fuchs springt über den faulen Hund: Größe, Straße, Äpfel.",
    "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë.",
    "Зарегистрируйтесь сейчас на Десятую Международную Конференцию по Unicode.",
    "人人生而自由，在尊严和权利上一律平等。東京都に住んでいます。",
    "안녕하세요 세계, it is a test of words and of more words.",
    "def tokens(text):\n\treturn [word for word in text.split()]  # no tokens\n\n\n",
    "🙂 👩‍👩‍👧 🇩🇪 family of emoji, naïve café e\u0301 combining",
]
TEXTS = SENTENCES + [
    "",
    " ",
    "\t\n\r \u00a0\u3000 x",
    "   leading and trailing   ",
    "hello  world   !",
    "can't CAN'T we'Ll 'S 's'",
    "[CLS] special [SEP] tokens [MASK] [MASK]x <s>text</s> <|endoftext|>more<|endoftext|>",
    "a [MASK]  b [mask] unbelievable newword newwords newWord  newword ",
    "ΑΣΣΟΣ İstanbul ǅ ŉ ﬁ ² ½ Ⅷ ①",
    "x\u0000y\u0001z\u200bw\u200dv\ufeffu\ufffdt\u2028s\u0085r\u00adq",
    "e\u0301\u0327 a\u0308\u0323 \u1e9b\u0323 \u0344 क्षि",
    "supercalifragilisticexpialidocious" * 4,
    "word" * 60 + " " + "the" * 9,
    "9876543210 3,141.59 ١٢٣ 一二三",
    "C:\\temp\\file.txt <tag attr='v'>&amp;</tag> $100 ~ ` ^ |",
    "\u2014dash\u2014 \u201cquoted\u201d \u00abguillemets\u00bb \u3001\u3002",
    "a" * 300,
    "▁ already ▁marked <0x41><unk> Ġ Ċ",
    "ends with newline\n",
    "\n\nbegins  with\tlines",
    "\U0001f9d1\U0001f3fd\u200d\U0001f680 \U00020000\U0002b81f\U0002b900\U0002b920\uf900",
]
PAIRS = [
    ("How many foxes?", "The quick brown fox jumps over the lazy dog."),
    ("", "only the second"),
    ("only the first", ""),
    ("a much longer first text than the second one is, by far, for the sake of cutting", "short"),
    ("short", "a much longer second text than the first one is, by far, for the sake of cutting"),
    ("both of these texts are of a length", "so that both of them have to be shortened"),
]


def random_text(rng):
    """Returns words, letters of any script, marks, white space and emoji, in any mixture."""
    pools = [
        lambda: rng.choice("etaoin shrdlu cmfwyp vbgkqjxz"),
        lambda: rng.choice("ETAOIN SHRDLU'\"!?.,;:-_()[]{}<>/\\@#$%^&*+=|~`"),
        lambda: rng.choice("0123456789"),
        lambda: rng.choice([" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\x0b", "\x85"]),
        lambda: chr(rng.randint(0x300, 0x36F)),
        lambda: chr(rng.randint(0xA1, 0x24F)),
        lambda: chr(rng.randint(0x370, 0x5FF)),
        lambda: chr(rng.randint(0x4E00, 0x9FFF)),
        lambda: chr(rng.randint(0xAC00, 0xD7A3)),
        lambda: chr(rng.randint(0x1F300, 0x1F6FF)),
        lambda: chr(rng.randint(0, 0x10FFFF)),
        lambda: rng.choice(SENTENCES)[: rng.randint(1, 30)],
        lambda: rng.choice(["[MASK]", "<s>", "</s>", "<|endoftext|>", "newword", "[SEP]", "'ll", "'re"]),
    ]
    chosen = rng.sample(pools, rng.randint(1, 4))
    text = "".join(rng.choice(chosen)() for _ in range(rng.randint(1, 80)))
    if rng.random() < 0.02:
        text *= rng.randint(10, 60)
    return "".join(c for c in text if is_stable(c))


def is_stable(c):
    """Returns whether all Unicode tables since 2015 agree on it: the tables of tokenizers differ."""
    if 0xD800 <= ord(c) <= 0xDFFF:
        return False
    old = unicodedata.ucd_3_2_0.category(c)
    return old == unicodedata.category(c) and old != "Cn"


def train(tokenizer, kind, **options):
    tokenizer.train_from_iterator(SENTENCES, kind(show_progress=False, **options))
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(tokenizer, trainers.BpeTrainer, vocab_size=420, special_tokens=["<|endoftext|>"],
                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def roberta():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, trainers.BpeTrainer, vocab_size=380,
          special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.enable_truncation(24)
    tokenizer.enable_padding(length=16, pad_id=1, pad_token="<pad>")
    return tokenizer


def bert(cased=False):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    train(tokenizer, trainers.WordPieceTrainer, vocab_size=500,
          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_tokens([AddedToken("newword", single_word=True),
                          AddedToken("ﬁ ", normalized=True, rstrip=True)])
    if cased:
        tokenizer.enable_truncation(20, strategy="only_first", direction="left")
        tokenizer.enable_padding(direction="left", pad_to_multiple_of=8)
    else:
        tokenizer.enable_truncation(32)
    return tokenizer


def llama():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    return train(tokenizer, trainers.BpeTrainer, vocab_size=600,
                 special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)],
                 limit_alphabet=60)


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    split = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, trainers.BpeTrainer, vocab_size=400, special_tokens=["<|endoftext|>"],
          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|>:1 $B:1",
                                       special_tokens=[("<|endoftext|>", 0)])])
    return tokenizer


def clip():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(r"<s>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)
    tokenizer.decoder = decoders.BPEDecoder()
    return train(tokenizer, trainers.BpeTrainer, vocab_size=400, special_tokens=["<unk>", "<s>"],
                 end_of_word_suffix="</w>")


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Strip(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    return train(tokenizer, trainers.BpeTrainer, vocab_size=350, special_tokens=["<unk>", "<s>"])


def words():
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.Punctuation("contiguous")])
    return train(tokenizer, trainers.WordLevelTrainer, vocab_size=200,
                 special_tokens=["[UNK]", "[MASK]"])


def pieces():
    """Makes BPE with a prefix within words, and with all other kinds of pre-tokenizers."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"))
    tokenizer.normalizer = normalizers.NFD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(",", "merged_with_previous"),
         pre_tokenizers.Split(Regex("[A-Z]"), "merged_with_next"), pre_tokenizers.Digits(),
         pre_tokenizers.CharDelimiterSplit("-")])
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return train(tokenizer, trainers.BpeTrainer, vocab_size=350, special_tokens=["[UNK]"],
                 continuing_subword_prefix="##")


def vector(tokenizer, text, pair=None, special=True):
    encoding = tokenizer.encode(text, pair, add_special_tokens=special)
    case = {"text": text, "ids": encoding.ids, "type_ids": encoding.type_ids,
            "attention_mask": encoding.attention_mask, "special_mask": encoding.special_tokens_mask,
            "decoded": tokenizer.decode(encoding.ids),
            "decoded_whole": tokenizer.decode(encoding.ids, skip_special_tokens=False)}
    if pair is not None:
        case["pair"] = pair
    if not special:
        case["no_special_tokens"] = True
    return case


def write(name, tokenizer):
    tokenizer.save(os.path.join(folder, name + ".json"), pretty=False)
    rng = random.Random(name)
    texts = TEXTS + [random_text(rng) for _ in range(random_texts)]
    cases = [vector(tokenizer, text) for text in texts]
    cases += [vector(tokenizer, text, special=False) for text in texts[:6]]
    for text, pair in PAIRS + [tuple(rng.sample(texts, 2)) for _ in range(random_texts // 4)]:
        try:
            cases.append(vector(tokenizer, text, pair))
        except Exception:  # only_first can't cut enough
            pass
    with open(os.path.join(folder, name + ".vectors.json"), "w") as file:
        json.dump(cases, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


write("gpt2", gpt2())
write("roberta", roberta())
write("bert_uncased", bert())
write("bert_cased", bert(cased=True))
write("llama", llama())
write("llama3", llama3())
write("clip", clip())
write("metaspace", metaspace())
write("words", words())
write("pieces", pieces())
for number, path in enumerate(sys.argv[3:]):
    write(f"other{number}", Tokenizer.from_file(path))
