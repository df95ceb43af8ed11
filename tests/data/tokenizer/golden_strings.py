"""The strings that tokenizers are compared on: every script, code, white space, emoji, control characters,
added tokens, decomposed characters, and bytes that are not UTF-8."""

import random
import unicodedata

SENTENCES = (
    "The quick brown fox can't jump over the lazy dog; it's 1,234.50 dollars!",
    "I'LL go, THEY'RE here, we'Ve seen, he'D say, you'\u017f it, \u212aelvin'S",
    "Le c\u0153ur d\u00e9\u00e7u mais l'\u00e2me plut\u00f4t na\u00efve, na\u0308ive cafe\u0301 caf\u00e9.",
    "Falsches \u00dcben von Xylophonmusik qu\u00e4lt jeden gr\u00f6\u00dferen Zwerg.",
    "\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 "
    "\u043c\u044f\u0433\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a, 25 \u0448\u0442.",
    "\u0393\u03b1\u03b6\u03ad\u03b5\u03c2 \u03ba\u03b1\u1f76 \u03bc\u03c5\u03c1\u03c4\u03b9\u1f72\u03c2",
    "\u05d3\u05d2 \u05e1\u05e7\u05e8\u05df \u05e9\u05d8 \u05d1\u05d9\u05dd",
    "\u0646\u0635 \u062d\u0643\u064a\u0645 \u0644\u0647 \u0633\u0631 \u0661\u0662\u0663\u0664",
    "\u090b\u0937\u093f\u092f\u094b\u0902 \u0915\u094b \u0938\u0924\u093e\u0928\u0947 \u0967\u0968",
    "\u0b95\u0bcd\u0bb7 \u0baf\u0bbe\u0bae\u0bb1\u0bbf\u0ba8\u0bcd\u0ba4",
    "\u0e40\u0e1b\u0e47\u0e19\u0e21\u0e19\u0e38\u0e29\u0e22\u0e4c\u0e2a\u0e38\u0e14",
    "\u6211\u80fd\u541e\u4e0b\u73bb\u7483\u800c\u4e0d\u4f24\u8eab\u4f53\u3002\uff11\uff12\uff13",
    "\u3044\u308d\u306f\u306b\u307b\u3078\u3068 \u30a4\u30ed\u30cf\u30cb\u30db\u30d8\u30c8 \uff76\uff9e",
    "\ud0a4\uc2a4\uc758 \uace0\uc720\uc870\uac74\uc740 \u1112\u1161\u11ab\u1100\u1173\u11af",
    "\u10d5\u10d4\u10de\u10ee\u10d8\u10e1 \u10e2\u10e7\u10d0\u10dd\u10e1\u10d0\u10dc\u10d8",
    "\u0531\u0575\u0562 \u0562\u0565\u0576\u0563\u056b\u0574",
    "Ti\u1ebfng Vi\u1ec7t c\u00f3 d\u1ea5u, Tie\u0302\u0301ng Vie\u0323\u0302t",
    "\u01c5 \u01c8 \ufb01nancial \u2167 \u00bd \u00b2 \u2460 \u3220 x\u2044y",
)

CODE = (
    '#include <dlpack/dlpack.h>\n#include <cmath>\n\nextern "C" int run(const DLTensor* const* inputs) {\n',
    "  const float* x = static_cast<const float*>(inputs[0]->data);\n",
    "\tfor (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;\r\n",
    "#pragma omp parallel for simd schedule(static)\n    for (long j=0;j<1024;j+=16){acc+=a[j]*b[j];}\n",
    "__global__ void relu(float* __restrict__ y, const float4* x) { int i = threadIdx.x; }\n",
    "def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return torch.relu(self.fc1(x)) + 1e-5\n",
    "class Model(nn.Module):\n    def __init__(self, n=64, *, bias=True):\n        super().__init__()\n",
    "```cpp\nreturn 0;\n}\n```\n\n\n\n",
    "a+=b;//TODO(x): 100% \\n \\t \"q\" 'c' `id` ~!@#$%^&*()_+{}|:<>?[]\\;',./\n",
    "https://example.org/a?b=c&d=%20#frag user@host.example /usr/lib64/x.so.6 C:\\temp\\x.txt\n",
    '{"id": 12, "values": [1, 2.5, -3e-7, null, true], "s": "\\u00e9"}\n',
)

SPACES = (
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\v",
    "\f",
    "\u0085",
    "\u00a0",
    "\u1680",
    "\u180e",
    "\u2003",
    "\u200b",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u205f",
    "\u3000",
    "\ufeff",
    "\x1c",
    "\x1f",
)

EMOJI = (
    "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea",
    "1\ufe0f\u20e3",
    "\u2764\ufe0f\u200d\U0001f525",
    "\U0001fae8",
    "\U0001f3f4\U000e0067",
    "\u263a\ufe0e",
    "\U0001f9d1\U0001f3ff\u200d\U0001f680",
)

TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|im_end|>\n",
    "<think>",
    "</think>",
    "<left>",
    "<right>",
    "<both>",
    "word",
    "caf\u00e9",
    "cafe\u0301",
    "<|im_start",
    "|>",
    "<|im_",
    "<",
    "<<|im_end|>>",
    "<tool_call>",
)

# First and last code point of the blocks that text is drawn from.
BLOCKS = tuple(
    (first, min(first + 0x7F, 0x323AF))
    for first in (
        *range(0x00, 0x3100, 0x80),
        *range(0x3100, 0xD780, 0x800),
        0xF900,
        0xFB00,
        0xFB80,
        0xFE00,
        0xFE80,
        0xFF00,
        0xFF80,
        *range(0x10000, 0x12000, 0x80),
        0x12000,
        0x13000,
        0x13460,
        0x16100,
        0x16A00,
        0x16D40,
        0x16F00,
        0x17000,
        0x1B000,
        0x1BC00,
        0x1CC00,
        0x1D000,
        0x1D100,
        0x1D280,
        0x1D400,
        0x1D780,
        0x1DF00,
        0x1E000,
        0x1E100,
        0x1E280,
        0x1E480,
        0x1E580,
        0x1E800,
        0x1E900,
        0x1EC80,
        0x1EE00,
        0x1F000,
        0x1F100,
        0x1F300,
        0x1F600,
        0x1F900,
        0x1FA00,
        0x1FB00,
        0x20000,
        0x2A700,
        0x2B700,
        0x2EBF0,
        0x2F800,
        0x30000,
        0x31350,
        0x32300,
    )
)


def from_block(rng: random.Random, block: tuple[int, int], length: int) -> str:
    points = [rng.randint(*block) for _ in range(length)]
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def block_strings(rng: random.Random) -> list[str]:
    strings = []
    for block in BLOCKS:
        word = from_block(rng, block, 6)
        strings += [word, f"{word[:3]} {from_block(rng, block, 4)}, 42{word[3:]}\n"]
    return strings


def mixed(rng: random.Random, parts: tuple[str, ...], count: int, most: int) -> list[str]:
    return ["".join(rng.choice(parts) for _ in range(rng.randint(1, most))) for _ in range(count)]


def decomposed(rng: random.Random) -> list[str]:
    strings = []
    for sentence in SENTENCES:
        strings += [unicodedata.normalize(form, sentence) for form in ("NFD", "NFKD", "NFC")]
    marks = ("\u0301", "\u0323", "\u0308", "\u0327", "\u0345", "\u094d", "\u1dfa", "\u0898", "\u20d0")
    strings += [
        "".join(rng.choice(("a", "e", "\u1100", "\u1161", "\u11a8", "\u00e9", *marks)) for _ in range(8))
        for _ in range(100)
    ]
    return strings


def broken_utf8(rng: random.Random) -> list[bytes]:
    strings = []
    for sentence in SENTENCES:
        data = sentence.encode()
        cut = rng.randint(1, len(data))
        strings += [data[:cut], data[cut:], data[:cut] + bytes([rng.randint(128, 255)]) + data[cut:]]
    strings += [bytes(rng.randint(0, 255) for _ in range(rng.randint(1, 24))) for _ in range(80)]
    return strings + [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"a\xff\xfe", b"\xe2\x82", b"\x00"]


def make_strings(rng: random.Random) -> list[str | bytes]:
    spaces_and_words = (*SPACES, "a", "Word", "1", "!", "\u00e9", "x", " ", " ")
    strings: list[str | bytes] = [
        "",
        " ",
        "a",
        "\n",
        "a" * 1000,
        " " * 300,
        "\n" * 70,
        "ab" * 400,
        "0" * 50,
        "\u4e00" * 90,
    ]
    strings += [*SENTENCES, *(text.upper() for text in SENTENCES), *(text + " " + text for text in SENTENCES)]
    strings += [*CODE, *mixed(rng, CODE, 150, 4)]
    strings += block_strings(rng)
    strings += mixed(rng, spaces_and_words, 350, 12)
    strings += [*EMOJI, *mixed(rng, (*EMOJI, " ", "a"), 80, 5)]
    strings += [
        f"{before}{chr(point)}{after}"
        for point in (*range(32), *range(127, 160))
        for before, after in (("", ""), ("a", "b"), (" ", "\n"))
    ]
    strings += [*TOKENS, *mixed(rng, (*TOKENS, " ", "\n", "x", "1", "  "), 350, 7)]
    strings += decomposed(rng)
    strings += mixed(
        rng, ("'s", "'S", "'ll", "'Re", "'", "\u2019s", "x", " ", "1", "-", "'\u017f", "'d'm"), 120, 6
    )
    strings += mixed(
        rng, ("1", "12", "123", ".", ",", " ", "e", "\u0663", "\u00b2", "\u2167", "\U0001d7d8"), 120, 8
    )
    strings += broken_utf8(rng)
    everything = (*SENTENCES, *CODE, *SPACES, *EMOJI, *TOKENS)
    return strings + mixed(rng, everything, 200, 6)
