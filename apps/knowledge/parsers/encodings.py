"""Bytes to text: which encoding a text file is in.

Order: byte order mark, the pattern of NUL bytes that UTF-16 and UTF-32 leave, ISO-2022-JP, strict
UTF-8 over the whole file, UTF-8 with few stray bytes, what the file declares, the East Asian encodings
by how usual the characters are that they give, the Latin ones by their alphabets, then
charset-normalizer. Always the superset: GB18030 for GB2312 and GBK, CP932 for Shift-JIS, CP949 for
EUC-KR. Python's own decoders do the work; a guess from a prefix is never applied to a file that does
not decode with it.
"""

import codecs
import re

from apps.knowledge.parsers.latin import latin

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "mac-cyrillic": "cp1251",
}
SAMPLE_CHARACTERS = 4000
ACCEPTED = 0.55  # least score at which an East Asian encoding is believed
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_IN_A_ROW = re.compile(rb"[\x80-\xff]{2}")  # as nearly all East Asian signs are, and few of Western Europe

_USUAL_CHINESE = set(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还"
    "发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全"
    "工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入"
    "這個來國說們為時會學對裡後沒於還發當開經頭從動兩長樣現將與進實點種聲話兒問機給幾業間電門東聽氣關並卻軍產"
)
_USUAL_KOREAN = set(
    "이다는을를에의가고하지로기한도사어은리서자시대인라그나수일아있해보부정스여전제들과것으구주장원상안성우조오"
)


def decode(data: bytes, declared: str = "") -> tuple[str, str]:
    """Return a whole file's text, without byte order mark, and the name of its encoding.

    Never fails: what cannot be decoded becomes U+FFFD. ``declared`` is what the file says of itself.
    """
    for bom, name in BOMS:
        if data.startswith(bom):
            text = data.decode(name, errors="replace")
            return text.removeprefix("\ufeff"), name.removesuffix("-sig")
    wide = _wide(data)
    if wide:
        return data.decode(wide, errors="replace"), wide
    switches = b"\x1b$" in data  # ISO-2022-JP is seven bits wide, and so valid UTF-8 too
    for name in filter(None, ("iso2022_jp" if switches else "", "utf-8")):
        try:
            return data.decode(name), name
        except UnicodeDecodeError:
            continue
    if _mostly_utf8(data):
        return data.decode("utf-8", errors="replace"), "utf-8"
    known = _known(declared)
    try:
        if known:
            return data.decode(known), known
    except UnicodeDecodeError:
        pass
    ways = (_east_asian, _latin) if _IN_A_ROW.search(data) else (_latin, _east_asian)
    name = ways[0](data) or ways[1](data) or _guessed(data)
    return data.decode(name, errors="replace"), name


def _wide(data: bytes) -> str:
    """Return UTF-16 or UTF-32 without a mark, seen by where the NUL bytes stand; "" otherwise."""
    head = data[:4096]
    if len(head) < 4 or head.count(0) < len(head) // 5:
        return ""
    quarters = [head[i::4].count(0) / max(len(head[i::4]), 1) for i in range(4)]
    if min(quarters[1:]) > 0.6 and quarters[0] < 0.3:
        return "utf-32-le"
    if min(quarters[:3]) > 0.6 and quarters[3] < 0.3:
        return "utf-32-be"
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 4 * even:
        return "utf-16-le"
    return "utf-16-be" if even > 4 * odd else ""


def _mostly_utf8(data: bytes) -> bool:
    """Whether the file is UTF-8 but for a few stray bytes: twenty whole characters to each."""
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    sound = sum(len(run) for run in _NON_ASCII.findall(text)) - broken
    never = sum(data.count(byte) for byte in (b"\xff", b"\xfe", b"\xc0", b"\xc1"))  # in no UTF-8, and rare elsewhere
    return broken * 20 <= sound or (sound == 0 and broken == never and broken * 1000 <= len(data))


def _known(name: str) -> str:
    try:
        canonical = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):
        return ""
    if canonical.startswith("utf") or canonical in {"idna", "punycode", "unicode_escape", "raw_unicode_escape"}:
        return ""  # UTF-8 has been tried, and the others are not encodings of files
    return SUPERSETS.get(canonical, canonical)


def _latin(data: bytes) -> str:
    return latin(data[: 1 << 18])


def _east_asian(data: bytes) -> str:
    best, best_score = "", ACCEPTED
    for name, bonus in (("gb18030", 0.12), ("big5hkscs", 0.06), ("cp932", 0.0), ("euc_jp", 0.0), ("cp949", 0.0)):
        score = _score(data, name) + bonus
        if score > best_score + 1e-9:
            best, best_score = name, score
    return best


def _score(data: bytes, encoding: str) -> float:
    """Return how usual the decoded characters are, from about -1 to 2. Half-width kana and rare signs count against."""
    text = "".join(_NON_ASCII.findall(data[: 1 << 18].decode(encoding, errors="replace")))[:SAMPLE_CHARACTERS]
    if not text:
        return -1.0
    points = 0.0
    for character in text:
        if character == "\ufffd":
            points -= 4
        elif character in "、。，！？；：“”‘’（）《》「」『』…—·　":
            points += 0.5
        elif encoding in ("gb18030", "big5hkscs"):
            points += _hanzi(character, encoding)
        elif encoding in ("cp932", "euc_jp"):
            points += 1.4 if "ぁ" <= character <= "ヺ" else _kanji(character)
        else:
            points += _hangul(character)
    return points / len(text)


def _hanzi(character: str, encoding: str) -> float:
    if character in _USUAL_CHINESE:
        return 1.7
    try:
        lead = character.encode("gb2312" if encoding == "gb18030" else "big5")[0]
    except UnicodeEncodeError:
        return -0.3 if "\u4e00" <= character <= "\u9fff" else -1.0
    common = 0xB0 <= lead <= 0xD7 if encoding == "gb18030" else 0xA4 <= lead <= 0xC6
    return 0.7 if common else -0.2


def _hangul(character: str) -> float:
    if character in _USUAL_KOREAN:
        return 1.5
    try:
        character.encode("euc_kr")
    except UnicodeEncodeError:
        return -1.0  # a syllable that hardly occurs
    return 0.4 if "가" <= character <= "힣" else -0.5


def _kanji(character: str) -> float:
    if "\uff61" <= character <= "\uff9f":
        return -1.0
    try:
        lead = character.encode("euc_jp")[0]
    except UnicodeEncodeError:
        return -1.0
    return 0.7 if 0xB0 <= lead <= 0xCF else -0.3


def _guessed(data: bytes) -> str:
    """Ask charset-normalizer; Western European where it has no answer."""
    from charset_normalizer import from_bytes

    found = from_bytes(data[: 1 << 18]).best()
    name = _known(found.encoding) if found else ""
    return name or "cp1252"
